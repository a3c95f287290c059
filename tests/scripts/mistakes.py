"""Mistakes that hang real jobs, each as small as possible. mistakes.py NAME"""

import concurrent.futures
import os
import subprocess
import sys

import torch
import torch.distributed as dist


def barrier_on_rank_0():
    train(3)
    if rank == 0:
        torch.zeros(1)  # saves a checkpoint
        dist.barrier()  # MISTAKE barrier_on_rank_0


def unseeded_shuffle():
    """Every rank draws its own permutation, because the ranks were not given the same seed. A rank skips the samples
    that are too long."""
    order = torch.randperm(100, generator=torch.Generator().manual_seed(rank)).tolist()
    for sample in order[:4]:
        if sample % 7 == 0:
            continue
        dist.all_reduce(torch.ones(8))  # MISTAKE unseeded_shuffle


def conditional_all_reduce():
    for step in range(5):
        loss = 10.0 if (rank, step) == (2, 1) else 1.0
        if loss > 5:
            dist.all_reduce(torch.ones(4))  # MISTAKE conditional_all_reduce
        dist.all_reduce(torch.ones(4))


def early_stop():
    for epoch in range(6):
        train(1)
        if rank == 3 and epoch == 2:
            break  # its validation loss has stopped falling
    dist.broadcast(torch.ones(2), src=0)  # MISTAKE early_stop


def short_in_group():
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    for step in range(3):
        size = 5 if (rank, step) == (3, 2) else 6
        dist.all_reduce(torch.ones(size), group=groups[rank // 2])  # MISTAKE short_in_group
        dist.all_reduce(torch.ones(2))


def gathers_what_it_has():
    """The last rank has fewer samples to evaluate."""
    predictions = torch.ones(7 if rank == 3 else 10)
    dist.all_gather([torch.empty_like(predictions) for _ in range(4)], predictions)  # MISTAKE gathers_what_it_has


def in_a_pool():
    """Calls of a thread that runs no function of this file."""
    train(1)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        if rank != 1:
            pool.submit(dist.all_reduce, torch.ones(4)).result()  # MISTAKE in_a_pool


def uneven():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    for _ in range(5 if rank == 0 else 6):
        model(torch.ones(1, 2)).sum().backward()  # MISTAKE uneven


def not_shadowed():
    """A call in a loop under Join that no hook repeats: it meets Join's own count on the rank that has joined."""
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    with model.join():
        for _ in range(1 if rank == 0 else 2):
            model(torch.ones(1, 2)).sum().backward()
            dist.all_reduce(torch.ones(1))  # MISTAKE not_shadowed


def raises():
    train(1)
    if rank == 1:
        raise ValueError("bad sample")  # MISTAKE raises
    train(1)


def exits():
    train(1)
    if rank == 1:
        os._exit(3)
    train(1)


def dies():
    train(1)
    if rank == 1:
        os.kill(os.getpid(), 9)
    train(1)


def leaves_a_process():
    subprocess.Popen(["sleep", "98765"])
    subprocess.Popen(["sleep", "98765"], start_new_session=True)
    train(1)


def wants_a_gpu():
    torch.ones(1).cuda()  # MISTAKE wants_a_gpu


def never_initializes():
    pass


def computes_for_ever():
    train(1)
    while rank == 1:
        pass  # MISTAKE computes_for_ever
    train(1)


def train(steps):
    for _ in range(steps):
        dist.all_reduce(torch.ones(4))  # gradients


if sys.argv[1] != "never_initializes":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
globals()[sys.argv[1]]()
