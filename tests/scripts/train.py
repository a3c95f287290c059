"""Trains small models with Join, DistributedDataParallel and ZeroRedundancyOptimizer, one after the other in one job.

train.py FILE...: the "params" of each file are the options of a training script, as in tests/data/golden.
"""

import contextlib
import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from counter import Counter


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 2, bias=False)
        self.left = nn.Linear(2, 1, bias=False)
        self.right = nn.Linear(2, 1, bias=False)

    def forward(self, inputs, goes_left):
        return (self.left if goes_left else self.right)(self.body(inputs))


def with_a_buffer():
    module = nn.Linear(2, 1)
    module.register_buffer("seen", torch.zeros(2))
    return module


MODELS = {
    "linear": lambda: nn.Linear(2, 1),
    "linear_nobias": lambda: nn.Linear(1, 1, bias=False),
    "mlp3": lambda: nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4), nn.Linear(4, 1)),
    "bn": lambda: nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)),
    "buffer_only": with_a_buffer,
    "branch": TwoHeads,
}


class Training:
    def __init__(self, params):
        self.params = params
        module = MODELS[params.get("model", "linear")]()
        for name, parameter in module.named_parameters():
            parameter.requires_grad = name not in params.get("frozen", ())
        options = dict(params.get("ddp", {}))
        if "bucket_bytes" in params:
            options["bucket_cap_mb"] = params["bucket_bytes"] / 2**20
        dist._DEFAULT_FIRST_BUCKET_BYTES = params.get("first_bucket_bytes", 2**20)
        self.model = DistributedDataParallel(module, **options)
        if "comm_hook" in params:
            self.model.register_comm_hook(None, getattr(default_hooks, params["comm_hook"]))
        self.optimizer = self.make_optimizer(module)
        self.counter = Counter(torch.device("cpu"), dist.group.WORLD)

    def make_optimizer(self, module):
        kind = self.params.get("opt", "sgd")
        base = torch.optim.Adam if kind.endswith("adam") else torch.optim.SGD
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if kind.startswith("zero"):
            return ZeroRedundancyOptimizer(trained, base, lr=0.1, **self.params.get("zero", {}))
        return base(trained, lr=0.1)

    def run(self):
        inputs = self.params["inputs"]
        for epoch in inputs if isinstance(inputs[0], list) else [inputs]:
            with self.join():
                for index in range(epoch[rank]):
                    self.step(index)
        if self.params.get("eval"):
            with torch.no_grad():
                self.forward(0)

    def join(self):
        if not self.params.get("join", True):
            return contextlib.nullcontext()
        joinables = {"ddp": self.model, "zero": self.optimizer, "tally": self.counter}
        return Join([joinables[name] for name in self.params.get("order", ["ddp"])],
                    **self.params.get("join_kwargs", {}))

    def step(self, index):
        self.count("before")
        clears_first = self.params.get("zero_grad_first", False)
        if clears_first:
            self.clear()
        accumulates = "sync_every" in self.params and (index + 1) % self.params["sync_every"] != 0
        with self.model.no_sync() if accumulates else contextlib.nullcontext():
            self.learn(index)
        if not accumulates or self.params.get("step_always"):
            self.optimizer.step()
        self.count("after")
        if not accumulates and not clears_first and not self.params.get("keep_grads"):
            self.clear()

    def learn(self, index):
        loss = self.forward(index).sum()
        if self.params.get("skip_backward") == [rank, index]:
            return
        if self.params.get("backward_twice"):
            loss.backward(retain_graph=True)
        loss.backward()

    def forward(self, index):
        kind = self.params.get("model", "linear")
        inputs = torch.ones(2 if kind == "bn" else 1, 1 if kind == "linear_nobias" else 2)
        if kind == "branch":
            return self.model(inputs, not self.params.get("split") or (rank + index) % 2 == 0)
        return self.model(inputs)

    def clear(self):
        self.optimizer.zero_grad(set_to_none=self.params.get("set_to_none", False))

    def count(self, when):
        if self.params.get("tally") == when:
            self.counter()


def count_inputs(params):
    counter = Counter(torch.device("cpu"), dist.group.WORLD)
    with Join([counter], sync_max_count=params["sync_max_count"]):
        for _ in range(params["inputs"][rank]):
            counter()


def run(params):
    if "sync_max_count" in params:
        count_inputs(params)
    else:
        Training(params).run()


dist.init_process_group("gloo")
rank = dist.get_rank()
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        given = json.load(file)["params"]
    try:
        run(given)
    except RuntimeError as error:  # early termination, which all ranks raise
        print(error)
