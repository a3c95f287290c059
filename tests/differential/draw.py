"""Draws PyTorch programs for N ranks: a seed gives a list of statements, and the list a script.

A statement is one or a few lines of Python that every rank runs. Its `say(step, ...)` prints every bit of a value, so
that two runs of a program can be compared. A program is correct and ends on every rank, or has one mistake on one rank.
"""

import random
import re

HEADER = '''\
import datetime, os, re, sys, threading, time
import torch, torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.algorithms.join import Join, Joinable, JoinHook
from torch.nn.parallel import DistributedDataParallel as DDP
seconds = float(os.environ.get("DIFFERENTIAL_TIMEOUT", "1800"))
dist.init_process_group("BACKEND", timeout=datetime.timedelta(seconds=seconds))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)
device = torch.device("cpu")
if dist.get_backend() == "nccl":
    torch.cuda.set_device(rank % torch.cuda.device_count())
    device = torch.device("cuda", torch.cuda.current_device())
    torch.set_default_device(device)

def dump_when_asked(folder):
    """Writes this rank's Flight Recorder dump once the file `now` is there, whatever the main thread waits for."""
    while not os.path.exists(os.path.join(folder, "now")):
        time.sleep(0.05)
    path = os.path.join(folder, f"nccl_trace_rank_{rank}")
    with open(path + ".new", "wb") as file:
        file.write(torch._C._distributed_c10d._dump_fr_trace())
    os.rename(path + ".new", path)

if os.environ.get("DIFFERENTIAL_DUMPS"):
    threading.Thread(target=dump_when_asked, args=(os.environ["DIFFERENTIAL_DUMPS"],), daemon=True).start()

def put(text):
    os.write(1, f"@{rank} {text}\\n".encode())

def bits(value):
    if torch.is_tensor(value):
        return [str(value.dtype), *value.detach().contiguous().flatten().tolist()]
    return [bits(each) for each in value] if isinstance(value, (list, tuple)) else value

def floats(text):
    return [each.hex() if isinstance(each, float) else each for each in text] if isinstance(text, list) else text

def say(step, *values):
    put(f"{step} {[floats(bits(value)) for value in values]}")

def filled(count, dtype, salt):
    return ((torch.arange(count) * (rank + 2) + salt) % 13 / 4 + rank).to(dtype)

def filled_in(module):
    """On GPUs, parameters that no order of additions rounds"""
    if device.type != "cpu":
        for parameter in module.parameters():
            parameter.data = (torch.arange(parameter.numel()) % 5 / 4).reshape(parameter.shape)
    return module

def tried(step, call, *values):
    """What one release of torch has and another refuses: the refusal is a value"""
    try:
        call()
        say(step, *values)
    except Exception as error:
        if re.search("timed out|timeout|connection|closed", str(error), re.I):
            raise  # a peer that is missing, which ranks see in different ways
        say(step, type(error).__name__)

class Counter(Joinable):
    """Its hook shadows one all_reduce of ones by zeros."""
    def __init__(self):
        super().__init__()
        self.total = torch.zeros(1)
    def step(self):
        Join.notify_join_context(self)
        count = torch.ones(1)
        dist.all_reduce(count)
        self.total += count
    def join_hook(self, **kwargs):
        class Hook(JoinHook):
            def main_hook(self):
                dist.all_reduce(torch.zeros(1))
        return Hook()
    @property
    def join_device(self):
        return device
    @property
    def join_process_group(self):
        return dist.group.WORLD

def program():
'''

FOOTER = '''
try:
    program()
    put("end finished")
except SystemExit:
    put("end exit")
except Exception as error:
    put(f"end raised {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
if os.environ.get("DIFFERENTIAL_LINGER"):
    sys.stdin.read()  # a rank that goes away ends the calls of the others, which is another test
    os._exit(0)
'''

# Not float16: Debian's torch 2.14 has none on Gloo.
DTYPES = ("torch.float32", "torch.float64", "torch.int32", "torch.int64", "torch.uint8")
OPS = ("SUM", "MAX", "MIN", "PRODUCT")


