"""Ranks that fork processes: forks.py NAME. Each rank makes four calls, whatever its children do."""

import os
import sys
import time

import torch
import torch.distributed as dist


class SlowSamples(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.full((4,), float(index))


def loads_slowly():
    for batch in torch.utils.data.DataLoader(SlowSamples(), batch_size=2, num_workers=2):
        dist.all_reduce(batch)


def is_child_of(rank):
    """Forks a process of this rank. Returns true in it, and false in the ranks, once it has ended."""
    if dist.get_rank() != rank:
        return False
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return child == 0


def train(steps):
    for _ in range(steps):
        dist.all_reduce(torch.ones(4))


def ends():
    train(2)
    if not is_child_of(1):
        train(2)


def fails():
    train(2)
    if is_child_of(1):
        raise ValueError("only the child")
    train(2)


def touches():
    """The child writes its own copy of a tensor that its parent's call still has."""
    train(2)
    gradients = torch.ones(4)
    work = dist.all_reduce(gradients, async_op=True)
    if is_child_of(1):
        gradients.zero_()
        os._exit(0)
    work.wait()
    train(1)


def calls():
    train(2)
    if is_child_of(1):
        train(1)
    train(2)


def asks_the_store():
    train(2)
    if is_child_of(1):
        dist.distributed_c10d._get_default_store().set("from", "a child")
    train(2)


def waits():
    """The child waits for a call of its parent."""
    train(2)
    work = dist.all_reduce(torch.ones(4), async_op=True)
    if is_child_of(1):
        work.wait()
    work.wait()
    train(1)


if __name__ == "__main__":  # the workers of Python 3.14 import this file
    dist.init_process_group("gloo")
    globals()[sys.argv[1]]()
