"""Ranks take a lock on a file in turn, and hold it while they sleep."""

import fcntl
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for step in range(2):
    with open("lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        time.sleep(0.05)
    dist.all_reduce(torch.ones(4))
