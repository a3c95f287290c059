"""Ranks take a lock on a file in turn. Others hold it while they sleep, send, and use the store."""

import fcntl
import os
import time

import torch
import torch.distributed as dist


def locked():
    lock = open("lock", "w", encoding="utf-8")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock  # closing it unlocks


rank = int(os.environ["RANK"])
store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1, 3, rank == 0, wait_for_workers=False)
if rank == 1:
    with locked():
        store.set("taken", "1")
        store.get("asked")
elif rank == 0:
    store.get("taken")
    with locked():
        pass
else:
    store.get("taken")
    time.sleep(1)  # rank 0 waits for the lock
    store.set("asked", "1")

dist.init_process_group("gloo")
for step in range(2):
    with locked():
        time.sleep(0.05)
    dist.all_reduce(torch.ones(4))

if rank == 1:
    lock = locked()
dist.barrier()
if rank == 0:
    with locked():
        pass
elif rank == 1:
    dist.send(torch.ones(4), 2)
    lock.close()
else:
    dist.recv(torch.ones(4), 1)
dist.barrier()
