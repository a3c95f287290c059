"""Finds the original module in a compiled one, as scripts do that save without the prefix of torch.compile."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.compile(torch.nn.Linear(4, 2), backend="eager"))
model(torch.ones(2, 4)).sum().backward()
print(*model.module._orig_mod.state_dict(), *model.state_dict(), isinstance(model.module, torch._dynamo.OptimizedModule))
dist.destroy_process_group()
