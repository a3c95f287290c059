"""Mistakes injected into working training scripts, in the ways in which people make them. injected.py NAME

Scripts for GPUs end with destroy_process_group, as published ones do. Names ending in _2 have two ranks."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

WIDTH = 8


def ddp(*layers):
    model = nn.Sequential(*(layers or [nn.Linear(WIDTH, WIDTH)])).to(device)
    return DDP(model), torch.optim.SGD(model.parameters(), lr=0.01)


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(4, WIDTH, device=device)).sum().backward()  # MISTAKE step
    optimizer.step()


def validation_on_rank_0():
    """Buffers are broadcast in every forward of a model in training mode."""
    model, optimizer = ddp(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH))
    for _ in range(2):
        step(model, optimizer)
        if rank == 0:
            model(torch.ones(4, WIDTH, device=device))  # MISTAKE validation_on_rank_0
    dist.barrier()


def validation_on_rank_0_gpu():
    model, optimizer = ddp(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH))
    step(model, optimizer)
    if rank == 0:
        model(torch.ones(4, WIDTH, device=device))  # MISTAKE validation_on_rank_0_gpu


def validation_reduces_on_rank_0():
    model, optimizer = ddp()
    for _ in range(2):
        step(model, optimizer)
        if rank == 0:
            dist.all_reduce(torch.ones(1, device=device))  # MISTAKE validation_reduces_on_rank_0
        dist.barrier()


def validation_on_rank_0_2():
    model, optimizer = ddp(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH))
    for iteration in range(12):
        step(model, optimizer)
        if rank == 0 and iteration % 4 == 3:
            model(torch.ones(4, WIDTH, device=device))  # MISTAKE validation_on_rank_0_2


def uneven_2():
    model, optimizer = ddp()
    for _ in range(4 if rank == 0 else 5):
        step(model, optimizer)


def uneven_without_destroy_2():
    model, optimizer = ddp()
    for _ in range(4 if rank == 0 else 5):
        step(model, optimizer)


def bad_batches():
    model, optimizer = ddp()
    for batch in range(6):
        if (rank, batch) in ((1, 2), (2, 3)):
            continue  # a picture that cannot be read
        step(model, optimizer)


def bad_batches_gpu():
    bad_batches()


def early_stop_2():
    model, optimizer = ddp()
    for epoch in range(6):
        step(model, optimizer)
        if rank == 1 and epoch == 2:
            break  # its own validation loss has stopped falling


def early_stop_then_barrier():
    model, optimizer = ddp()
    for epoch in range(6):
        step(model, optimizer)
        if rank in (1, 3) and epoch == 2:
            break
    dist.barrier()  # MISTAKE early_stop_then_barrier


def early_stop_by_callback_2():
    """Every epoch ends with a check that all ranks take part in."""
    model, optimizer = ddp()
    for epoch in range(6):
        step(model, optimizer)
        stops = rank == 1 and epoch == 2
        if stops:
            break
        dist.all_reduce(torch.zeros(1, device=device))
    losses = torch.zeros(2, device=device)
    dist.all_gather_into_tensor(losses, torch.zeros(1, device=device))  # MISTAKE early_stop_by_callback_2


def trainer_stops_2():
    model, optimizer = ddp()
    for epoch in range(6):
        step(model, optimizer)
        if rank == 1 and epoch == 2:
            break
    dist.broadcast(torch.zeros(4, device=device), src=0)  # MISTAKE trainer_stops_2


def checkpoint_on_rank_0_2():
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    from torch.distributed.fsdp import fully_shard
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)).to(device)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        step(model, optimizer)
    if rank == 0:
        get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))  # MISTAKE checkpoint_on_rank_0_2


def full_tensor_on_rank_0_2():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    model = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH)).to(device)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
    for iteration in range(4):
        step(model, optimizer)
        if rank == 0 and iteration == 2:
            print(model[0].weight.full_tensor().norm())  # MISTAKE full_tensor_on_rank_0_2


def barrier_on_rank_0_2():
    model, optimizer = ddp()
    for iteration in range(4):
        if rank == 0 and iteration == 2:
            dist.barrier()  # MISTAKE barrier_on_rank_0_2
        step(model, optimizer)


def variable_length():
    length = [8, 8, 8, 5][rank]
    places = [torch.zeros(length, device=device) for _ in range(4)]
    dist.all_gather(places, torch.ones(length, device=device))  # MISTAKE variable_length


def shape_by_rank():
    dist.all_reduce(torch.ones(4 if rank != 1 else 6, device=device))  # MISTAKE shape_by_rank


def other_lists():
    group = dist.new_group([0, 1] if rank < 2 else [1, 2])  # MISTAKE other_lists
    dist.all_reduce(torch.ones(1, device=device), group=group)


def extra_pipeline_step_2():
    """Activations go to the next stage, gradients come back."""
    stage = nn.Linear(WIDTH, WIDTH).to(device)
    for _ in range(5 if rank == 0 else 4):
        if rank == 0:
            out = stage(torch.ones(4, WIDTH, device=device))
            dist.send(out.detach(), 1)  # MISTAKE extra_pipeline_step_2
            dist.recv(torch.empty(4, WIDTH, device=device), 1)
        else:
            given = torch.empty(4, WIDTH, device=device)
            dist.recv(given, 0)
            stage(given).sum().backward()
            dist.send(given, 0)


def wrong_neighbor_gpu():
    """Rank 1's message goes one rank too far in one step. The others get stuck before they make their next calls."""
    for iteration in range(3):
        following = rank + (2 if rank == 1 and iteration == 1 else 1)
        calls = [dist.P2POp(dist.irecv, torch.empty(WIDTH, device=device), rank - 1)] if rank > 0 else []
        if following < dist.get_world_size():
            calls.append(dist.P2POp(dist.isend, torch.ones(WIDTH, device=device), following))
        for work in dist.batch_isend_irecv(calls):  # MISTAKE wrong_neighbor_gpu
            work.wait()
    dist.barrier()


