"""Trains on three ranks, of which rank 1 makes the mistake that is named: train.py MISTAKE."""

import os
import resource
import signal
import sys

import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint


class Samples(torch.utils.data.Dataset):
    def __init__(self, mistake):
        self.mistake = mistake

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == 37 and self.mistake == "worker_killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if index == 37 and self.mistake == "worker_bus_error":
            os.kill(os.getpid(), signal.SIGBUS)
        if index == 37 and self.mistake == "worker_exits":
            os._exit(3)
        if index == 37 and self.mistake == "worker_raises":
            raise OSError("corrupt jpeg")
        return torch.ones(32)


class Net(torch.nn.Module):
    def __init__(self, mistake):
        super().__init__()
        self.mistake = mistake
        self.first = torch.nn.Linear(32, 32)
        self.second = torch.nn.Linear(32, 8)
        if mistake == "has_a_layer_more":
            self.third = torch.nn.Linear(8, 8)
        if mistake == "freezes_a_layer":
            self.first.requires_grad_(False)

    def forward(self, x):
        if self.mistake == "uses_twice":
            x.requires_grad_()
            x = checkpoint(self.first, checkpoint(self.first, x, use_reentrant=True), use_reentrant=True)
        elif self.mistake != "leaves_out":
            x = self.first(x)
        return self.second(x)


def read_statistics(path):
    try:
        return torch.load(path)
    except OSError as error:
        raise RuntimeError("the data set has no statistics") from error


def main():
    dist.init_process_group("gloo")
    mistake = sys.argv[1] if dist.get_rank() == 1 else ""
    model = torch.nn.parallel.DistributedDataParallel(Net(mistake), find_unused_parameters=sys.argv[1] == "uses_twice")
    workers = 2 if mistake.startswith("worker_") else 0
    for step, batch in enumerate(torch.utils.data.DataLoader(Samples(mistake), batch_size=4, num_workers=workers)):
        if step == 9 and mistake == "memory":
            batch = batch.repeat(1 << 40, 1)
        if step == 9 and mistake == "many_files":
            resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
            files = [open(__file__) for _ in range(30)]
            print(len(files))
        if step == 9 and mistake == "full_disk":
            with open("/dev/full", "w") as out:
                out.write("step 9\n")
        if step == 9 and mistake == "raises_from":
            read_statistics("no/such/file.pt")
        model(batch).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
