"""A module that scripts import from their folder: only this file names DDP, which makes torch 2 import its compiler."""

import torch


def wrapped(model):
    return torch.nn.parallel.DistributedDataParallel(model)
