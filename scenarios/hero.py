"""The job that README.md begins with, as people write it: rollcall record -n 4 -o hero.json scenarios/hero.py"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

BATCH = 8


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))

    def forward(self, inputs):
        return self.layers(inputs)


def load_shard(rank):
    """This rank's part of the data: 5 batches for rank 0, 6 for the others."""
    size = BATCH * (5 if rank == 0 else 6)
    shard = TensorDataset(torch.randn(size, 64), torch.randint(10, (size,)))
    return DataLoader(shard, BATCH, pin_memory=True)


def save_checkpoint(model):
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "checkpoint.pt")


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    loader = load_shard(dist.get_rank())

    model = DistributedDataParallel(Net().cuda(local_rank))
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for inputs, labels in loader:
        inputs, labels = inputs.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        loss = criterion(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()              # DDP all-reduces the gradients here
        optimizer.step()

    save_checkpoint(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