class Drawing:
    def __init__(self, chance, world, backend):
        self.chance, self.world, self.backend, self.groups, self.step = chance, world, backend, 0, 0

    def pick(self, *choices):
        return self.chance.choice(choices)

    def tensor(self):
        count = self.pick(1, 2, 3, 5, 8, 17, 64, 1000)
        return f"filled({count}, {self.pick(*DTYPES)}, {self.chance.randrange(9)})"

    def all_reduce(self):
        op, later = self.pick(*OPS), self.chance.random() < 0.3
        text = f"t = {self.tensor()}; w = dist.all_reduce(t, op=dist.ReduceOp.{op}, async_op={later})"
        return text + ("; w.wait(); " if later else "; ") + f"say({self.step}, t)"

    def broadcast(self):
        return f"t = {self.tensor()}; dist.broadcast(t, src={self.rank()}); say({self.step}, t)"

    def reduce(self):
        root = self.rank()  # the others' buffers are undefined afterwards
        return (f"t = {self.tensor()}; dist.reduce(t, dst={root}, op=dist.ReduceOp.SUM); "
                f"say({self.step}, t if rank == {root} else 0)")

    def all_gather(self):
        return (f"t = {self.tensor()}; ts = [torch.zeros_like(t) for _ in range(world)]; dist.all_gather(ts, t); "
                f"say({self.step}, ts)")

    def gather(self):
        root = self.rank()
        return (f"t = {self.tensor()}; ts = [torch.zeros_like(t) for _ in range(world)] if rank == {root} else None; "
                f"dist.gather(t, ts, dst={root}); say({self.step}, ts or 0)")

    def scatter(self):
        root = self.rank()
        return (f"t = {self.tensor()}; ts = [t + i for i in range(world)] if rank == {root} else None; "
                f"dist.scatter(t, ts, src={root}); say({self.step}, t)")

    def all_to_all_single(self):
        each = self.chance.randrange(1, 6)
        return (f"a = filled({each} * world, torch.float32, 1); b = torch.zeros_like(a); dist.all_to_all_single(b, a); "
                f"say({self.step}, b)")

    def all_to_all_uneven(self):
        return (f"a = filled(sum(i + 1 for i in range(world)), torch.float32, 2); b = torch.zeros(world * (rank + 1)); "
                f"dist.all_to_all_single(b, a, [rank + 1] * world, [i + 1 for i in range(world)]); say({self.step}, b)")

    def all_to_all(self):
        return (f"a = [filled(3, torch.float32, i) for i in range(world)]; b = [torch.zeros(3) for _ in a]; "
                f"tried({self.step}, lambda: dist.all_to_all(b, a), b)")

    def reduce_scatter(self):
        op = self.pick(*OPS)
        return (f"a = [filled(4, torch.float64, i) for i in range(world)]; b = torch.zeros_like(a[0]); "
                f"tried({self.step}, lambda: dist.reduce_scatter(b, a, op=dist.ReduceOp.{op}), b)")

    def reduce_scatter_tensor(self):
        return (f"a = filled(5 * world, torch.float32, 3); b = torch.zeros(5); "
                f"tried({self.step}, lambda: dist.reduce_scatter_tensor(b, a), b)")

    def all_gather_into_tensor(self):
        return (f"a = {self.tensor()}; b = torch.zeros(len(a) * world, dtype=a.dtype); "
                f"tried({self.step}, lambda: dist.all_gather_into_tensor(b, a), b)")

    def coalesced(self):
        return (f"a, b = {self.tensor()}, {self.tensor()}; "
                f"tried({self.step}, lambda: dist.all_reduce_coalesced([a, b]), a, b)")

    def more_objects(self):
        root = self.rank()
        return self.pick(
            f"o = [None] * world if rank == {root} else None; dist.gather_object(('r', rank), o, dst={root}); "
            f"say({self.step}, o)",
            f"o = [None]; dist.scatter_object_list(o, [i * 'x' for i in range(world)] if rank == {root} else [None], "
            f"src={root}); say({self.step}, o)")

    def later(self):
        root = self.rank()
        return (f"a, b = {self.tensor()}, {self.tensor()}; w = [dist.broadcast(a, src={root}, async_op=True), "
                f"dist.all_reduce(b, async_op=True), dist.barrier(async_op=True)]; [each.wait() for each in w]; "
                f"say({self.step}, a, b)")

    def shapes(self):
        tensor = self.pick("torch.tensor(rank + 0.5)", "filled(12, torch.float32, 1).reshape(3, 4)",
                           "filled(12, torch.float32, 1).reshape(3, 4).t().contiguous()", "torch.zeros(0)",
                           "filled(6, torch.float32, 2)[::2].clone()", "torch.ones(2, 3, 2) * rank")
        return f"t = {tensor}; dist.all_reduce(t); say({self.step}, list(t.shape), t)"

    def counter(self):
        key = f"c{self.step}"
        return (f"s = dist.distributed_c10d._get_default_store(); s.add('{key}', rank + 1); dist.barrier(); "
                f"n = s.add('{key}', 0); dist.barrier(); say({self.step}, n)")

    def awaited(self):
        key, who = f"w{self.step}", self.rank()
        return (f"s = dist.distributed_c10d._get_default_store()\n"
                f"if rank == {who}: s.set('{key}', 'there')\nelse: s.wait(['{key}'])\n"
                f"say({self.step}, s.get('{key}').decode())")

    def any_order(self):
        source, target = self.chance.sample(range(self.world), 2)
        return (f"a, b = filled(3, torch.float32, 1), filled(3, torch.float32, 2)\n"
                f"if rank == {source}: w = [dist.isend(a, {target}, tag=1), dist.isend(b, {target}, tag=2)]; "
                f"[each.wait() for each in w]\n"
                f"if rank == {target}: dist.recv(b, {source}, tag=2); dist.recv(a, {source}, tag=1)\n"
                f"say({self.step}, a, b)")

    def busy_group(self):
        members = sorted(self.chance.sample(range(self.world), self.chance.randrange(1, self.world + 1)))
        root, name = self.pick(*members), f"g{self.groups}"
        self.groups += 1
        calls = {
            "broadcast": f"dist.broadcast(t, src={root}, group={name}); say({self.step}, t)",
            "reduce": f"dist.reduce(t, dst={root}, group={name}); say({self.step}, t if rank == {root} else 0)",
            "all_gather": f"ts = [torch.zeros_like(t) for _ in range({len(members)})]; "
                          f"dist.all_gather(ts, t, group={name}); say({self.step}, ts)",
            "barrier": f"dist.barrier(group={name}); say({self.step})",
            "monitored_barrier": f"dist.monitored_barrier(group={name}); say({self.step})",
            "rank": f"say({self.step}, dist.get_rank({name}), dist.get_world_size({name}))",
            "objects": f"o = [None] * {len(members)}; dist.all_gather_object(o, rank, group={name}); "
                       f"say({self.step}, o)",
        }
        possible = sorted(calls.keys() - NOT_ON[self.backend])
        inside = "\n".join(calls[call] for call in self.chance.sample(possible, 3))
        return (f"{name} = dist.new_group({members}); t = {self.tensor()}\n"
                f"if rank in {members}:\n{indented(inside)}\n"
                f"dist.all_reduce(t); say({self.step}, t)")

    def outsider(self):
        members = sorted(self.chance.sample(range(self.world), self.chance.randrange(1, self.world)))
        name = f"g{self.groups}"
        self.groups += 1
        return (f"{name} = dist.new_group({members}); t = filled(3, torch.float32, 5)\n"
                f"tried({self.step}, lambda: dist.all_reduce(t, group={name}), t)")

    def halves(self):
        name = f"g{self.groups}"
        self.groups += 1
        middle = (self.world + 1) // 2
        halves = [list(range(middle)), list(range(middle, self.world))]
        return (f"if torch.__version__ >= '2':  # before, subgroups need a GPU\n"
                f"    {name}, _ = dist.new_subgroups_by_enumeration({[half for half in halves if half]})\n"
                f"    t = filled(4, torch.int64, 1); dist.all_reduce(t, group={name}); say({self.step}, t)")

    def barrier(self):
        return f"dist.barrier(); say({self.step})"

    def monitored_barrier(self):
        return f"dist.monitored_barrier(); say({self.step})"

    def objects(self):
        root = self.rank()
        return self.pick(
            f"o = [None] * world; dist.all_gather_object(o, {{'rank': rank, 'list': [1] * rank}}); say({self.step}, o)",
            f"o = [('root', rank), rank * 3]; dist.broadcast_object_list(o, src={root}); say({self.step}, o)")

    def store(self):
        key = f"k{self.step}"
        return (f"s = dist.distributed_c10d._get_default_store(); s.set(f'{key}{{rank}}', f'v{{rank}}'); "
                f"say({self.step}, s.get(f'{key}{{(rank + 1) % world}}').decode())")

    def ring(self):
        return (f"t = {self.tensor()}; r = torch.zeros_like(t); "
                f"ws = [dist.isend(t, (rank + 1) % world), dist.irecv(r, (rank - 1) % world)]; "
                f"[w.wait() for w in ws]; say({self.step}, r)")

    def batch(self):
        return (f"t = {self.tensor()}; r = torch.zeros_like(t); "
                f"ws = dist.batch_isend_irecv([dist.P2POp(dist.isend, t, (rank + 1) % world), "
                f"dist.P2POp(dist.irecv, r, (rank - 1) % world)]); [w.wait() for w in ws]; say({self.step}, r)")

    def message(self):
        source, target = self.chance.sample(range(self.world), 2)
        tag = self.chance.randrange(3)
        return (f"t = {self.tensor()}\nif rank == {source}: dist.send(t, {target}, tag={tag})\n"
                f"if rank == {target}: dist.recv(t, {source}, tag={tag}); say({self.step}, t)")

    def anyone(self):
        target = self.rank()
        return (f"t = torch.full((2,), float(rank)); total = torch.zeros(2)\n"
                f"if rank != {target}: dist.send(t, {target})\n"
                f"if rank == {target}:\n    for _ in range(world - 1): dist.recv(t); total += t\n"
                f"say({self.step}, total)")

    def group(self):
        members = sorted(self.chance.sample(range(self.world), self.chance.randrange(1, self.world + 1)))
        name = f"g{self.groups}"
        self.groups += 1
        return (f"{name} = dist.new_group({members})\n"
                f"if rank in {members}: t = {self.tensor()}; dist.all_reduce(t, group={name}); say({self.step}, t)")

    def loop(self):
        return (f"for i in range({self.chance.randrange(2, 6)}): "
                f"t = filled(4, torch.float32, i); dist.all_reduce(t); say({self.step}, t)")

    def decision(self):
        return (f"t = filled(1, torch.float64, {self.chance.randrange(9)}); dist.all_reduce(t, op=dist.ReduceOp.MAX)\n"
                f"while t.item() > 1:\n    t = t / 2; dist.broadcast(t, src=0); say({self.step}, t)")

    def join(self):
        fewest = self.chance.randrange(0, 3)
        return (f"c = Counter()\nwith Join([c]):\n    for _ in range({fewest} + rank % 3): c.step()\n"
                f"say({self.step}, c.total)")

    def ddp(self):
        uneven = self.chance.random() < 0.5
        loop = "with m.join():\n    " if uneven else ""
        steps = f"{self.chance.randrange(1, 3)} + rank" if uneven else str(self.chance.randrange(1, 4))
        body = "m(filled(6, torch.float32, i).reshape(2, 3)).sum().backward()"
        return (f"m = DDP(filled_in(torch.nn.Linear(3, 2))); i = 0\n{loop}for i in range({steps}): {body}\n"
                f"say({self.step}, [p.grad for p in m.parameters()] if not {uneven} else 0)")

    def accumulated(self):
        return (f"m = DDP(filled_in(torch.nn.Linear(3, 2)), gradient_as_bucket_view={self.pick(True, False)})\n"
                f"with m.no_sync(): m(filled(6, torch.float32, 1).reshape(2, 3)).sum().backward()\n"
                f"m(filled(6, torch.float32, 2).reshape(2, 3)).sum().backward()\n"
                f"say({self.step}, [p.grad for p in m.parameters()])")

    def buffers(self):
        return (f"m = DDP(torch.nn.BatchNorm1d(3)); "
                f"m(filled(12, torch.float32, 1).reshape(4, 3)).square().sum().backward(); "
                f"m(filled(12, torch.float32, 2).reshape(4, 3)).square().sum().backward(); "
                f"say({self.step}, [b for b in m.buffers()] if rank == 0 else 0)")

    def unused(self):
        return (f"m = torch.nn.ModuleDict(dict(a=torch.nn.Linear(2, 2), b=torch.nn.Linear(2, 2)))\n"
                f"m.forward = lambda x: m['b' if rank % 2 else 'a'](x)\n"
                f"d = DDP(filled_in(m), find_unused_parameters=True)\n"
                f"d(filled(4, torch.float32, 1).reshape(2, 2)).sum().backward()\n"
                f"say({self.step}, [p.grad for p in d.parameters()])")

    def zero(self):
        return (f"m = DDP(filled_in(torch.nn.Linear(4, 3))); "
                f"o = ZeroRedundancyOptimizer(m.parameters(), optimizer_class=torch.optim.SGD, lr=0.5)\n"
                f"for i in range(2): m(filled(8, torch.float32, i).reshape(2, 4)).sum().backward(); o.step(); "
                f"o.zero_grad()\n"
                f"say({self.step}, list(m.parameters()))")

    def rank(self):
        return self.chance.randrange(self.world)


