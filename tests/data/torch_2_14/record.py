#!/usr/bin/python3
"""Runs small programs on real PyTorch 2.14 with Gloo and records every c10d call of every rank. (It also made the
meshes of ../torch_2_6, on PyTorch 2.6.)

    python3 -B record.py OUT [REGEX]    one JSON file per case into OUT/{pipelining,tensor_parallel,mesh,ddp}/

Every rank is a process. A dispatch mode sees each call where it enters c10d: calls of torch.distributed, and functional
collectives. A line of a file is one call: operation, group (global ranks), peer (global), tag, elements given, dtype.
Calls inside one batch_isend_irecv come after a line with their number. `wait` is a pipeline schedule's wait for one of
its messages.
"""
import datetime
import json
import os
import re
import sys
import tempfile
import traceback

os.environ.setdefault("USE_LIBUV", "0")
os.environ["OMP_NUM_THREADS"] = "1"

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, schedules
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor import parallel
from torch.utils._python_dispatch import TorchDispatchMode

torch.set_num_threads(1)
CASES = {}


def case(folder, name, world, **params):
    def add(body):
        CASES[name] = (folder, name, world, params, body)
        return body
    return add


class Calls(TorchDispatchMode):
    """Records the calls that reach c10d's operators, and passes them on."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self.notes = {}     # about the rank

    def mark(self, text):
        self.lines.append({"mark": text})

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if DTensor in types:
            return NotImplemented   # a DTensor is first replaced by its calls
        space, name = func._schema.name.split("::")
        has_group = any(a.name in ("process_group", "group_name") for a in func._schema.arguments)
        if space in ("c10d", "_c10d_functional") and has_group:
            name = {"allreduce_": "all_reduce"}.get(name, name.rstrip("_"))
            self.note(name, func._schema, args, kwargs)
        return func(*args, **kwargs)

    def note(self, name, schema, args, kwargs):
        given = dict(zip((a.name for a in schema.arguments), args))
        given.update(kwargs)
        group = given.get("process_group")
        if group is not None:
            group = dist.ProcessGroup.unbox(group)
        else:
            group = given["group_name"]
            group = c10d._resolve_process_group(group) if isinstance(group, str) else group
        ranks = dist.get_process_group_ranks(group)
        line = {"op": name, "group": ranks}
        for key in ("dst", "src", "root_rank"):
            if key in given and given[key] >= 0:
                line["peer" if key != "root_rank" else "root"] = ranks[given[key]]
        if "tag" in given and isinstance(given["tag"], int):
            line["tag"] = given["tag"]
        tensors = []
        for key in ("tensors", "input", "input_tensors", "inputs", "input_tensor", "tensor"):
            if key in given:
                tensors = flat(given[key])
                break
        outputs = []
        for key in ("output_tensors", "outputs", "output_tensor", "output"):
            if key in given:
                outputs = flat(given[key])
                break
        line["numel"] = sum(t.numel() for t in tensors)
        if outputs and name == "scatter":
            line["out_numel"] = sum(t.numel() for t in outputs)
        if tensors or outputs:
            line["dtype"] = str((tensors or outputs)[0].dtype).replace("torch.", "")
        for key in ("output_split_sizes", "input_split_sizes"):
            if given.get(key):
                line[key] = list(given[key])
        self.lines.append(line)


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in (value or []) for t in flat(v)]


REAL_BATCH = c10d.batch_isend_irecv


def watch_batches(calls):
    def batch(ops):
        calls.lines.append({"op": "batch_isend_irecv", "count": len(ops)})
        return REAL_BATCH(ops)
    dist.batch_isend_irecv = batch
    c10d.batch_isend_irecv = batch

    def wait(works):
        for work in works:
            calls.lines.append({"op": "wait"})
            work.wait()
    schedules._wait_batch_p2p = wait


def run_rank(body, params, rank, world, store, path):
    timeout = datetime.timedelta(seconds=params.get("timeout_s", 300))
    dist.init_process_group("gloo", store=dist.FileStore(store, world), rank=rank, world_size=world, timeout=timeout)
    calls = Calls()
    watch_batches(calls)
    error = None
    try:
        with calls:
            body(calls, rank, world, **params)
    except Exception as caught:     # noqa: BLE001
        error = "%s: %s" % (type(caught).__name__, str(caught).splitlines()[0])
        if os.environ.get("VERBOSE"):
            traceback.print_exc()
    with open(path, "w") as file:
        json.dump({"error": error, "notes": calls.notes, "calls": calls.lines}, file)
    try:
        dist.barrier()
    except Exception:               # noqa: BLE001
        pass


def run_case(out, folder, name, world, params, body):
    with tempfile.TemporaryDirectory() as place:
        pids = []
        for rank in range(world):
            pid = os.fork()
            if pid == 0:
                try:
                    run_rank(body, params, rank, world, os.path.join(place, "store"), os.path.join(place, str(rank)))
                finally:
                    sys.stdout.flush()
                    os._exit(0)
            pids.append(pid)
        for pid in pids:
            os.waitpid(pid, 0)
        ranks = [json.load(open(os.path.join(place, str(r)))) for r in range(world)]
    write(os.path.join(out, folder, name + ".json"), name, world, params, ranks)
    print(name, [len(r["calls"]) for r in ranks], sorted({r["error"] for r in ranks if r["error"]}))


def write(path, name, world, params, ranks):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write('{\n "case": %s,\n "torch": %s,\n "backend": "gloo",\n "world_size": %d,\n "params": %s,\n "ranks": [\n'
                   % (json.dumps(name), json.dumps(torch.__version__), world, json.dumps(params)))
        for i, rank in enumerate(ranks):
            file.write('  {"rank": %d, "error": %s,' % (i, json.dumps(rank["error"])))
            for key, value in rank["notes"].items():
                file.write(" %s: %s," % (json.dumps(key), json.dumps(value)))
            file.write(' "calls": [')
            file.write(",".join("\n   " + json.dumps(line) for line in rank["calls"]))
            file.write("\n  ]}%s\n" % ("," if i + 1 < len(ranks) else ""))
        file.write(" ]\n}\n")


# Pipelining

WIDTH = 4
ROWS = 2    # in a microbatch


def pipeline(calls, rank, world, schedule, stages, microbatches, static=True, steps=1, evals=0, groups=1, **options):
    ranks = world // groups
    group = None
    if groups > 1:
        mesh = init_device_mesh("cpu", (groups, ranks), mesh_dim_names=("dp", "pp"))
        group = mesh.get_group("pp")
        rank = mesh.get_local_rank("pp")
    kind = schedules.get_schedule_class(schedule)
    count = ranks * stages
    style = "v" if schedule in ("ZBVZeroBubble", "DualPipeV") else "loop"
    own = schedules.generate_rank_to_stage_mapping(ranks, count, style=style)[rank]
    shape = torch.ones(ROWS, WIDTH, requires_grad=True)
    given = dict(input_args=shape, output_args=shape) if static else {}
    made = [PipelineStage(nn.Sequential(nn.Linear(WIDTH, WIDTH)), s, count, torch.device("cpu"), group=group, **given)
            for s in own]
    loss = lambda y, t: (y - t).square().mean()     # noqa: E731
    single = issubclass(kind, schedules.PipelineScheduleSingle)
    plan = kind(made[0] if single else made, microbatches, loss_fn=loss, **options)
    x = torch.ones(ROWS * microbatches, WIDTH)
    if not single:
        calls.notes["actions"] = [str(a) for a in plan.pipeline_order_with_comms[rank]]

    def call(what, step):
        calls.mark("%s %d" % (step, what))
        args = (x,) if 0 in own else ()
        kwargs = {"target": x} if count - 1 in own else {}
        getattr(plan, step)(*args, **kwargs)
    for i in range(steps):
        call(i, "step")
    for i in range(evals):
        call(i, "eval")


for _schedule in ("GPipe", "1F1B"):
    for _world, _microbatches in ((2, 2), (2, 5), (4, 4), (4, 7)):
        case("pipelining", "%s_w%d_m%d" % (_schedule.lower(), _world, _microbatches), _world, schedule=_schedule, stages=1,
             microbatches=_microbatches)(pipeline)
for _schedule in ("Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble"):
    for _world, _stages, _microbatches in ((2, 2, 2), (2, 2, 4), (2, 3, 4), (4, 2, 4), (4, 2, 8), (4, 2, 10)):
        if _schedule == "LoopedBFS" and (_stages, _microbatches) in ((3, 4), (2, 10)):
            continue
        case("pipelining", "%s_w%d_s%d_m%d" % (_schedule.lower(), _world, _stages, _microbatches), _world,
             schedule=_schedule, stages=_stages, microbatches=_microbatches)(pipeline)
for _schedule in ("ZBVZeroBubble", "DualPipeV"):
    for _world, _microbatches in ((2, 4), (2, 6), (4, 8), (4, 11)):
        case("pipelining", "%s_w%d_m%d" % (_schedule.lower(), _world, _microbatches), _world, schedule=_schedule, stages=2,
             microbatches=_microbatches)(pipeline)
case("pipelining", "zbvzerobubble_w2_m2", 2, schedule="ZBVZeroBubble", stages=2, microbatches=2)(pipeline)
case("pipelining", "interleaved1f1b_w4_s2_m3", 4, schedule="Interleaved1F1B", stages=2, microbatches=3)(pipeline)
case("pipelining", "interleaved1f1b_w2_s2_m5", 2, schedule="Interleaved1F1B", stages=2, microbatches=5)(pipeline)
case("pipelining", "1f1b_w4_m3", 4, schedule="1F1B", stages=1, microbatches=3)(pipeline)
case("pipelining", "dualpipev_w2_m3", 2, schedule="DualPipeV", stages=2, microbatches=3)(pipeline)
case("pipelining", "gpipe_dynamic", 2, schedule="GPipe", stages=1, microbatches=2, static=False, steps=2)(pipeline)
case("pipelining", "interleaved1f1b_dynamic", 2, schedule="Interleaved1F1B", stages=2, microbatches=2, static=False,
     steps=2)(pipeline)
case("pipelining", "zbvzerobubble_dynamic", 2, schedule="ZBVZeroBubble", stages=2, microbatches=4, static=False)(pipeline)
case("pipelining", "1f1b_steps_eval", 2, schedule="1F1B", stages=1, microbatches=2, steps=2, evals=1)(pipeline)
case("pipelining", "interleaved1f1b_steps_eval", 2, schedule="Interleaved1F1B", stages=2, microbatches=4, steps=1,
     evals=1)(pipeline)
case("pipelining", "1f1b_two_pipelines", 4, schedule="1F1B", stages=1, microbatches=3, groups=2)(pipeline)
for _schedule, _stages in (("Interleaved1F1B", 2), ("DualPipeV", 2), ("ZBVZeroBubble", 2)):
    case("pipelining", "%s_deferred" % _schedule.lower(), 4, schedule=_schedule, stages=_stages, microbatches=8,
         defer_pp_recv=True)(pipeline)


# DTensor

def placements(text):
    kinds = {"R": Replicate(), "P": Partial()}
    return [kinds.get(p) or Shard(int(p[1:])) for p in text.split()]


def redistribute(calls, rank, world, mesh, cases, flatten=()):
    names = ["dp", "tp", "cp"][:len(mesh)]
    made = init_device_mesh("cpu", tuple(mesh), mesh_dim_names=tuple(names))
    for dims in flatten:
        made[tuple(dims.split("_"))]._flatten(dims)
    for number, (shape, source, target) in enumerate(cases):
        whole = torch.ones(shape)
        given = placements(source)
        local = distribute_tensor(whole, made, [Replicate() if p.is_partial() else p for p in given],
                                  src_data_rank=None).to_local().detach().requires_grad_()
        tensor = DTensor.from_local(local, made, given, run_check=False, shape=whole.size(), stride=whole.stride())
        calls.mark("%d forward" % number)
        out = tensor.redistribute(made, placements(target)).to_local() + 0
        calls.mark("%d backward" % number)
        out.sum().backward()


ONE_DIM = [["S0", "R"], ["S1", "R"], ["P", "R"], ["P", "S0"], ["P", "S1"], ["S0", "S1"], ["S1", "S0"], ["R", "S0"], ["S0", "P"],
           ["S0", "S0"]]
case("tensor_parallel", "redistribute_w2", 2, mesh=[2], cases=[[[4, 6]] + c for c in ONE_DIM])(redistribute)
case("tensor_parallel", "redistribute_uneven_w4", 4, mesh=[4], cases=[[[5, 6]] + c for c in ONE_DIM])(redistribute)
case("tensor_parallel", "redistribute_to_partial_w2", 2, mesh=[2], cases=[[[4, 6], "R", "P"]])(redistribute)
TWO_DIMS = [["S0 S0", "R R"], ["S0 S1", "R R"], ["P P", "R R"], ["P P", "S0 R"], ["P P", "S0 S1"], ["P P", "S0 S0"],
            ["P S0", "R R"], ["S0 R", "R S0"], ["S0 S0", "R S0"], ["R S0", "S0 S0"], ["S0 S1", "S1 S0"], ["R S1", "S0 S1"],
            ["S0 P", "S0 S1"], ["S0 S1", "S0 R"]]
case("tensor_parallel", "redistribute_2d_w4", 4, mesh=[2, 2], cases=[[[8, 4]] + c for c in TWO_DIMS])(redistribute)
case("tensor_parallel", "redistribute_2d_uneven_w4", 4, mesh=[2, 2], cases=[[[7, 5]] + c for c in TWO_DIMS])(redistribute)
case("tensor_parallel", "redistribute_flattened_w4", 4, mesh=[2, 2], flatten=["dp_tp"],
     cases=[[[8, 4]] + c for c in TWO_DIMS])(redistribute)
case("tensor_parallel", "redistribute_flattened_uneven_w4", 4, mesh=[2, 2], flatten=["dp_tp"],
     cases=[[[7, 5]] + c for c in TWO_DIMS])(redistribute)
case("tensor_parallel", "redistribute_flattened_3d_w8", 8, mesh=[2, 2, 2], flatten=["dp_cp"],
     cases=[[[16, 8], "S0 S0 S0", "R R R"], [[16, 8], "P R P", "R R R"], [[16, 8], "P P P", "S0 R S0"],
            [[16, 8], "S0 S1 S0", "R S1 R"]])(redistribute)


# Tensor parallel

class Norm(nn.LayerNorm):
    pass


class Block(nn.Module):
    """Like models of torchtitan: norm, attention without its arithmetic, norm, gated MLP."""

    def __init__(self, width, hidden):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = nn.ModuleDict({k: nn.Linear(width, width, bias=False) for k in ("wq", "wk", "wv", "wo")})
        self.attention.forward = self.attend
        self.ffn_norm = nn.LayerNorm(width)
        self.feed_forward = nn.ModuleDict({"w1": nn.Linear(width, hidden, bias=False), "w2": nn.Linear(hidden, width, bias=False),
                                           "w3": nn.Linear(width, hidden, bias=False)})
        self.feed_forward.forward = self.feed

    def attend(self, x):
        a = self.attention
        return a["wo"](a["wq"](x) + a["wk"](x) + a["wv"](x))

    def feed(self, x):
        f = self.feed_forward
        return f["w2"](f["w1"](x) * f["w3"](x))

    def forward(self, x):
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.ffn_norm(h))


PLANS = {
    "mlp": lambda p: {"0": p.ColwiseParallel(), "2": p.RowwiseParallel()},
    "mlp_sequence": lambda p: {"0": p.ColwiseParallel(input_layouts=Shard(1)), "2": p.RowwiseParallel(output_layouts=Shard(1))},
    "mlp_local": lambda p: {"0": p.ColwiseParallel(use_local_output=False), "2": p.RowwiseParallel(use_local_output=False)},
    "column": lambda p: {"0": p.ColwiseParallel(output_layouts=Replicate())},
    "column_sequence": lambda p: {"0": p.ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())},
    "row": lambda p: {"0": p.RowwiseParallel(input_layouts=Replicate())},
    "row_sequence": lambda p: {"0": p.RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))},
    "row_shard": lambda p: {"0": p.RowwiseParallel(output_layouts=Shard(1))},
    "norm": lambda p: {"0": p.SequenceParallel(), "1": p.ColwiseParallel(input_layouts=Shard(1)),
                       "2": p.RowwiseParallel(output_layouts=Shard(1))},
    "prepare": lambda p: {"0": p.PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate(),
                                                    use_local_output=True)},
    "prepare_output": lambda p: {"0": p.PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate())},
    "prepare_partial": lambda p: {"0": p.PrepareModuleOutput(output_layouts=Partial(), desired_output_layouts=Shard(1))},
    "embedding_column": lambda p: {"0": p.ColwiseParallel()},
    "embedding_row": lambda p: {"0": p.RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))},
    "block": lambda p: {
        "attention_norm": p.SequenceParallel(),
        "attention": p.PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "attention.wq": p.ColwiseParallel(), "attention.wk": p.ColwiseParallel(), "attention.wv": p.ColwiseParallel(),
        "attention.wo": p.RowwiseParallel(output_layouts=Shard(1)),
        "ffn_norm": p.SequenceParallel(),
        "feed_forward": p.PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "feed_forward.w1": p.ColwiseParallel(), "feed_forward.w3": p.ColwiseParallel(),
        "feed_forward.w2": p.RowwiseParallel(output_layouts=Shard(1))},
}
BATCH, SEQUENCE, HIDDEN = 2, 8, 16


def modules(name):
    wide = nn.Linear(HIDDEN, 4 * HIDDEN)
    narrow = nn.Linear(4 * HIDDEN, HIDDEN)
    if name.startswith("mlp"):
        return nn.Sequential(wide, nn.ReLU(), narrow)
    if name == "norm":
        return nn.Sequential(nn.LayerNorm(HIDDEN), wide, narrow)
    if name == "block":
        return Block(HIDDEN, 4 * HIDDEN)
    if name.startswith("embedding"):
        return nn.Sequential(nn.Embedding(8 * HIDDEN, HIDDEN))
    if name.startswith("prepare"):
        return nn.Sequential(nn.Identity())
    return nn.Sequential(narrow if name.startswith("row") else wide)


def tensor_parallel(calls, rank, world, plan, input_grad=True, mesh=None):
    made = init_device_mesh("cpu", tuple(mesh or [world]), mesh_dim_names=("dp", "tp") if mesh else ("tp",))
    tp = made["tp"] if mesh else made
    size = tp.size()
    model = modules(plan)
    calls.mark("parallelize")
    model = parallel.parallelize_module(model, tp, PLANS[plan](parallel))
    sequence = SEQUENCE // size if plan in ("mlp_sequence", "norm", "block", "column_sequence", "prepare",
                                            "prepare_output") else SEQUENCE
    width = 4 * HIDDEN if plan.startswith("row") else HIDDEN
    if plan == "row_shard":
        width //= size
    x = torch.ones(BATCH, sequence, width, requires_grad=input_grad)
    if plan.startswith("embedding"):
        x = torch.zeros(BATCH, SEQUENCE, dtype=torch.long)
    calls.mark("forward")
    out = model(x)
    out = out.to_local() if isinstance(out, DTensor) else out + 0
    calls.mark("backward")
    out.sum().backward()
    calls.mark("step")
    if any(p.grad is not None for p in model.parameters()):
        torch.optim.SGD(model.parameters(), lr=0.1, foreach=False).step()


for _plan in PLANS:
    for _world in (2, 4):
        case("tensor_parallel", "%s_w%d" % (_plan, _world), _world, plan=_plan)(tensor_parallel)
for _plan in ("mlp", "block"):
    case("tensor_parallel", "%s_mesh_w4" % _plan, 4, plan=_plan, mesh=[2, 2])(tensor_parallel)
    case("tensor_parallel", "%s_no_input_grad" % _plan, 2, plan=_plan, input_grad=False)(tensor_parallel)


# Context parallel

def ring(calls, rank, world, method, backward, shape, causal=True, load_balance=True):
    """Runs the ring itself, with attention without arithmetic: on Gloo, no attention dispatches to the ring."""
    from torch.distributed.tensor.experimental._context_parallel import _attention as cp
    cp._cp_options.enable_load_balance = load_balance
    cp._cp_options.rotate_method = cp._RotateMethod.ALL_TO_ALL if method == "alltoall" else cp._RotateMethod.ALL_GATHER
    group = init_device_mesh("cpu", (world,)).get_group()
    q, k, v = (torch.ones(shape) for _ in range(3))
    lse = torch.ones(shape[:3])

    def forward_op(q, k, v, is_causal, **kwargs):
        return torch.ones_like(q), torch.ones(q.shape[:3])

    def backward_op(query, key, value, **kwargs):
        return torch.ones_like(query), torch.ones_like(key), torch.ones_like(value)
    calls.mark("forward")
    cp._templated_ring_attention(group, 2, forward_op, q, k, v, is_causal=causal)
    if backward:
        calls.mark("backward")
        cp._templated_ring_attention_backward(group, 2, backward_op, torch.ones(shape), "grad_out", q, k, v, torch.ones(shape),
                                              lse, causal)


for _world in (2, 4):
    for _method in ("allgather", "alltoall"):
        case("tensor_parallel", "ring_%s_w%d" % (_method, _world), _world, method=_method, backward=True,
             shape=[1, 2, 8, 4])(ring)
case("tensor_parallel", "ring_alltoall_no_balance_w4", 4, method="alltoall", backward=True, shape=[1, 2, 8, 4],
     load_balance=False)(ring)


def unshard(calls, rank, world, shape, seq_dim, load_balance=True):
    """Runs context_parallel with buffers, and context_parallel_unshard."""
    from torch.distributed.tensor.experimental import _context_parallel as package
    from torch.distributed.tensor.experimental._context_parallel import _attention as cp
    cp._cp_options.enable_load_balance = load_balance
    mesh = init_device_mesh("cpu", (world,))
    x = torch.ones(shape)
    calls.mark("context_parallel")
    with cp.context_parallel(mesh, buffers=[x], buffer_seq_dims=[seq_dim]):
        calls.mark("unshard")
        cp.context_parallel_unshard(mesh, [x], [seq_dim])


case("tensor_parallel", "context_parallel_unshard_w2", 2, shape=[2, 8, 4], seq_dim=1)(unshard)


# DeviceMesh

REAL_NEW_GROUP = c10d.new_group


def mesh(calls, rank, world, shape, names, slices=(), flatten=(), unflatten=None):
    import torch.distributed.device_mesh as device_mesh

    def new_group(*args, **kwargs):
        calls.lines.append({"op": "new_group", "ranks": kwargs.get("ranks"), "desc": kwargs.get("group_desc")})
        return REAL_NEW_GROUP(*args, **kwargs)
    device_mesh.new_group = new_group
    calls.mark("init_device_mesh")
    made = init_device_mesh("cpu", tuple(shape), mesh_dim_names=tuple(names))
    calls.mark("coordinate %s" % (list(made.get_coordinate()) if made.get_coordinate() is not None else None))
    for name in names:
        if made.get_coordinate() is not None:
            calls.mark("%s %s" % (name, dist.get_process_group_ranks(made.get_group(name))))
            dist.all_reduce(torch.ones(1), group=made.get_group(name))
    for dims in slices:
        calls.mark("slice %s" % dims)
        part = made[tuple(dims.split())]
        calls.mark("mesh %s" % part.mesh.tolist())
    for dims in flatten:
        calls.mark("flatten %s" % dims)
        flat_mesh = made[tuple(dims.split())]._flatten()
        calls.mark("ranks %s local %d" % (flat_mesh.mesh.tolist(), flat_mesh.get_local_rank()))
        dist.all_reduce(torch.ones(1), group=made[dims.replace(" ", "_")].get_group())
    if unflatten:
        calls.mark("unflatten %s" % unflatten[0])
        more = made._unflatten(unflatten[0], tuple(unflatten[1]), tuple(unflatten[2]))
        for name in unflatten[2]:
            calls.mark("%s %s" % (name, dist.get_process_group_ranks(more.get_group(name))))


case("mesh", "mesh_2d", 4, shape=[2, 2], names=["dp", "tp"], slices=["tp", "dp"], flatten=["dp tp"])(mesh)
case("mesh", "mesh_2d_uneven", 6, shape=[2, 3], names=["dp", "tp"], slices=["tp"], flatten=["dp tp"])(mesh)
case("mesh", "mesh_3d", 8, shape=[2, 2, 2], names=["pp", "dp", "tp"], slices=["dp tp", "pp tp", "pp"],
     flatten=["dp tp", "pp dp", "pp tp"])(mesh)
case("mesh", "mesh_4d_ones", 4, shape=[1, 2, 1, 2], names=["pp", "dp", "cp", "tp"], slices=["dp cp"],
     flatten=["dp cp", "dp cp tp"])(mesh)
case("mesh", "mesh_1d", 3, shape=[3], names=["dp"], flatten=["dp"])(mesh)
case("mesh", "mesh_1_by_world", 2, shape=[1, 2], names=["dp", "tp"])(mesh)
case("mesh", "mesh_unflatten", 4, shape=[4], names=["world"], unflatten=["world", [2, 2], ["dp", "tp"]])(mesh)
case("mesh", "mesh_too_large", 2, shape=[2, 2], names=["dp", "tp"])(mesh)
case("mesh", "mesh_smaller", 4, shape=[2], names=["dp"])(mesh)
case("mesh", "mesh_bad_slice", 4, shape=[2, 2], names=["dp", "tp"], slices=["pp"])(mesh)
case("mesh", "mesh_reversed_slice", 4, shape=[2, 2], names=["dp", "tp"], slices=["tp dp"], flatten=["tp dp"])(mesh)


# DistributedDataParallel with unused parameters

class Chain(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(i, o, bias=False) for i, o in zip(widths, widths[1:]))

    def forward(self, x, used):
        for layer, is_used in zip(self.layers, used):
            x = layer(x) if is_used else x
        return x.sum()


def ddp(calls, rank, world, widths, used, join=False, timeout_s=0, **options):
    """used: for each rank and each of its steps, 1 for every layer that the step uses."""
    net = Chain(widths)
    model = nn.parallel.DistributedDataParallel(net, **options)
    steps = used[rank] if len(used) > 1 else used[0]
    with Join([model], enable=join):
        for number, step in enumerate(steps):
            calls.mark("step %d" % number)
            model(torch.ones(1, widths[0]), step).backward()
            calls.mark("has gradients %s" % [int(p.grad is not None) for p in net.parameters()])
            net.zero_grad()


_ALL, _FIRST, _TWO = [1, 1, 1], [1, 0, 0], [1, 1, 0]
_SKIP = dict(widths=[2, 3, 3, 3], find_unused_parameters=True, skip_all_reduce_unused_params=True)
_TINY = dict(_SKIP, bucket_cap_mb=1e-6)     # a bucket for each parameter
case("ddp", "skip_one_bucket", 2, used=[[_FIRST, _TWO]], **_SKIP)(ddp)
case("ddp", "skip_all_but_first", 2, used=[[_FIRST, _FIRST]], **_TINY)(ddp)
case("ddp", "skip_nothing_unused", 2, used=[[_ALL, _ALL]], **_TINY)(ddp)
case("ddp", "skip_by_step", 3, used=[[_FIRST, _TWO, _ALL, _FIRST]], **_TINY)(ddp)
case("ddp", "skip_off", 2, used=[[_FIRST, _TWO]], **dict(_TINY, skip_all_reduce_unused_params=False))(ddp)
case("ddp", "skip_views", 2, used=[[_ALL, _FIRST]], gradient_as_bucket_view=True, **_TINY)(ddp)
case("ddp", "skip_static", 2, used=[[_FIRST] * 4], static_graph=True, **_TINY)(ddp)
case("ddp", "skip_static_list", 2, used=[[_TWO] * 3], static_graph=True, bucket_cap_mb_list=[1e-6], **_SKIP)(ddp)
case("ddp", "skip_not_detected", 2, used=[[_ALL, _ALL]], **dict(_TINY, find_unused_parameters=False))(ddp)
case("ddp", "skip_unequal", 2, timeout_s=5, used=[[_TWO], [_FIRST]], **dict(_TINY, widths=[2, 2, 2, 2]))(ddp)
case("ddp", "skip_join", 2, timeout_s=5, join=True, used=[[_FIRST], [_FIRST, _FIRST]],
     **dict(_TINY, widths=[2, 2, 2, 2]))(ddp)
case("ddp", "skip_join_nothing_unused", 2, join=True, used=[[_ALL], [_ALL, _ALL]], **_TINY)(ddp)
case("ddp", "cap_list", 2, used=[[_ALL] * 3], widths=[2, 3, 3, 3], bucket_cap_mb_list=[1e-6, 1])(ddp)


if __name__ == "__main__":
    pattern = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    for one in CASES.values():
        if pattern.search(one[1]):
            run_case(sys.argv[1], *one)
