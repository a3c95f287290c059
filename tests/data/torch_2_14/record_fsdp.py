#!/usr/bin/env python3
"""Runs small models under fully_shard on real PyTorch and records every call of every rank.

    python3 -B record_fsdp.py [--out FOLDER] [CASE ...]

A case is a dictionary in fsdp_cases.py; its file, FOLDER/CASE.json, has the case and what every rank did. Cases run on
Gloo, one process per rank. Cases with many ranks, or with an element type that a build of Gloo may lack, run on torch's
"fake" backend, one rank after the other. It completes every call at once, so only the calls count there.
"""
import argparse
import json
import os
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.distributed_c10d import _resolve_process_group
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (BackwardPrefetch, FSDPModule, FullyShardedDataParallel, MixedPrecision,
                                    MixedPrecisionPolicy, ShardingStrategy, fully_shard)
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

from fsdp_cases import CASES

PATIENCE_S = 20.0   # a case that takes longer hangs
DTYPES = {name: getattr(torch, name) for name in ("float32", "float64", "float16", "bfloat16")}
# The name of an op in torch's tables -> its name in torch.distributed.
NAMES = {
    "c10d._allgather_base_": "all_gather_into_tensor",
    "c10d._reduce_scatter_base_": "reduce_scatter_tensor",
    "c10d.allreduce_": "all_reduce",
    "c10d.allgather_": "all_gather",
    "c10d.reduce_scatter_": "reduce_scatter",
    "c10d.broadcast_": "broadcast",
    "c10d.barrier": "barrier",
    "_c10d_functional.all_gather_into_tensor": "all_gather_into_tensor",
    "_c10d_functional.all_reduce": "all_reduce",
    "_c10d_functional.reduce_scatter_tensor": "reduce_scatter_tensor",
}


def tensors_of(args):
    for arg in args:
        if isinstance(arg, torch.Tensor):
            yield arg
        elif isinstance(arg, (list, tuple)):
            yield from tensors_of(arg)


def group_of(args):
    for arg in args:
        if isinstance(arg, torch.ScriptObject) and "ProcessGroup" in str(arg._type()):
            return dist.ProcessGroup.unbox(arg)
    return None


def call_text(name, group, sent, received, dtype, reduce):
    """'all_gather_into_tensor 0,1 10>20 float32': the op, the group's ranks, elements in and out, type, reduce op."""
    ranks = ",".join(map(str, dist.get_process_group_ranks(group)))
    return " ".join(filter(None, (name, ranks, "%d>%d" % (sent, received), str(dtype).removeprefix("torch."), reduce)))