def early_stop_after_reading():
    """What the ranks read decides what they would call next, so nothing is known beyond the hang."""
    model, optimizer = ddp()
    losses = torch.empty(dist.get_world_size(), device=device)
    for epoch in range(6):
        step(model, optimizer)
        dist.all_gather_into_tensor(losses, torch.ones(1, device=device))
        if losses.mean().item() < 0 or (rank == 1 and epoch == 2):
            break
    flops = [torch.zeros(1, device=device) for _ in range(dist.get_world_size())]
    dist.all_gather(flops, torch.ones(1, device=device))  # MISTAKE early_stop_after_reading


def other_average_period_gpu():
    """Only what the ranks would call after the hang shows whose period is another one."""
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    model = nn.Linear(WIDTH, WIDTH).to(device)
    model(torch.ones(4, WIDTH, device=device)).sum().backward()  # parameters without gradients are not averaged
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    averager = PeriodicModelAverager(period=2 if rank == 0 else 3, warmup_steps=2)
    for _ in range(8):
        dist.all_reduce(torch.ones(WIDTH, device=device), group=halves[rank // 2])
        averager.average_parameters(model.parameters())  # MISTAKE other_average_period_gpu


def exception_on_one_rank():
    model, optimizer = ddp()
    for iteration in range(3):
        if rank == 2 and iteration == 1:
            raise ValueError("bad sample")  # MISTAKE exception_on_one_rank
        step(model, optimizer)


def unused_parameter_2():
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.always, self.sometimes = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            return self.always(x) if rank == 1 else self.sometimes(self.always(x))

    model, optimizer = ddp(Gate())
    for _ in range(2):
        step(model, optimizer)


def hook_without_all_reduce():
    from torch.distributed.algorithms.join import Join, Joinable, JoinHook

    class Hook(JoinHook):
        def main_hook(self):
            pass

    class Counter(Joinable):
        def __init__(self):
            super().__init__()

        def __call__(self):
            Join.notify_join_context(self)
            dist.all_reduce(torch.ones(1, device=device))  # MISTAKE hook_without_all_reduce

        def join_hook(self, **kwargs):
            return Hook()

        @property
        def join_device(self):
            return device

        @property
        def join_process_group(self):
            return dist.group.WORLD

    counter = Counter()
    with Join([counter]):
        for _ in range(5 + rank):
            counter()


ON_GPUS = {"validation_on_rank_0_gpu", "validation_reduces_on_rank_0", "uneven_2", "bad_batches_gpu", "early_stop_2",
           "wrong_neighbor_gpu", "other_average_period_gpu", "checkpoint_on_rank_0_2", "extra_pipeline_step_2",
           "full_tensor_on_rank_0_2"}
name = sys.argv[1]
if name in ON_GPUS:
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
else:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    device = torch.device("cpu")
globals()[name]()
if name in ON_GPUS:
    dist.destroy_process_group()
