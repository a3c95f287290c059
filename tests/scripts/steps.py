"""Training steps with known work: a model, and perhaps an optimizer, by name."""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = ((q @ k.transpose(-1, -2)) / (width // self.heads) ** 0.5).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, words=1000, width=128, heads=4, layers=4):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def model_of(name):
    """Returns the model and its input."""
    torch.manual_seed(0)
    if name == "mlp":
        return nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.ReLU())]), torch.randn(64, 512)
    if name == "convolution":
        return nn.Conv2d(3, 8, 3, padding=1), torch.randn(4, 3, 16, 16)
    if name == "attention":
        return Attention(64, 4), torch.randn(2, 16, 64)
    return Transformer(), torch.randint(0, 1000, (4, 64))


def optimizer_of(name, parameters):
    return torch.optim.Adam(parameters, foreach=True) if name == "adam" else torch.optim.SGD(parameters, lr=0.1, foreach=True)


def shard(model, **mesh):
    from torch.distributed.fsdp import fully_shard
    for block in model.blocks:
        fully_shard(block, **mesh)
    fully_shard(model, **mesh)


def main(name, optimizer="sgd", how="ddp", steps="3"):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model, given = model_of(name)
    model, given = model.cuda(), given.cuda()
    if how == "fsdp":
        shard(model)
    else:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = optimizer_of(optimizer, model.parameters())
    precision = torch.bfloat16 if how == "autocast" else None
    for index in range(int(steps)):
        if how == "slow" and dist.get_rank() == 1:
            given = given.repeat(2, *[1] * (given.dim() - 1)) if index == 0 else given
        with torch.autocast("cuda", dtype=precision or torch.float16, enabled=precision is not None):
            loss = model(given).float().square().mean() if precision else model(given).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
