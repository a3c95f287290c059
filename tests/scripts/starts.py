"""Ways in which scripts begin and end their jobs. starts.py NAME, on four ranks."""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANK = int(os.environ["RANK"])


def train(steps, device="cpu"):
    for _ in range(steps):
        dist.all_reduce(torch.ones(4, device=device))


def by_address():
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29555", rank=RANK, world_size=4)
    train(3)
    dist.destroy_process_group()


def by_file():
    dist.init_process_group("gloo", init_method="file:///nowhere/shared", rank=RANK, world_size=4)
    train(3)


def again_and_again():
    torch.cuda.set_device(RANK)
    for _ in range(3):
        dist.init_process_group("nccl")
        pair = dist.new_group([0, 2])
        if RANK in (0, 2):
            dist.all_reduce(torch.ones(2, device="cuda"), group=pair)
        train(1, "cuda")
        dist.destroy_process_group()


def rank_of_spawned(rank, size):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29555", rank=rank, world_size=size)
    train(3)


def spawns():
    mp.spawn(rank_of_spawned, args=(4,), nprocs=4)


def spawns_by_the_module():
    from torch.multiprocessing.spawn import spawn
    spawn(rank_of_spawned, args=(4,), nprocs=4)


def starts_processes():
    processes = [mp.Process(target=rank_of_spawned, args=(rank, 4)) for rank in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0


def wraps_in_a_library():
    from library import wrapped
    dist.init_process_group("gloo")
    model = wrapped(torch.nn.Linear(2, 1))
    for _ in range(3):
        model(torch.ones(1, 2)).sum().backward()


def one_rank_does_not_begin():
    if RANK != 1:
        dist.init_process_group("gloo")  # MISTAKE one_rank_does_not_begin
        train(1)


def one_rank_fails_before():
    if RANK == 3:
        raise FileNotFoundError("no data")
    dist.init_process_group("gloo")  # MISTAKE one_rank_fails_before


def one_rank_waits_for_a_file():
    while RANK == 2:
        time.sleep(0.01)  # MISTAKE one_rank_waits_for_a_file
    dist.init_process_group("gloo")
    train(1)


def nobody_goes_on_alone():
    """The first call after init_process_group is no call of torch.distributed."""
    if RANK == 2:
        time.sleep(1.5)
        assert not os.path.exists("begun"), "a rank has begun without rank 2"
    dist.init_process_group("gloo")
    open("begun", "w").close()
    train(1)


def broadcasts_from_nobody():
    dist.init_process_group("gloo")
    dist.broadcast(torch.ones(1), src=4)  # MISTAKE broadcasts_from_nobody


def sends_a_negative_tag():
    dist.init_process_group("gloo")
    dist.send(torch.ones(1), (RANK + 1) % 4, tag=-1)  # MISTAKE sends_a_negative_tag


if __name__ == "__main__":
    globals()[sys.argv[1]]()
