import os, torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module, ColwiseParallel, RowwiseParallel
from torch.nn.parallel import DistributedDataParallel as DDP
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
torch.set_default_device("cuda")
mesh = init_device_mesh("cuda", (1, int(os.environ["WORLD_SIZE"])), mesh_dim_names=("dp", "tp"))
torch.manual_seed(0)
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 64), torch.nn.Linear(64, 16)
    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))
model = torch.nn.Sequential(Block(), Block())
for block in model:
    parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
for step in range(3):
    model(torch.ones(4, 16)).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step(); opt.zero_grad()
sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
dist.all_gather(sizes, torch.tensor([dist.get_rank()]))
print("sizes", [s.item() for s in sizes])
dist.destroy_process_group()
