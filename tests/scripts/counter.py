"""The custom Joinable of PyTorch's Join tutorial: counts the inputs of all ranks. counter.py [INPUTS [SYNC]]"""

import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join, Joinable, JoinHook


class CounterJoinHook(JoinHook):
    def __init__(self, counter, sync_max_count):
        self.counter = counter
        self.sync_max_count = sync_max_count

    def main_hook(self):
        if "forgetful" not in sys.argv:
            dist.all_reduce(torch.zeros(1))

    def post_hook(self, is_last_joiner):
        if not self.sync_max_count:
            return
        rank = dist.get_rank(self.counter.process_group)
        common_rank = self.counter.find_common_rank(rank, is_last_joiner)
        if rank == common_rank:
            self.counter.max_count = self.counter.count.detach().clone()
        dist.broadcast(self.counter.max_count, src=common_rank)


class Counter(Joinable):
    def __init__(self, device, process_group):
        super().__init__()
        self.device = device
        self.process_group = process_group
        self.count = torch.zeros(1)
        self.max_count = torch.zeros(1)

    def __call__(self):
        Join.notify_join_context(self)
        total = torch.ones(1)
        dist.all_reduce(total)
        self.count += total

    def join_hook(self, **kwargs):
        return CounterJoinHook(self, kwargs.get("sync_max_count", False))

    @property
    def join_device(self):
        return self.device

    @property
    def join_process_group(self):
        return self.process_group

    def find_common_rank(self, rank, to_consider):
        common_rank = torch.tensor([rank if to_consider else -1])
        dist.all_reduce(common_rank, op=dist.ReduceOp.MAX, group=self.process_group)
        return common_rank.item()


def main():
    inputs = [int(count) for count in (sys.argv[1] if len(sys.argv) > 1 else "5,6").split(",")]
    sync_max_count = len(sys.argv) < 3 or sys.argv[2] == "1"
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    counter = Counter(torch.device("cpu"), dist.group.WORLD)
    with Join([counter], sync_max_count=sync_max_count):
        for _ in range(inputs[rank]):
            counter()
    print(f"{int(counter.count.item())} inputs processed before rank {rank} joined!")
    print(f"{int(counter.max_count.item())} inputs processed across all ranks!")


if __name__ == "__main__":
    main()