class Recorder(TorchDispatchMode):
    """Records every collective of this rank."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(t is DTensor for t in types):
            return NotImplemented
        kwargs = kwargs or {}
        name = NAMES.get(str(func).removesuffix(".default"))
        if name is None:
            return func(*args, **kwargs)
        functional = str(func).startswith("_c10d_functional")
        if functional:
            group = _resolve_process_group(args[-1])
            sent, dtype = args[0].numel(), args[0].dtype
            received = sent * group.size() if name.startswith("all_gather") else sent
            reduce = args[1].upper() if name == "all_reduce" else None
        else:
            group = group_of(args)
            tensors = list(tensors_of(args))
            sent, received, dtype = tensors[-1].numel(), tensors[0].numel(), tensors[0].dtype
            if name in ("all_gather", "all_gather_into_tensor"):
                received = sent * group.size()
            reduce = REDUCE[-1] if name in ("all_reduce", "reduce_scatter_tensor") else None
        self.log("call", call_text(name, group, sent, received, dtype, reduce))
        return func(*args, **kwargs)


# The arguments of the wrappers below, innermost last: an op's own ReduceOp cannot be read.
REDUCE = []


def note_reduce(module, name):
    real = getattr(module, name)

    def call(*args, **kwargs):
        op = kwargs.get("op")
        if op is None:
            op = next((a for a in args if isinstance(a, (dist.ReduceOp, dist.ReduceOp.RedOpType))), dist.ReduceOp.SUM)
        text = str(op).split(".")[-1] if isinstance(op, dist.ReduceOp.RedOpType) else reduce_text(op)
        REDUCE.append(text)
        try:
            return real(*args, **kwargs)
        finally:
            REDUCE.pop()
    setattr(module, name, call)


def reduce_text(op):
    for kind in ("SUM", "AVG", "MAX", "MIN", "PRODUCT", "PREMUL_SUM"):
        if op == getattr(dist.ReduceOp, kind, None):
            return kind
    return "PREMUL_SUM"


class Unit(nn.Module):
    """Adds the sum of its parameters, so all elements of a parameter get the same gradient."""

    def __init__(self, spec, base):
        super().__init__()
        spec = spec if isinstance(spec, dict) else {"params": spec}
        self.frozen = spec.get("frozen", [])
        self.count = len(spec["params"])
        dtypes = spec.get("dtypes", [])
        for i, shape in enumerate(spec["params"]):
            dtype = DTYPES[dtypes[i]] if i < len(dtypes) else torch.float32
            numel = int(torch.tensor(shape).prod())
            values = (torch.arange(numel, dtype=torch.float32) + base).reshape(shape).to(dtype)
            trainable = not (self.frozen is True or (self.frozen is not False and i in self.frozen))
            self.register_parameter("p%d" % i, nn.Parameter(values, requires_grad=trainable))
        self.inner = nn.ModuleList(Unit(inner, base + 100) for inner in spec.get("inner", []))

    def forward(self, x, factor, unused=()):
        for inner in self.inner:
            x = inner(x, factor)
        for i in range(self.count):     # FullyShardedDataParallel replaces parameters by tensors
            if i not in unused:
                x = x + (getattr(self, "p%d" % i).sum() * factor).to(x.dtype)
        return x


class Model(nn.Module):
    def __init__(self, case):
        super().__init__()
        root = case.get("root", {})
        self.stem = Unit(root["before"], 1) if "before" in root else None
        self.units = nn.ModuleList(Unit(spec, 10 * (i + 1)) for i, spec in enumerate(case["units"]))
        self.head = Unit(root["after"], 7) if "after" in root else None

    def forward(self, x, factor, skip=(), unused=()):
        if self.stem is not None:
            x = self.stem(x, factor)
        for i, unit in enumerate(self.units):
            if i not in skip:
                x = unit(x, factor, unused if i == 0 else ())
        if self.head is not None:
            x = self.head(x, factor)
        return x


def policy(spec):
    spec = spec or {}
    return MixedPrecisionPolicy(**{k: DTYPES[v] for k, v in spec.items()}) if spec else MixedPrecisionPolicy()


def shard(unit, case, mesh, spec):
    spec = spec if isinstance(spec, dict) else {}
    for inner, inner_spec in zip(unit.inner, spec.get("inner", [])):
        shard(inner, case, mesh, inner_spec)
    kwargs = {"mesh": mesh} if mesh is not None else {}
    reshard = spec.get("reshard", case.get("reshard"))
    fully_shard(unit, reshard_after_forward=reshard, mp_policy=policy(case.get("mp")), **kwargs)


def build(case):
    model = Model(case)
    mesh = None
    if "mesh" in case:
        mesh = init_device_mesh("cpu", tuple(case["mesh"]), mesh_dim_names=("replicate", "shard"))
    else:
        mesh = init_device_mesh("cpu", (case["world"],))
    for unit, spec in zip(model.units, case["units"]):
        shard(unit, case, mesh, spec)
    if case.get("wrap_root", True):
        fully_shard(model, mesh=mesh, reshard_after_forward=case.get("root", {}).get("reshard", case.get("reshard")),
                    mp_policy=policy(case.get("mp")))
    for at, targets in case.get("forward_prefetch", {}).items():
        model.units[int(at)].set_modules_to_forward_prefetch([model.units[t] for t in targets])
    for at, targets in case.get("backward_prefetch", {}).items():
        model.units[int(at)].set_modules_to_backward_prefetch([model.units[t] for t in targets])
    for i in case.get("keep_sharded_in_backward", []):
        model.units[i].set_unshard_in_backward(False)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            if "divide_factor" in case:
                module.set_gradient_divide_factor(case["divide_factor"])
            if case.get("force_sum"):
                module.set_force_sum_reduction_for_comms(True)
    if case.get("reduce_scatter_unused_params"):
        model.set_reduce_scatter_unused_params(True)
    return model


def build_fsdp1(case):
    """Wraps every unit, and the whole model, in FullyShardedDataParallel."""
    model = Model(case)
    prefetch = case.get("backward_prefetch", "default")
    options = {"device_id": torch.device("cpu"), "sharding_strategy": ShardingStrategy[case.get("strategy", "FULL_SHARD")],
               "forward_prefetch": case.get("forward_prefetch", False)}
    if "mesh" in case:
        options["device_mesh"] = init_device_mesh("cpu", tuple(case["mesh"]), mesh_dim_names=("replicate", "shard"))
    if "mp" in case:
        options["mixed_precision"] = MixedPrecision(**{k: DTYPES[v] for k, v in case["mp"].items()})
    if prefetch != "default":
        options["backward_prefetch"] = prefetch and BackwardPrefetch[prefetch]
    for i, unit in enumerate(model.units):
        model.units[i] = FullyShardedDataParallel(unit, **options)
    return FullyShardedDataParallel(model, **options)


def local(tensor):
    tensor = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return [float(v) for v in tensor.detach().double().flatten().tolist()]


def run_program(case, rank, log):
    model = build_fsdp1(case) if case.get("api") == "fsdp1" else build(case)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    with Recorder(log):
        run_steps(case["program"][rank] if case.get("per_rank") else case["program"], case, model, optimizer, rank, log)


def run_steps(steps, case, model, optimizer, rank, log):
    loss, count, no_sync = None, 0, None
    for step in steps:
        verb, *args = step if isinstance(step, list) else [step]
        if verb == "forward":
            options = args[0] if args else {}
            x = torch.ones(1, requires_grad=options.get("input_grad", False))
            factor = float((rank + 1) * (count + 1))
            count += 1
            with torch.set_grad_enabled(options.get("grad", True)):
                loss = model(x, factor, options.get("skip", ()), options.get("unused", ())).sum()
        elif verb == "backward":
            loss.backward()
        elif verb == "step":
            optimizer.step()
        elif verb == "zero_grad":
            optimizer.zero_grad()
        elif verb == "enter_no_sync":
            no_sync = model.no_sync()
            no_sync.__enter__()
        elif verb == "leave_no_sync":
            no_sync.__exit__(None, None, None)
        elif case.get("api") == "fsdp1" and verb == "clip":
            log("value", ["norm", local(model.clip_grad_norm_(1.0, *map(float, args)))])
        elif case.get("api") == "fsdp1" and verb in ("full", "state_dict"):
            state = model.state_dict()
            if verb == "full":
                log("value", ["full", [local(p) for p in state.values()]])
        elif verb == "clip":
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, *map(float, args))
            if args != ["inf"]:     # where reading the norm is a separate call
                log("value", ["norm", local(norm.full_tensor() if isinstance(norm, DTensor) else norm)])
        elif verb == "full":
            log("value", ["full", [local(p.full_tensor()) for p in model.parameters()]])
        elif verb == "state_dict":
            from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
            get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
        elif verb == "grads":
            log("value", ["grads", [None if p.grad is None else local(p.grad) for p in model.parameters()]])
        elif verb == "shards":
            log("value", ["shards", [local(p) for p in model.parameters()]])
        elif verb == "unshard":
            (model.units[args[0]] if args[0] >= 0 else model).unshard()
        elif verb == "reshard":
            (model.units[args[0]] if args[0] >= 0 else model).reshard()
        elif verb.startswith("set_"):
            target = model if len(args) < 2 else model.units[args[1]]
            getattr(target, verb)(args[0])
        else:
            raise SystemExit("no such step: " + verb)


def run_rank(case, rank, backend, path, store):
    """Writes what this rank did, as lines of JSON, to `path`: even a killed rank has written what came before."""
    out = open(path, "w")

    def log(kind, value):
        if kind == "value" and backend == "fake":
            return
        out.write(json.dumps([kind, value]) + "\n")
        out.flush()

    try:
        if backend == "fake":
            dist.init_process_group("fake", rank=rank, world_size=case["world"], store=FakeStore())
        else:
            dist.init_process_group("gloo", rank=rank, world_size=case["world"], store=dist.FileStore(store, case["world"]))
        run_program(case, rank, log)
        log("end", ["completed"])
    except BaseException as error:
        log("end", ["error", type(error).__name__, str(error).splitlines()[0] if str(error) else ""])
    time.sleep(case.get("linger", 0))


def read_rank(path):
    entry = {"calls": []}
    for line in open(path):
        kind, value = json.loads(line)
        if kind == "call":
            entry["calls"].append(value)
        elif kind == "value":
            entry.setdefault("values", []).append(value)
        else:
            entry["end"] = value
    entry.setdefault("end", ["hangs"])
    return entry


def run_case(name, case, folder):
    backend = case.get("backend", "gloo")
    paths = [os.path.join(folder, "%s.%d" % (name, rank)) for rank in range(case["world"])]
    ranks = list(case.get("ranks", range(case["world"])))
    children = []
    for rank in ranks:
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            torch.set_num_threads(1)
            run_rank(case, rank, backend, paths[rank], os.path.join(folder, name + ".store"))
            os._exit(0)
        children.append(pid)
    deadline = time.time() + PATIENCE_S
    codes = {}
    while len(codes) < len(children) and time.time() < deadline:
        for pid in children:
            if pid not in codes:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    codes[pid] = status
        time.sleep(0.02)
    for pid in children:
        if pid not in codes:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    entries = [read_rank(paths[rank]) for rank in ranks]
    for pid, entry in zip(children, entries):
        if os.WIFSIGNALED(codes.get(pid, 0)):
            entry["end"] = ["crash", signal.Signals(os.WTERMSIG(codes[pid])).name]
    return entries


def write(document, path):
    """One line a call and one a value, so that files can be compared."""
    dump = json.dumps
    lines = ["{", ' "name": %s,' % dump(document["name"]), ' "torch": %s,' % dump(document["torch"]),
             ' "case": %s,' % dump(document["case"]), ' "ranks": [']
    for i, rank in enumerate(document["ranks"]):
        lines.append("  {")
        for key, entries in rank.items():
            if key == "end":
                continue
            lines.append("   %s: [" % dump(key))
            lines.append(",\n".join("    " + dump(entry) for entry in entries))
            lines.append("   ],")
        lines.append('   "end": %s' % dump(rank["end"]))
        lines.append("  }" + ("," if i + 1 < len(document["ranks"]) else ""))
    lines += [" ]", "}"]
    with open(path, "w") as out:
        out.write("\n".join(line for line in lines if line) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=os.path.join(HERE, "fsdp"))
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    for name in ("all_reduce", "reduce_scatter_single", "reduce_scatter_tensor"):
        if hasattr(dist, name):
            note_reduce(dist, name)
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if options.cases and name not in options.cases:
                continue
            document = {"name": name, "torch": torch.__version__.split("+")[0], "case": case,
                        "ranks": run_case(name, case, folder)}
            write(document, os.path.join(options.out, name + ".json"))
            print(name, [rank["end"][0] for rank in document["ranks"]],
                  len(document["ranks"][0]["calls"]), flush=True)


if __name__ == "__main__":
    main()
