import os, tempfile, torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy
from torch.distributed.device_mesh import init_device_mesh
import torch.distributed.checkpoint as dcp
rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", local)
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
mesh = init_device_mesh("cuda", (dist.get_world_size(),), mesh_dim_names=("dp",))
with torch.device("meta"):
    model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(3)])
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for layer in model:
    fully_shard(layer, mesh=mesh, mp_policy=policy)
fully_shard(model, mesh=mesh, mp_policy=policy)
model.to_empty(device="cuda")
for p in model.parameters():
    torch.nn.init.normal_(p, std=0.1)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
for step in range(3):
    loss = model(torch.randn(4, 32, device=device)).float().square().mean()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if hasattr(norm, "full_tensor"): norm = norm.full_tensor()
    opt.step(); opt.zero_grad()
    total = loss.detach().clone(); dist.all_reduce(total, op=dist.ReduceOp.AVG)
folder = f"/tmp/fsdp2.{os.environ['MASTER_PORT']}"
dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
dist.barrier()
dist.destroy_process_group()
