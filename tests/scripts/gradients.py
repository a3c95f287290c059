"""Makes every call of torch.distributed.nn on four ranks, forward and backward: prints the gradient or the refusal.

The output of real ranks on Gloo is in tests/data/calls/gradients_TORCH.txt.
"""

import torch
import torch.distributed as dist
import torch.distributed.nn as nn

dist.init_process_group("gloo")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
WEIGHTS = torch.arange(4.0) + RANK


def parts(tensor):
    return [tensor * (place + 1) for place in range(SIZE)]


CALLS = {
    "all_reduce": lambda given: nn.all_reduce(given),
    "broadcast": lambda given: nn.broadcast(given, 1),
    "reduce": lambda given: nn.reduce(given, 2),
    "gather": lambda given: torch.stack(nn.gather(given, 1)),
    "scatter": lambda given: nn.scatter(parts(given), 2),
    "all_gather": lambda given: torch.stack(nn.all_gather(given)),
    "all_to_all": lambda given: torch.stack(nn.all_to_all([torch.zeros(4) for _ in range(SIZE)], parts(given))),
    "all_to_all_single": lambda given: nn.all_to_all_single(torch.zeros(4), given),
    "reduce_scatter": lambda given: nn.reduce_scatter(torch.zeros(4), parts(given)),
}

for name, call in CALLS.items():
    tensor = torch.full((4,), RANK + 1.0, requires_grad=True)
    try:
        result = call(tensor * 1)
        (result * WEIGHTS).sum().backward()
        print(f"{name}: {result.tolist()}, gradient {tensor.grad.tolist()}", flush=True)
    except RuntimeError as error:
        print(f"{name}: {type(error).__name__}: {error}".split("\n")[0], flush=True)
