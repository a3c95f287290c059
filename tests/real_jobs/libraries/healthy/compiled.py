import os, torch, torch.distributed as dist, torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
local = int(os.environ["LOCAL_RANK"]); torch.cuda.set_device(local)
dist.init_process_group("nccl")
model = DDP(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).cuda(), device_ids=[local])
step = torch.compile(model)
opt = torch.optim.AdamW(model.parameters(), lr=0.1)
for _ in range(3):
    step(torch.randn(4, 32, device="cuda")).square().mean().backward(); opt.step(); opt.zero_grad()
dist.destroy_process_group()
