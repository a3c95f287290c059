"""Draws PyTorch programs for N ranks: a seed gives a list of statements, and the list a script.

A statement is a line of Python that every rank runs, or a few. `say(step, ...)` in it prints every bit of a value, so
that two runs of a program can be compared. A drawn program is right and ends on every rank, or has one mistake on one
rank.
"""

import random
import re

HEADER = '''\
import datetime, os, sys, threading
import torch, torch.distributed as dist
from torch.distributed.algorithms.join import Join, Joinable, JoinHook
from torch.nn.parallel import DistributedDataParallel as DDP
seconds = float(os.environ.get("DIFFERENTIAL_TIMEOUT", "1800"))
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=seconds))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)

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
        return torch.device("cpu")
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
    def __init__(self, chance, world):
        self.chance, self.world, self.groups, self.step = chance, world, 0, 0

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
        root = self.rank()  # what the others' buffers hold afterwards is not defined
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
        return (f"m = DDP(torch.nn.Linear(3, 2)); i = 0\n{loop}for i in range({steps}): {body}\n"
                f"say({self.step}, [p.grad for p in m.parameters()] if not {uneven} else 0)")

    def rank(self):
        return self.chance.randrange(self.world)


KINDS = ("all_reduce", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "all_to_all_single",
         "barrier", "monitored_barrier", "objects", "store", "ring", "batch", "message", "anyone", "group", "loop",
         "decision", "join", "ddp")

# What a mistake makes of a statement, on one rank alone. `{}` is the statement.
MISTAKES = {
    "skip": "",
    "twice": "{0}\n{0}",
    "early return": "return",
    "raise": "raise ValueError('a mistake')",
    "exit": "sys.exit(0)",
    "another call": "dist.barrier()\n{0}",
    "another size": "t = filled(7, torch.float32, 1); dist.all_reduce(t); say({1}, t)",
}


# And what it makes of an argument: (pattern, replacement).
WRONG_ARGUMENTS = {
    "another root": (r"(src|dst)=\d", r"\1=(1 if rank else 0)"),
    "another dtype": (r"torch\.(float32|float64|int32|int64|uint8), (\d)", r"torch.float16, \2"),
    "another operation": (r"ReduceOp\.\w+", "ReduceOp.MIN"),
    "another peer": (r"\(rank \+ 1\) % world", "(rank - 1) % world"),  # to itself: torch 1.13 dies of that
    "another tag": (r"tag=\d", "tag=7"),
    "never waited": (r"w\.wait\(\); say\((\d+), t\)", r"say(\1)"),
}


def mistaken(statement, mistake, step):
    """The statement with the mistake; None where it cannot be made in it."""
    if mistake in MISTAKES:
        return MISTAKES[mistake].format(statement, step) or "pass"
    wrong = re.sub(*WRONG_ARGUMENTS[mistake], statement)
    return wrong if wrong != statement else None


def draw(seed):
    """-> (world size, statements, the mistake or None)"""
    chance = random.Random(seed)
    world = chance.randrange(2, 5)
    drawing = Drawing(chance, world)
    statements = []
    for step in range(chance.randrange(3, 14)):
        drawing.step = step
        statements.append(getattr(drawing, chance.choice(KINDS))())
    mistake = chance.choice([*sorted(MISTAKES), *sorted(WRONG_ARGUMENTS)]) if chance.random() < 0.6 else None
    places = [at for at in range(len(statements)) if mistake and mistaken(statements[at], mistake, at)]
    if not places:
        return world, statements, None
    at, who = chance.choice(places), chance.randrange(world)
    wrong = mistaken(statements[at], mistake, at)
    statements[at] = f"if rank == {who}:\n{indented(wrong)}\nelse:\n{indented(statements[at])}"
    return world, statements, mistake


def indented(text):
    return "\n".join("    " + line for line in text.split("\n"))


def script(statements):
    return HEADER + indented("\n".join(statements) or "pass") + "\n" + FOOTER
