"""What scripts import from beside them: only here is DDP mentioned, which makes torch 2 import its compiler."""

import torch


def wrapped(model):
    return torch.nn.parallel.DistributedDataParallel(model)
