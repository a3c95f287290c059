"""Jobs whose end matters, each as small as it gets. endings.py NAME"""

import sys

import torch
import torch.distributed as dist


def leaves_early():
    """On nccl, destroy_process_group waits for the rank that still has a batch."""
    begin("nccl")
    torch.cuda.set_device(rank)
    for _ in range(5 - rank):
        dist.all_reduce(torch.ones(4, device="cuda"))  # MISTAKE leaves_early
    dist.destroy_process_group()


def catches_a_refusal():
    """The root's list is too short. It finds out; the other rank waits for what never comes."""
    begin("gloo")
    try:
        dist.scatter(torch.zeros(1), [torch.zeros(1)] if rank == 0 else None, src=0)  # MISTAKE catches_a_refusal
    except (RuntimeError, ValueError):
        pass


def all_are_refused():
    begin("gloo")
    try:
        dist.all_gather([torch.zeros(1)], torch.zeros(1))
    except (RuntimeError, ValueError):
        pass
    dist.barrier()


def trains_apart():
    train(torch.nn.Linear(3, 1))


def trains_together():
    train(torch.nn.parallel.DistributedDataParallel)


def train(model):
    begin("gloo")
    model = model if isinstance(model, torch.nn.Module) else model(torch.nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(3):
        optimizer.zero_grad()
        model(torch.full((2, 3), float(rank + step))).sum().backward()
        optimizer.step()  # MISTAKE trains_apart
    dist.barrier()


def tells_through_the_store():
    begin("gloo")
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        store.set("where", "here")
    assert store.get("where") == b"here"
    dist.barrier()
    store.add("seen", 1)
    dist.barrier()
    assert store.add("seen", 0) == 2
    if rank == 1:
        store.set("bytes", bytes([0, 255, 10]))
        store.compare_set("swapped", "", "once")
    dist.barrier()
    dist.new_group([0, 1])
    assert store.get("bytes") == bytes([0, 255, 10])
    assert store.compare_set("swapped", "other", "twice") == b"once"
    dist.barrier()
    if rank == 0:
        assert store.delete_key("swapped")


def nobody_sets_the_key():
    begin("gloo")
    dist.barrier()
    dist.distributed_c10d._get_default_store().get("never")  # MISTAKE nobody_sets_the_key


def sizes_differ():
    begin("gloo")
    dist.all_reduce(torch.ones(1 + rank))


def begin(backend):
    global rank
    dist.init_process_group(backend)
    rank = dist.get_rank()


globals()[sys.argv[1]]()
