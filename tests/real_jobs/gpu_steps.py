#!/usr/bin/env python3
"""Trains a model for some steps; on a GPU, measures a step. rollcall predicts the same step from this script.

    python3 gpu_steps.py MODEL                       a few steps; what `rollcall predict` records
    python3 gpu_steps.py MODEL --measure FOLDER      on a GPU: FOLDER/MODEL.json and a trace of torch.profiler

FOLDER/MODEL.json has, in milliseconds, the median step by the GPU's events and the time of one step's kernels.
"""
import argparse
import gzip
import json
import os
import pathlib
import statistics

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

MODELS = {}


def model_of(function):
    MODELS[function.__name__] = function
    return function


class Perceptron(nn.Sequential):
    def __init__(self, width, layers):
        super().__init__(*(layer for _ in range(layers) for layer in (nn.Linear(width, width), nn.ReLU())))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class Transformer(nn.Module):
    def __init__(self, words, width, heads, layers):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.words(tokens))))


class Residual(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(outside, inside, 1, bias=False), nn.BatchNorm2d(inside), nn.ReLU(inplace=True),
            nn.Conv2d(inside, inside, 3, padding=1, bias=False), nn.BatchNorm2d(inside), nn.ReLU(inplace=True),
            nn.Conv2d(inside, outside, 1, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        return F.relu(x + self.layers(x))


def perceptron(width, layers, batch, dtype):
    model = Perceptron(width, layers).to(dtype)
    inputs = torch.randn(batch, width, dtype=dtype)
    return model, [inputs], lambda outputs: outputs.float().pow(2).mean(), lambda p: torch.optim.SGD(p, lr=0.01)


def transformer(words, width, heads, layers, batch, length):
    model = Transformer(words, width, heads, layers)
    tokens = torch.randint(words, (batch, length))
    return (model, [tokens], lambda outputs: F.cross_entropy(outputs.view(-1, words).float(), torch.zeros_like(
        outputs[..., 0], dtype=torch.int64).view(-1)), lambda p: torch.optim.AdamW(p, lr=1e-4))


@model_of
def mlp_float32():
    return (*perceptron(2048, 4, 2048, torch.float32), None)


@model_of
def mlp_bfloat16():
    return (*perceptron(4096, 4, 4096, torch.bfloat16), None)


@model_of
def mlp_tiny():
    return (*perceptron(256, 4, 64, torch.float32), None)


@model_of
def gpt_float32():
    return (*transformer(16000, 1024, 16, 2, 2, 1024), None)


@model_of
def gpt_tf32():
    torch.backends.cuda.matmul.allow_tf32 = True
    return (*transformer(16000, 1024, 16, 2, 2, 1024), None)


@model_of
def gpt_autocast():
    return (*transformer(16000, 1024, 16, 4, 4, 1024), torch.bfloat16)


@model_of
def gpt_long():
    return (*transformer(4000, 512, 8, 2, 1, 8192), torch.bfloat16)


@model_of
def convolutions():
    model = nn.Sequential(nn.Conv2d(3, 256, 7, stride=4, padding=3, bias=False), nn.BatchNorm2d(256), nn.ReLU(inplace=True),
                          *(Residual(64, 256) for _ in range(4)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000))
    return (model, [torch.randn(32, 3, 224, 224)], lambda outputs: outputs.float().pow(2).mean(),
            lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), torch.bfloat16)


@model_of
def convolutions_float32():
    return (*convolutions()[:4], None)


def trainer(name):
    torch.manual_seed(0)
    model, inputs, loss_of, optimizer_of, autocast = MODELS[name]()
    model, inputs = DDP(model.cuda()), [each.cuda() for each in inputs]
    optimizer = optimizer_of(model.parameters())

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=autocast, enabled=autocast is not None):
            outputs = model(*inputs)
            loss = loss_of(outputs)
        loss.backward()
        optimizer.step()
    return step


def measure(name, step, folder):
    for _ in range(8):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(20):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        step()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last))
    from torch.profiler import ProfilerActivity, profile
    torch.cuda.reset_peak_memory_stats()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as profiler:
        step()
        torch.cuda.synchronize()
    trace = folder / f"{name}.trace.json"
    profiler.export_chrome_trace(str(trace))
    events = json.loads(trace.read_text())["traceEvents"]
    with gzip.open(f"{trace}.gz", "wt") as out:
        out.write(trace.read_text())
    trace.unlink()
    kernels = [each["dur"] for each in events if each.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")]
    result = {"model": name, "gpu": torch.cuda.get_device_name(0), "torch": torch.__version__,
              "cuda": torch.version.cuda, "step_ms": statistics.median(times), "fastest_ms": min(times),
              "slowest_ms": max(times), "kernels": len(kernels), "kernels_ms": sum(kernels) / 1000,
              "peak_bytes": torch.cuda.max_memory_allocated()}
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(result, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+", choices=MODELS)
    parser.add_argument("--measure", type=pathlib.Path)
    arguments = parser.parse_args()
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29650")):
        os.environ.setdefault(name, value)
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl")
    for name in arguments.models:
        torch.backends.cuda.matmul.allow_tf32 = False
        step = trainer(name)
        if arguments.measure:
            arguments.measure.mkdir(parents=True, exist_ok=True)
            measure(name, step, arguments.measure)
        else:
            for _ in range(4):
                step()
    dist.destroy_process_group()


main()
