"""A script for srun: its rank and world size come from Slurm's variables, its address is a file."""

import os

import torch
import torch.distributed as dist

rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
local = int(os.environ["SLURM_LOCALID"])
if torch.cuda.is_available():
    torch.cuda.set_device(local)
dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", rank=rank, world_size=world)
total = torch.tensor([float(rank)], device=f"cuda:{local}" if torch.cuda.is_available() else "cpu")
dist.all_reduce(total)
assert total.item() == world * (world - 1) / 2
dist.destroy_process_group()
