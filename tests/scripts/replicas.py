"""Models in DistributedDataParallel whose replicas stay equal, and others. replicas.py NAME"""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)


def trained(step, optimizer=torch.optim.SGD, lr=0.1, steps=3):
    """Trains a wrapped model on data of each rank's own. `step`: (inner, wrapper, x) -> loss."""
    inner = torch.nn.Linear(4, 1)
    model = DDP(inner)
    optimizer = optimizer(model.parameters(), lr=lr)
    torch.manual_seed(100 + rank)
    for _ in range(steps):
        loss = step(inner, model, torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logged = loss.detach().clone()
        dist.all_reduce(logged)  # floating point, and no gradient
    return inner


def are_equal():
    trained(lambda inner, model, x: model(x), torch.optim.Adam)


def passes_by_the_wrapper():
    trained(lambda inner, model, x: inner(x))


def has_a_rate_of_its_own():
    trained(lambda inner, model, x: model(x), lr=0.01 if rank == 2 else 0.1)


def loads_the_best_on_rank_0():
    inner = trained(lambda inner, model, x: model(x))
    if rank == 0:
        inner.load_state_dict({"weight": torch.zeros(1, 4), "bias": torch.zeros(1)})


def trains_models_of_its_own():
    """As in cross validation: nothing is wrapped, and the models differ from the beginning."""
    torch.manual_seed(rank)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(8, 4)).sum().backward()
        optimizer.step()
    dist.all_gather_object([None] * world, {"fold": rank})


globals()[sys.argv[1]]()
dist.destroy_process_group()
