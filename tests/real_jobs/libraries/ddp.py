import os, torch, torch.distributed as dist, torchvision
from torch.nn.parallel import DistributedDataParallel as DDP
rank, local, mistake = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"]), os.environ.get("MISTAKE", "")
torch.cuda.set_device(local)
dist.init_process_group("nccl")
model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(torchvision.models.resnet18(num_classes=10).cuda())
model = DDP(model, device_ids=[local])
opt = torch.optim.SGD(model.parameters(), lr=0.1)
best = 0
for step in range(4):
    model.train(not (mistake == "eval" and rank == 1 and step == 2))
    out = model(torch.randn(2, 3, 64, 64, device="cuda"))
    loss = out.square().mean() if (mistake, rank, step) != ("unused", 1, 2) else 0 * next(model.parameters()).sum()
    if mistake == "nan" and rank == 2 and step == 2:
        continue
    loss.backward(); opt.step(); opt.zero_grad()
    print(step, loss.item())
if mistake == "stops" and rank == 1:
    raise SystemExit(0)
dist.barrier()
dist.destroy_process_group()
