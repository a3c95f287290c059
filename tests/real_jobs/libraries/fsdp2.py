import os, torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
import torch.distributed.checkpoint as dcp
rank, local, mistake = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"]), os.environ.get("MISTAKE", "")
device = torch.device("cuda", local)
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
mesh = init_device_mesh("cuda", (dist.get_world_size(),), mesh_dim_names=("dp",))
model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(3)]).to(device)
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(4):
    loss = model(torch.randn(4, 32, device=device)).square().mean()
    loss.backward()
    if not (mistake == "clips" and rank == 2 and step == 2):
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
    opt.step(); opt.zero_grad()
    if mistake == "evaluates" and rank == 0 and step == 1:
        with torch.no_grad():
            model(torch.randn(4, 32, device=device))
    print(step, loss.item())
if mistake != "saves" or rank == 0:
    dcp.save({"model": model.state_dict()}, checkpoint_id=f"/tmp/fsdp2.{os.environ['MASTER_PORT']}")
dist.barrier()
dist.destroy_process_group()
