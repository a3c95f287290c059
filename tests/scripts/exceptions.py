"""Calls that a rank makes while it handles an exception. exceptions.py NAME"""

import sys

import torch
import torch.distributed as dist


def step():
    dist.all_reduce(torch.ones(4))


def fails_at(failing, number):
    if rank == failing and number == 2:
        raise ValueError("bad sample")  # MISTAKE fails_at


def meets_in_finally():
    try:
        for number in range(4):
            fails_at(1, number)
            step()
    finally:
        dist.barrier()  # MISTAKE meets_in_finally


def reports_in_except():
    for number in range(4):
        try:
            fails_at(1, number)
            step()
        except ValueError:
            dist.all_reduce(torch.ones(1))  # MISTAKE reports_in_except


class Metrics:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        parts = [torch.empty(4) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, torch.ones(4))  # MISTAKE leaves_a_block


def leaves_a_block():
    with Metrics():
        for number in range(4):
            fails_at(0, number)
            step()


def waits_in_its_half():
    """The others wait in another group than the rank that fails."""
    half = dist.new_group([0, 1])
    try:
        for number in range(4):
            fails_at(1, number)
            step()
    finally:
        if rank < 2:
            dist.barrier(half)  # MISTAKE waits_in_its_half


def asks_for_more():
    inputs = iter(range(2 if rank == 0 else 3))
    while True:
        try:
            next(inputs)  # MISTAKE has_no_more
        except StopIteration:
            return dist.barrier()  # MISTAKE asks_for_more
        step()


def runs_without_a_library():
    """Everything happens in an except clause, on all ranks: that is not what they differ in."""
    try:
        import no_such_library  # noqa: F401
    except ImportError:
        for _ in range(2 if rank == 1 else 3):
            step()
        dist.barrier()


def falls_back():
    """One rank has handled an exception before, and has left it behind."""
    try:
        fails_at(1, 2)
    except ValueError:
        pass
    for _ in range(2 if rank == 1 else 3):
        step()
    dist.barrier()


def ends_well():
    for number in range(4):
        try:
            step()
            raise KeyError(number)
        except KeyError:
            step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    globals()[sys.argv[1]]()
    dist.destroy_process_group()
