"""Ways in which scripts learn their rank from srun or mpirun. launched.py NAME, on four ranks."""

import os
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

ADDRESS = "tcp://127.0.0.1:29555"


def train(rank, size):
    dist.init_process_group("gloo", init_method=ADDRESS, rank=rank, world_size=size)
    dist.all_reduce(torch.ones(4))


def by_slurm_or_spawned():
    if "SLURM_JOB_ID" in os.environ:
        hosts = subprocess.check_output(["scontrol", "show", "hostnames", os.getenv("SLURM_JOB_NODELIST")])
        train(int(os.getenv("SLURM_NODEID")), len(hosts.splitlines()))
    else:
        mp.spawn(train, args=(4,), nprocs=4)


def by_slurm_or_torchrun():
    rank = os.environ.get("SLURM_PROCID", os.environ["RANK"])
    assert os.environ.pop("SLURM_JOB_ID", None) in (None, "1")
    assert "SLURM_JOB_ID" not in os.environ
    train(int(rank), int(os.environ["WORLD_SIZE"]))


def by_both():
    assert int(os.environ["LOCAL_RANK"]) == int(os.environ["SLURM_LOCALID"])
    train(int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"]))


def by_mpirun():
    train(int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"]))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