KINDS = ("all_reduce", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "all_to_all_single",
         "barrier", "monitored_barrier", "objects", "store", "ring", "batch", "message", "anyone", "group", "loop",
         "decision", "join", "ddp", "all_to_all_uneven", "all_to_all", "reduce_scatter", "reduce_scatter_tensor",
         "all_gather_into_tensor", "coalesced", "more_objects", "later", "shapes", "counter", "awaited", "any_order",
         "busy_group", "outsider", "halves", "accumulated", "buffers", "unused", "zero")

# NCCL has no such calls; and the square roots of normalization may differ in their last bit between a CPU and a GPU.
NOT_ON = {"gloo": set(), "nccl": {"monitored_barrier", "anyone", "buffers"}}

# How a mistake changes a statement, on only one rank. `{}` is the statement.
MISTAKES = {
    "skip": "",
    "twice": "{0}\n{0}",
    "early return": "return",
    "raise": "raise ValueError('a mistake')",
    "exit": "sys.exit(0)",
    "another call": "dist.barrier()\n{0}",
    "another size": "t = filled(7, torch.float32, 1); dist.all_reduce(t); say({1}, t)",
}


OTHER_DTYPE = {"float32": "float64", "float64": "float32", "int32": "int64", "int64": "float64", "uint8": "int32"}
# And how it changes an argument: (pattern, replacement).
WRONG_ARGUMENTS = {
    "another root": (r"(src|dst)=\d", r"\1=(1 if rank else 0)"),
    "another dtype": (r"torch\.(float32|float64|int32|int64|uint8), (\d)",
                      lambda found: f"torch.{OTHER_DTYPE[found[1]]}, {found[2]}"),
    "another operation": (r"ReduceOp\.\w+", "ReduceOp.MIN"),
    "another peer": (r"\(rank \+ 1\) % world", "(rank - 1) % world"),  # to itself: that kills torch 1.13
    "another tag": (r"tag=\d", "tag=7"),
    "never waited": (r"w\.wait\(\); say\((\d+), t\)", r"say(\1)"),
}


