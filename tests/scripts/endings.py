"""Jobs whose end matters, each as small as possible. endings.py NAME"""

import datetime
import os
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
    """The root's list is too short. The root is refused; the other rank waits for a message that never comes."""
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


def gives_up_and_goes_on():
    """Both ranks receive first. Gloo ends that after the job's timeout."""
    begin("gloo", timeout=datetime.timedelta(seconds=2))
    try:
        dist.recv(torch.ones(1), 1 - rank)  # MISTAKE gives_up_and_goes_on
    except RuntimeError as error:
        print("caught", error)


def makes_a_group_without_a_peer():
    """One rank gathers, the other creates a group with the backend's timeout. Both give up and catch the error."""
    begin("gloo")
    try:
        if rank == 0:
            dist.gather(torch.ones(1), [torch.ones(1), torch.ones(1)])  # MISTAKE makes_a_group_without_a_peer
        dist.all_reduce(torch.ones(1), group=dist.new_group([0, 1]))
    except RuntimeError as error:
        print("caught", error)


def loses_its_peer():
    """Rank 0's process ends, and closes its connections."""
    begin("gloo")
    if rank == 1:
        try:
            dist.all_reduce(torch.ones(1))  # MISTAKE loses_its_peer
        except RuntimeError as error:
            print("caught", error)


def gives_up():
    begin("gloo", timeout=datetime.timedelta(seconds=2))
    dist.recv(torch.ones(1), 1 - rank)  # MISTAKE gives_up


def never_learns():
    begin("gloo")
    while True:
        try:
            dist.recv(torch.ones(1), 1 - rank)  # MISTAKE never_learns
        except RuntimeError:
            pass


def waits_with_limits():
    begin("gloo")
    limit = datetime.timedelta(seconds=1)
    store = dist.distributed_c10d._get_default_store()
    try:
        store.wait(["never"], limit)
    except RuntimeError as error:
        print(type(error).__name__, error)
    if rank == 0:
        try:
            dist.monitored_barrier(timeout=limit)
        except RuntimeError as error:
            print(error)


def is_sent_too_much():
    """Gloo ends the process that receives more than it expects."""
    begin("gloo")
    if rank == 0:
        dist.send(torch.ones(4), 1)
    else:
        dist.recv(torch.zeros(2), 0)


def sends_to_itself():
    """Refused before any rank waits."""
    begin("gloo")
    try:
        dist.isend(torch.ones(1), rank)
    except (RuntimeError, ValueError):
        print("refused")


def sizes_differ():
    begin("gloo")
    dist.all_reduce(torch.ones(1 + rank))


def resumes_from_a_snapshot():
    """Like multigpu_torchrun.py of pytorch/examples: no rank saves a snapshot before all ranks have looked for one."""
    begin("gloo")
    done = 0
    if os.path.exists("snapshot"):
        with open("snapshot") as snapshot:
            done = int(snapshot.read())
    dist.barrier()
    for step in range(done, 4):
        dist.all_reduce(torch.ones(1))
        if rank == 0:
            with open("snapshot", "w") as snapshot:
                snapshot.write(str(step + 1))


def begin(backend, **arguments):
    global rank
    dist.init_process_group(backend, **arguments)
    rank = dist.get_rank()


globals()[sys.argv[1]]()
