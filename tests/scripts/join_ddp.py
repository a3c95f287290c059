"""PyTorch's Join tutorial: DistributedDataParallel, alone or with ZeroRedundancyOptimizer, on uneven inputs.

join_ddp.py INPUTS [--model linear|bn|mlp] [--zero] [--no-join] [--throw]. The ranks are started by mp.spawn.
"""

import argparse
import contextlib
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

MODELS = {
    "linear": lambda: torch.nn.Linear(2, 1),
    "bn": lambda: torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1)),
    "mlp": lambda: torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)),
}


def worker(rank, arguments, inputs):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("gloo", rank=rank, world_size=len(inputs))
    model = DDP(MODELS[arguments.model]())
    if arguments.zero:
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    joinables = [model, optimizer] if arguments.zero else [model]
    context = contextlib.nullcontext() if arguments.no_join else Join(
        joinables, throw_on_early_termination=arguments.throw)
    num_inputs = 0
    with context:
        for _ in range(inputs[rank]):
            num_inputs += 1
            loss = model(torch.ones(2, 2) if arguments.model == "bn" else torch.ones(1, 2)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    print(f"Rank {rank} has exhausted all {num_inputs} of its inputs!")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("inputs")
    parser.add_argument("--model", choices=MODELS, default="linear")
    for flag in ("--zero", "--no-join", "--throw"):
        parser.add_argument(flag, action="store_true")
    parsed = parser.parse_args()
    counts = [int(count) for count in parsed.inputs.split(",")]
    mp.spawn(worker, args=(parsed, counts), nprocs=len(counts), join=True)