def mistaken(statement, mistake, step):
    """Returns the statement with the mistake; None if the mistake does not apply to it."""
    if mistake in MISTAKES:
        return MISTAKES[mistake].format(statement, step) or "pass"
    wrong = re.sub(*WRONG_ARGUMENTS[mistake], statement)
    return wrong if wrong != statement else None


def draw_with_culprit(seed, backend="gloo"):
    """-> (world size, statements, the mistake or None, the rank that makes it or None)"""
    chance = random.Random(seed)
    world = chance.randrange(2, 5)
    if backend == "nccl" and world == 3:
        world = 2  # the thirds of DDP's averages are rounded, and NCCL adds them in another order
    drawing = Drawing(chance, world, backend)
    kinds = [kind for kind in KINDS if kind not in NOT_ON[backend]]
    statements = []
    for step in range(chance.randrange(3, 14)):
        drawing.step = step
        statements.append(getattr(drawing, chance.choice(kinds))())
    mistake = chance.choice([*sorted(MISTAKES), *sorted(WRONG_ARGUMENTS)]) if chance.random() < 0.6 else None
    places = [at for at in range(len(statements)) if mistake and mistaken(statements[at], mistake, at)]
    if not places:
        return world, statements, None, None
    at, who = chance.choice(places), chance.randrange(world)
    wrong = mistaken(statements[at], mistake, at)
    statements[at] = f"if rank == {who}:\n{indented(wrong)}\nelse:\n{indented(statements[at])}"
    return world, statements, mistake, who


def draw(seed, backend="gloo"):
    """-> (world size, statements, the mistake or None)"""
    return draw_with_culprit(seed, backend)[:3]


def indented(text):
    return "\n".join("    " + line for line in text.split("\n"))


def script(statements, backend="gloo"):
    return HEADER.replace("BACKEND", backend) + indented("\n".join(statements) or "pass") + "\n" + FOOTER
