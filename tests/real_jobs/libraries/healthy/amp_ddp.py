import os, torch, torch.distributed as dist, torchvision
from torch.nn.parallel import DistributedDataParallel as DDP
local = int(os.environ["LOCAL_RANK"]); torch.cuda.set_device(local)
dist.init_process_group("nccl")
model = torchvision.models.resnet18(num_classes=10).cuda()
model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
model = DDP(model, device_ids=[local], static_graph=True, gradient_as_bucket_view=True)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for step in range(2):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn(2, 3, 64, 64, device="cuda")).square().mean()
    scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); opt.zero_grad(set_to_none=True)
torch.cuda.synchronize()
dist.barrier(device_ids=[local])
dist.destroy_process_group()
