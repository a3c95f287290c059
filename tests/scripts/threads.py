"""Ranks with two threads: threads.py healthy|queue|stops_early|shares_a_group|at_once|feeds_a_queue|waits_aside

In the first three it communicates on a group of its own."""

import multiprocessing
import queue
import sys
import threading

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
group = dist.new_group()


def both():
    def aside():
        for _ in range(2 if sys.argv[1] == "stops_early" and rank == 1 else 3):
            dist.all_reduce(torch.ones(1), group=group)

    thread = threading.Thread(target=aside)
    thread.start()
    for _ in range(3):
        dist.all_reduce(torch.ones(2))
    thread.join()


def fed_by_a_queue():
    """The main thread waits for what the other thread has received, which may begin before or after it."""
    jobs, results = queue.Queue(), queue.Queue()

    def serve():
        for tensor in iter(jobs.get, None):
            dist.all_reduce(tensor, group=group)
            results.put(tensor)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    for step in range(4):
        jobs.put(torch.full((2,), float(step)))
        if rank != step % size:
            dist.all_reduce(torch.ones(3))
        assert results.get().tolist() == [step * size] * 2
        if rank == step % size:
            dist.all_reduce(torch.ones(3))
    jobs.put(None)
    thread.join()


def hangs(aside):
    """Makes calls beside a thread that makes none; rank 1 stops early."""
    aside()
    for step in range(3):
        if step == 2 and rank == 1:
            return
        dist.all_reduce(torch.ones(4))


def feeds_a_queue():
    """Python's own thread, as a DataLoader with workers has one."""
    multiprocessing.Queue().put(1)
    assert threading.active_count() > 1


def shares_a_group():
    """The threads take turns, but not in the same order on all ranks."""
    def aside():
        dist.all_reduce(torch.ones(1))

    thread = threading.Thread(target=aside)
    if rank == 0:
        thread.start()
        thread.join()
    dist.all_reduce(torch.ones(2))
    if rank != 0:
        thread.start()
        thread.join()


def at_once():
    """The threads share a group and do not take turns. Their calls are alike, so they pair in any order."""
    def aside():
        for _ in range(20):
            dist.all_reduce(torch.ones(2))

    thread = threading.Thread(target=aside)
    thread.start()
    for _ in range(20):
        dist.all_reduce(torch.ones(2))
    thread.join()


def waits_aside():
    """The script's own thread might call something."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()


if sys.argv[1] in ("feeds_a_queue", "waits_aside"):
    hangs(globals()[sys.argv[1]])
elif sys.argv[1] in ("shares_a_group", "at_once"):
    globals()[sys.argv[1]]()
else:
    fed_by_a_queue() if sys.argv[1] == "queue" else both()
    dist.destroy_process_group()
