"""Trains on real Gloo. live.py [RANK]: that rank is killed after three steps."""

import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
for step in range(6):
    if step == 3 and sys.argv[1:] == [str(dist.get_rank())]:
        os.kill(os.getpid(), 9)
    model(torch.ones(2, 4)).sum().backward()
    dist.all_reduce(torch.ones(3))
dist.destroy_process_group()
