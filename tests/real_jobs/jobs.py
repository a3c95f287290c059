#!/usr/bin/env python3
"""Runs real jobs of four processes that hang, fail or run, and keeps their dumps, stacks and logs.

    python3 jobs.py FOLDER [--mode plain|timeout|detail] [--stagger 0.05,0.2] [CASE ...]
    python3 jobs.py FOLDER --stagger 0,0.01,0.05,0.2,1 healthy
    python3 jobs.py FOLDER --backend nccl --together 3 [CASE ...]

One folder per case: pickle/ and json/ (Flight Recorder dumps), pickle_later/ (the same some seconds later), stack/
(faulthandler), log/ (standard error), truth.json. It needs a torch whose Gloo has a Flight Recorder (2.9 or later).
Rank r is dumped r times `--stagger` seconds after rank 0; several values give several dumps of the running job, each in
a folder of its own. `timeout` gives every group a timeout of 4 s; `detail` also sets TORCH_DISTRIBUTED_DEBUG=DETAIL;
both dump after the timeouts. A CASE is a name, or the prefix of several.

On nccl, the four ranks share a GPU: each pretends to be a host of its own. What NCCL's RAS says at the moment of the
dumps is in ras/. Groups have a timeout of `--timeout` seconds, and what torch's watchdog then dumps is in watchdog/.
"""
import argparse
import concurrent.futures
import contextlib
import datetime
import faulthandler
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import socket
import sys
import threading
import time
import traceback

WORLD = 4
RAS_PORT = 28100  # of the first job; NCCL's own is 28028
RING = {}  # cases with a short ring
CASES = {}
TRUTH = {}
DUMPED = threading.Event()  # for this rank: its first dump is requested


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--mode", choices=["plain", "timeout", "detail"], default="plain")
    parser.add_argument("--stagger", type=lambda text: [float(each) for each in text.split(",")], default=[0.05])
    parser.add_argument("--settle", type=float, default=4.0)
    parser.add_argument("--backend", choices=["gloo", "nccl"], default="gloo")
    parser.add_argument("--timeout", type=float, default=20, help="of groups on nccl")
    parser.add_argument("--together", type=int, default=1, help="number of jobs that run at once")
    parser.add_argument("cases", nargs="*")
    return parser.parse_intermixed_args()  # cases may follow options


OPTIONS = options()
if OPTIONS.mode == "detail":  # read when torch is loaded
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    os.environ["TORCH_CPP_LOG_LEVEL"] = "INFO"
os.environ.setdefault("USE_LIBUV", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

with contextlib.suppress(ImportError, ValueError):  # torch 1.13 with a newer Python
    import torch.distributed.fsdp  # noqa: F401
with contextlib.suppress(ImportError):  # torch 1.13 does not have it
    import torch._dynamo  # noqa: F401  (DDP loads it, and ranks are forked)


def case(verdict, culprits, accept=(), ring=None, with_log=None, decidable=True, accept_culprits=(), only=None):
    def add(function):
        name = function.__name__
        if only not in (None, OPTIONS.backend):
            return function
        CASES[name] = function
        TRUTH[name] = {"verdict": verdict, "culprits": culprits, "accept": list(accept), "decidable": decidable,
                       "with_log": with_log, "accept_culprits": list(accept_culprits)}
        RING[name] = ring
        return function
    return add


ABSENT = ("early_exit", "stuck_host", "skipped_collective", "crashed_rank")


DEVICE = torch.device("cuda:0" if OPTIONS.backend == "nccl" else "cpu")


def T(n=64, dtype=torch.float32):
    return torch.ones(n, dtype=dtype, device=DEVICE)


def X(*sizes):
    return torch.ones(*sizes, device=DEVICE)


# A step reads a value from the GPU, as a loop that prints its loss does.
def nap(seconds=0.02):
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    time.sleep(seconds)


def stall():
    while True:
        time.sleep(1)


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(DEVICE)


# --- ranks that do not arrive ---

@case("stuck_host", [2], ABSENT)
def stuck_in_loader(r):
    for i in range(20):
        nap()
        if r == 2 and i == 9:
            stall()
        dist.all_reduce(T())


@case("stuck_host", [3], ABSENT)
def stuck_in_first_call(r):
    if r == 3:
        stall()
    dist.all_reduce(T())


@case("stuck_host", [1, 3], ABSENT)
def two_stuck(r):
    for i in range(20):
        nap()
        if r % 2 == 1 and i == 5:
            stall()
        dist.all_reduce(T(128))
        dist.broadcast(T(8), 0)


@case("skipped_collective", [1], ABSENT)
def skipped_branch_periodic(r):
    for i in range(12):
        nap()
        dist.all_reduce(T(64))
        if not (r == 1 and i == 6):
            dist.all_reduce(T(64))


@case("early_exit", [0], ABSENT)
def ddp_uneven(r):
    model = torch.nn.parallel.DistributedDataParallel(net())
    for _ in range(5 if r == 0 else 7):
        model(X(4, 32)).sum().backward()
    if r == 0:
        stall()


@case("crashed_rank", [1], ABSENT)
def killed(r):
    for i in range(20):
        nap()
        if r == 1 and i == 6:
            os.kill(os.getpid(), signal.SIGSTOP)
        dist.all_reduce(T())


@case("crashed_rank", [3], ABSENT + ("no_fault",), decidable=False, with_log=[["crashed_rank", "stuck_host"], [3]])
def sigkill(r):
    for i in range(20):
        nap()
        if r == 3 and i == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(T())


@case("crashed_rank", [2], ABSENT + ("no_fault",), decidable=False,
      with_log=[["crashed_rank", "stuck_host", "early_exit"], [2]])
def sys_exit(r):
    for i in range(20):
        nap()
        if r == 2 and i == 6:
            sys.exit(3)
        dist.all_reduce(T())


@case("crashed_rank", [1], ABSENT + ("no_fault",), decidable=False, with_log=[["crashed_rank"], [1]])
def raises_and_dies(r):
    for i in range(20):
        nap()
        if r == 1 and i == 6:
            raise ValueError("bad batch")
        dist.all_reduce(T())


@case("crashed_rank", [2], ABSENT, with_log=[["crashed_rank", "stuck_host"], [2]])
def raises_and_waits(r):
    for i in range(20):
        nap()
        if r == 2 and i == 6:
            try:
                raise KeyError("label")
            except KeyError:
                traceback.print_exc()
                stall()
        dist.all_reduce(T())


@case("early_exit", [3], ABSENT)
def leaves_loop_early(r):
    for i in range(8 if r == 3 else 10):
        nap()
        dist.all_reduce(T(100))
        dist.all_reduce(T(10))


@case("stuck_host", [0], ABSENT)
def saves_for_ever(r):
    for i in range(6):
        nap()
        dist.all_reduce(T())
    if r == 0:
        stall()
    dist.barrier()


# --- what only GPUs do ---

@case("stuck_device", [2], ABSENT, decidable=False, only="nccl")
def kernel_never_ends(r):
    for i in range(10):
        nap()
        if r == 2 and i == 6:
            torch.cuda._sleep(1 << 40)  # cycles: minutes
        dist.all_reduce(T())


# No rank reads a value, so all hosts end long before their GPUs.
@case("skipped_collective", [1], ABSENT, only="nccl")
def runs_ahead_and_skips(r):
    for i in range(20):
        dist.all_reduce(T(64))
        if not (r == 1 and i == 9):
            dist.all_reduce(T(128))


@case("crashed_rank", [1], ABSENT, decidable=False, with_log=[["crashed_rank"], [1]], only="nccl")
def index_out_of_range(r):
    for i in range(12):
        nap()
        if r == 1 and i == 6:
            T(4)[torch.tensor([9], device=DEVICE)]
        dist.all_reduce(T())


@case("crashed_rank", [3], ABSENT, decidable=False, with_log=[["crashed_rank"], [3]], only="nccl")
def memory_runs_out(r):
    for i in range(12):
        nap()
        if r == 3 and i == 6:
            try:
                T(1 << 43)
            except torch.cuda.OutOfMemoryError:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
        dist.all_reduce(T())


# --- calls that disagree ---

@case("size_mismatch", [3])
def wrong_size(r):
    for i in range(9):
        nap()
        dist.all_reduce(T(48))
    dist.all_reduce(T(60 if r == 3 else 48))


# Gloo aborts a rank that receives more than it expects: it leaves no dump.
@case("size_mismatch", [0], ABSENT, decidable=False, with_log=[["size_mismatch", "crashed_rank"], [0]])
def wrong_size_small(r):
    for i in range(9):
        nap()
        dist.all_reduce(T(48))
    dist.all_reduce(T(8 if r == 0 else 48))


@case("dtype_mismatch", [2], ("size_mismatch",))
def wrong_dtype(r):
    for i in range(9):
        nap()
        dist.all_reduce(T(48))
    dist.all_reduce(T(48, torch.float64 if r == 2 else torch.float32))


@case("op_type_mismatch", [1], ("skipped_collective", "extra_collective"))
def barrier_for_all_reduce(r):
    for i in range(6):
        nap()
        dist.all_reduce(T(48))
    if r == 1:
        dist.barrier()
    else:
        dist.all_reduce(T(48))


@case("extra_collective", [0], ("op_type_mismatch", "size_mismatch"))
def object_on_rank_0(r):
    for i in range(6):
        nap()
        dist.all_reduce(T(48))
    if r == 0:
        dist.all_gather_object([None] * WORLD, {"metric": 1})
    dist.all_reduce(T(48))


@case("extra_collective", [2], ("size_mismatch", "crashed_rank", "no_fault"), decidable=False,
      with_log=[["size_mismatch", "extra_collective", "crashed_rank"], [2]])
def extra_small_call(r):
    for i in range(12):
        nap()
        dist.all_reduce(T(64))
        if r == 2 and i == 6:
            dist.all_reduce(T(1))


@case("skipped_collective", [2], ("op_type_mismatch", "size_mismatch", "early_exit", "stuck_host"))
def fsdp_skips_layer(r):
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = FSDP(torch.nn.Linear(32, 32), device_id=DEVICE)
            self.b = FSDP(torch.nn.Linear(32, 32), device_id=DEVICE)

        def forward(self, x, skip):
            x = self.a(x)
            return x if skip else self.b(x)

    model = Twice()
    for i in range(6):
        model(X(2, 32), r == 2 and i == 4).sum().backward()


# --- groups ---

def crossing_groups(r):
    tp = [dist.new_group([0, 1]), dist.new_group([2, 3])][r // 2]
    dp = [dist.new_group([0, 2]), dist.new_group([1, 3])][r % 2]
    return tp, dp


@case("cross_group_deadlock", [1, 2], accept_culprits=[[0, 1, 2, 3]])
def crossed_groups(r):
    tp, dp = crossing_groups(r)
    for i in range(8):
        nap()
        first, second = (dp, tp) if i == 5 and r in (1, 2) else (tp, dp)
        dist.all_reduce(T(16 if first is tp else 32), group=first)
        dist.all_reduce(T(16 if second is tp else 32), group=second)


@case("stuck_host", [3], ABSENT + ("op_type_mismatch", "cross_group_deadlock", "wrong_group"))
def wrong_group(r):
    tp, dp = crossing_groups(r)
    for i in range(8):
        nap()
        dist.all_reduce(T(16), group=tp)
        if r == 3 and i == 5:
            stall()
        dist.all_reduce(T(32), group=dp)


@case("partial_subgroup", [3], ABSENT + ("extra_collective", "no_fault"), decidable=False,
      with_log=None, accept_culprits=[[0, 1, 2]])
def partial_new_group(r):
    for i in range(4):
        nap()
        dist.all_reduce(T(32))
    if r != 3:
        dist.new_group([0, 1, 2, 3])
    dist.all_reduce(T(32))


# --- messages ---

# Ranks 1 and 3 sent first until then.
@case("p2p_mismatch", [0, 1, 2, 3], ("no_fault",), decidable=False, accept_culprits=[[1, 3]])
def both_receive(r):
    for i in range(5):
        dist.all_reduce(T(8))
        peer = r ^ 1
        if i == 3 or r % 2 == 0:
            dist.recv(T(4), peer)
            dist.send(T(4), peer)
        else:
            dist.send(T(4), peer)
            dist.recv(T(4), peer)


@case("p2p_mismatch", [1], ("no_fault", "stuck_host"), decidable=False)
def pipeline_drops_message(r):
    for i in range(6):
        nap()
        for m in range(3):
            if r > 0 and not (r == 2 and i == 4 and m == 5):
                dist.recv(T(4), r - 1)
            if r < WORLD - 1 and not (r == 1 and i == 4 and m == 1):
                dist.send(T(4), r + 1)
        dist.all_reduce(T(8))


@case("stuck_host", [2], ABSENT + ("no_fault",), decidable=False, with_log=[list(ABSENT), [2]],
      only="gloo")
def monitored_barrier(r):
    for i in range(5):
        nap()
        dist.all_reduce(T(8))
    if r == 2:
        stall()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=2))


# --- Join ---

@case("join_shadow_mismatch", [0], ("size_mismatch", "no_fault"), ring=50000)  # it runs forever
def join_wrong_count(r):
    from torch.distributed.algorithms.join import Join, Joinable, JoinHook

    class Hook(JoinHook):
        def main_hook(self):
            dist.all_reduce(T(1))

    class Counter(Joinable):
        def __init__(self):
            super().__init__()

        def join_hook(self, **kwargs):
            return Hook()

        @property
        def join_device(self):
            return DEVICE

        @property
        def join_process_group(self):
            return dist.group.WORLD

        def step(self):
            Join.notify_join_context(self)
            nap(0.005)
            dist.all_reduce(T(1))
            dist.all_reduce(T(1))

    counter = Counter()
    with Join([counter]):
        for _ in range(3 if r == 0 else 6):
            counter.step()


# --- healthy jobs ---

def healthy(**more):
    return case("no_fault", [], ("straggler",), **more)


@healthy()
def healthy_done(r):
    for i in range(8):
        nap()
        dist.all_reduce(T())


@healthy(ring=150)
def healthy_fast(r):
    while True:
        dist.all_reduce(T(100))


@healthy(ring=150)
def healthy_steps(r):
    while True:
        nap(0.01)
        dist.all_reduce(T(1000))
        dist.all_reduce(T(1))


@healthy(ring=60)
def healthy_slow_steps(r):
    while True:
        nap(0.3)
        dist.all_reduce(T(1000))


@healthy(ring=100)
def healthy_async(r):
    while True:
        works = [dist.all_reduce(T(2000), async_op=True) for _ in range(6)]
        nap(0.005)
        for work in works:
            work.wait()


@healthy(ring=150)
def healthy_ddp(r):
    model = torch.nn.parallel.DistributedDataParallel(net())
    while True:
        model(X(4, 32)).sum().backward()


@healthy(ring=150)
def healthy_groups(r):
    tp, dp = crossing_groups(r)
    while True:
        dist.all_reduce(T(16), group=tp)
        dist.all_reduce(T(32), group=dp)


@healthy(ring=150)
def healthy_jitter(r):
    import random
    random.seed(r)
    while True:
        nap(random.random() * 0.03)
        dist.all_reduce(T(16))
        dist.broadcast(T(16), 0)


@healthy()
def healthy_pipeline(r):
    while True:
        for m in range(3):
            if r > 0:
                dist.recv(T(4), r - 1)
            nap(0.003)
            if r < WORLD - 1:
                dist.send(T(4), r + 1)
        dist.all_reduce(T(8))


@healthy()
def healthy_join(r):
    from torch.distributed.algorithms.join import Join
    model = torch.nn.parallel.DistributedDataParallel(net())
    with Join([model]):
        for _ in range(4 + r):
            model(X(4, 32)).sum().backward()


@case("straggler", [1], ("no_fault",), accept_culprits=[[]])
def straggler(r):
    while True:
        nap(0.3 if r == 1 else 0.03)
        dist.all_reduce(T(100))


# --- more kinds ---

@case("stuck_host", [3], ABSENT)
def stuck_in_subgroup(r):
    half = [dist.new_group([0, 1]), dist.new_group([2, 3])][r // 2]
    for i in range(20):
        nap()
        if r == 3 and i == 7:
            stall()
        dist.all_reduce(T(24), group=half)
        if i % 4 == 3:
            dist.all_reduce(T(8))


@case("stuck_host", [1, 2], ABSENT)
def stuck_in_both_halves(r):
    half = [dist.new_group([0, 1]), dist.new_group([2, 3])][r // 2]
    for i in range(20):
        nap()
        if r in (1, 2) and i == 6:
            stall()
        dist.all_reduce(T(24), group=half)


@case("skipped_collective", [2], ABSENT + ("wrong_group", "cross_group_deadlock", "op_type_mismatch", "size_mismatch",
                                           "extra_collective"))
def uses_the_other_group(r):
    tp, dp = crossing_groups(r)
    for i in range(8):
        nap()
        dist.all_reduce(T(16), group=tp)
        dist.all_reduce(T(32), group=tp if r == 2 and i == 5 else dp)


class Slow(torch.utils.data.Dataset):
    def __init__(self, sticks_at):
        self.sticks_at = sticks_at
        self.owner = os.getpid()

    def __len__(self):
        return 64

    def __getitem__(self, index):
        while index == self.sticks_at and os.getppid() == self.owner:
            time.sleep(0.2)
        return torch.ones(4)


@case("stuck_host", [1], ABSENT)
def stuck_loader_worker(r):
    loader = torch.utils.data.DataLoader(Slow(21 if r == 1 else -1), batch_size=4, num_workers=1)
    for batch in loader:
        dist.all_reduce(batch.to(DEVICE))


@case("skipped_collective", [2], ABSENT)
def swallows_exception(r):
    for i in range(12):
        nap()
        with contextlib.suppress(ValueError):
            if r == 2 and i == 7:
                raise ValueError("bad sample")
            dist.all_reduce(T(40))


@case("skipped_collective", [1], ABSENT + ("size_mismatch", "op_type_mismatch"))
def retries_without_first_half(r):
    for i in range(9):
        nap()
        try:
            dist.all_reduce(T(40))
            if r == 1 and i == 4:
                raise RuntimeError("out of memory")
            dist.broadcast(T(12), 0)
        except RuntimeError:
            continue


@case("skipped_collective", [3], ABSENT + ("size_mismatch", "op_type_mismatch", "extra_collective"))
def no_sync_for_one_step_more(r):
    model = torch.nn.parallel.DistributedDataParallel(net())
    for i in range(8):
        accumulates = i % 2 == 0 or (r == 3 and i == 5)
        with model.no_sync() if accumulates else contextlib.nullcontext():
            model(X(4, 32)).sum().backward()
        if i % 2 == 1:
            dist.all_reduce(T(1))


@case("crashed_rank", [1], ABSENT + ("skipped_collective", "op_type_mismatch", "size_mismatch"))
def leaves_out_parameters(r):
    class Branch(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

        def forward(self, x, skip):
            return self.a(x) if skip else self.b(self.a(x))

    model = torch.nn.parallel.DistributedDataParallel(Branch().to(DEVICE))
    for i in range(8):
        nap()
        model(X(2, 8), r == 1 and i == 5).sum().backward()


@case("skipped_collective", [2], ABSENT + ("op_type_mismatch", "size_mismatch", "extra_collective"))
def gathers_objects_without_one(r):
    for i in range(8):
        nap()
        dist.all_reduce(T(48))
        if not (r == 2 and i == 5):
            dist.all_gather_object([None] * WORLD, {"step": i})


@case("skipped_collective", [3], ABSENT + ("op_type_mismatch", "size_mismatch", "extra_collective"))
def scatters_without_one(r):
    for i in range(8):
        nap()
        dist.all_reduce(T(48))
        if not (r == 3 and i == 5):
            dist.scatter(T(12), [T(12) for _ in range(WORLD)] if r == 0 else None, 0)


@case("stuck_host", [3], ABSENT)
def scatters_after_few_calls(r):
    dist.scatter(T(12), [T(12) for _ in range(WORLD)] if r == 0 else None, 0)
    dist.gather(T(12), [T(12) for _ in range(WORLD)] if r == 1 else None, 1)
    dist.reduce(T(12), 2)
    if r != 3:
        dist.scatter(T(12), [T(12) for _ in range(WORLD)] if r == 0 else None, 0)


# Gloo reduces the tensors of the list one after the other.
@case("skipped_collective", [1], ABSENT + ("op_type_mismatch", "size_mismatch", "extra_collective"))
def reduce_scatters_without_one(r):
    for i in range(8):
        nap()
        dist.broadcast(T(48), 0)
        if not (r == 1 and i == 5):
            dist.reduce_scatter(T(12), [T(12) for _ in range(WORLD)])


@case("op_type_mismatch", [3], ("extra_collective", "skipped_collective", "size_mismatch"))
def broadcasts_for_all_gather(r):
    for i in range(6):
        nap()
        dist.all_reduce(T(16))
    if r == 3:
        dist.broadcast(T(16), 0)
    else:
        dist.all_gather([T(16) for _ in range(WORLD)], T(16))


@case("extra_collective", [1], ABSENT + ("op_type_mismatch", "size_mismatch"))
def logs_on_one_rank_only(r):
    for i in range(10):
        nap()
        dist.all_reduce(T(64))
        if r == 1 and i % 4 == 3:
            dist.all_reduce(T(64))


@case("stuck_host", [2], ABSENT + ("p2p_mismatch", "no_fault"), decidable=False, with_log=[list(ABSENT), [2]])
def stuck_in_ring(r):
    for i in range(10):
        nap()
        if r == 2 and i == 6:
            stall()
        ops = [dist.P2POp(dist.isend, T(4), (r + 1) % WORLD), dist.P2POp(dist.irecv, T(4), (r - 1) % WORLD)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        dist.all_reduce(T(8))


@case("p2p_mismatch", [0], ABSENT + ("no_fault",), decidable=False, accept_culprits=[[3], [0, 3], [0, 1, 2, 3]])
def batch_to_wrong_peer(r):
    for i in range(8):
        nap()
        to = (r + 2) % WORLD if r == 0 and i == 5 else (r + 1) % WORLD
        ops = [dist.P2POp(dist.isend, T(4), to), dist.P2POp(dist.irecv, T(4), (r - 1) % WORLD)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        dist.all_reduce(T(8))


@case("stuck_host", [1], ABSENT + ("no_fault",), decidable=False, with_log=[list(ABSENT), [1]],
      only="gloo")
def monitored_barrier_of_half(r):
    half = [dist.new_group([0, 1]), dist.new_group([2, 3])][r // 2]
    for i in range(5):
        nap()
        dist.all_reduce(T(8), group=half)
    if r == 1:
        stall()
    dist.monitored_barrier(half, timeout=datetime.timedelta(seconds=2), wait_all_ranks=True)


@case("early_exit", [0], ABSENT + ("join_shadow_mismatch", "size_mismatch"))
def leaves_without_join(r):
    from torch.distributed.algorithms.join import Join
    model = torch.nn.parallel.DistributedDataParallel(net())
    with contextlib.nullcontext() if r == 0 else Join([model]):
        for _ in range(4 if r == 0 else 7):
            model(X(4, 32)).sum().backward()
    stall()


@case("stuck_host", [0], ABSENT)
def evaluates_for_ever(r):
    model = torch.nn.parallel.DistributedDataParallel(net())
    for i in range(12):
        model(X(4, 32)).sum().backward()
        if i == 8 and r == 0:
            while True:
                model.module(X(64, 32))
    dist.barrier()


@case("crashed_rank", [0], ABSENT + ("no_fault",), decidable=False, with_log=[["crashed_rank", "stuck_host"], [0]])
def rank_0_killed(r):
    for i in range(30):
        nap()
        if r == 0 and i == 12:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(T(16))
        dist.broadcast(T(4), 0)


# --- more healthy jobs ---

@healthy(ring=200)
def healthy_first_checkpoint(r):
    saved = False
    while True:
        nap(0.01)
        if r == 0 and DUMPED.is_set() and not saved:
            saved = True
            nap(1.5)
        dist.all_reduce(T(32))


@healthy(ring=200)
def healthy_checkpoints(r):
    step = 0
    while True:
        nap(0.01)
        step += 1
        if r == 0 and step % 50 == 0:
            nap(0.6)
        dist.all_reduce(T(32))


@healthy(ring=100)
def healthy_evaluation_on_rank_0(r):
    step = 0
    while True:
        nap(0.02)
        step += 1
        dist.all_reduce(T(32))
        if step % 20 == 0:
            if r == 0:
                nap(0.5)
            dist.barrier()


@healthy(ring=80)
def healthy_host_ahead(r):
    pending = []
    while True:
        pending.append(dist.all_reduce(T(3000), async_op=True))
        nap(0.002)
        if len(pending) > 20:
            pending.pop(0).wait()


@healthy()
def healthy_ring(r):
    while True:
        nap(0.005)
        ops = [dist.P2POp(dist.isend, T(4), (r + 1) % WORLD), dist.P2POp(dist.irecv, T(4), (r - 1) % WORLD)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        dist.all_reduce(T(8))


@healthy(ring=90)
def healthy_objects(r):
    while True:
        nap(0.01)
        dist.all_gather_object([None] * WORLD, {"rank": r})
        dist.all_reduce(T(8))


@healthy(ring=120)
def healthy_accumulation(r):
    model = torch.nn.parallel.DistributedDataParallel(net())
    step = 0
    while True:
        step += 1
        with contextlib.nullcontext() if step % 4 == 0 else model.no_sync():
            model(X(4, 32)).sum().backward()


@healthy(ring=70)
def healthy_halves(r):
    half = [dist.new_group([0, 1]), dist.new_group([2, 3])][r // 2]
    step = 0
    while True:
        step += 1
        nap(0.01 if r < 2 else 0.014)
        dist.all_reduce(T(16), group=half)
        if step % 10 == 0:
            dist.all_reduce(T(8))


@healthy()
def healthy_long_steps(r):
    while True:
        nap(0.8)
        dist.all_reduce(T(100))
        dist.broadcast(T(4), 0)


@healthy()
def healthy_begins(r):
    nap(2 if r == 2 else 1)
    while True:
        nap(0.5)
        dist.all_reduce(T(100))


# --- running them ---

# The requested dumps of a job: a mark to wait for, the folder and its suffix, seconds between ranks.
def moments(name):
    several = len(OPTIONS.stagger) > 1
    asked = [(f"go{k}", OPTIONS.folder / (f"{name}_{stagger:g}s" if several else name), "", stagger)
             for k, stagger in enumerate(OPTIONS.stagger)]
    return asked if several else [*asked, ("later", OPTIONS.folder / name, "_later", asked[0][3])]


def takes_of_dumps():
    c10d = torch._C._distributed_c10d
    if OPTIONS.backend == "nccl":
        return c10d._dump_nccl_trace, c10d._dump_nccl_trace_json
    return c10d._dump_fr_trace, c10d._dump_fr_trace_json


def write_dump(folder, r, suffix=""):
    pickled, as_json = takes_of_dumps()
    for kind, name, take in (("pickle", f"nccl_trace_rank_{r}", pickled),
                             ("json", f"nccl_trace_rank_{r}.json", as_json)):
        place = folder / (kind + suffix)
        place.mkdir(parents=True, exist_ok=True)
        data = take()
        (place / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    place = folder / ("stack" + suffix)
    place.mkdir(exist_ok=True)
    with open(place / f"rank_{r}.txt", "w") as out:
        faulthandler.dump_traceback(out, all_threads=True)


# The protocol of NCCL's client (src/ras/client.cc): a line answers each command, and the status comes last, until the
# end. The lines before the status are left out, as by the client.
def ask_ras(folder, port):
    folder.mkdir(parents=True, exist_ok=True)
    for name, commands in (("status.txt", b"VERBOSE STATUS\n"), ("status.json", b"SET FORMAT json\nVERBOSE STATUS\n")):
        try:
            with socket.create_connection(("localhost", port), 2) as ras:
                ras.settimeout(12)
                ras.sendall(b"CLIENT PROTOCOL 2\n" + commands)
                text = b"".join(iter(lambda: ras.recv(65536), b"")).split(b"\n", commands.count(b"\n"))[-1]
        except OSError as error:
            text = f"not answered: {error}\n".encode()
        (folder / name).write_bytes(text)


def environment_of(name, r, port, number, folder):
    mine = dict(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE=str(WORLD),
                GLOO_SOCKET_IFNAME="lo", TORCH_FR_BUFFER_SIZE=str(RING[name] or 2000))
    if OPTIONS.backend == "nccl":
        watchdog = folder / "watchdog"
        watchdog.mkdir(exist_ok=True)
        mine.update(NCCL_HOSTID=f"host{r}", NCCL_NET="Socket", NCCL_SOCKET_IFNAME="lo",
                    NCCL_RAS_ADDR=f"localhost:{RAS_PORT + number}", TORCH_NCCL_DUMP_ON_TIMEOUT="1",
                    TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC="2000",
                    TORCH_FR_DUMP_TEMP_FILE=str(watchdog / "nccl_trace_rank_"),
                    TORCH_NCCL_DEBUG_INFO_TEMP_FILE=str(watchdog / "nccl_trace_rank_"),
                    TORCH_NCCL_TRACE_BUFFER_SIZE=str(RING[name] or 2000))
    return mine


def watch(name, folder, r):
    for mark, target, suffix, stagger in moments(name):  # files, because a stopped process cannot wake others
        while not (folder / mark).exists():
            time.sleep(0.002)
        if not DUMPED.is_set():
            DUMPED.set()
            time.sleep(0.1)  # until the checkpoint has begun
        time.sleep(r * stagger)
        write_dump(target, r, suffix)
        (folder / f"{mark}_{r}").touch()


def rank_main(name, r, port, number, folder):
    log = os.open(folder / "log" / f"rank_{r}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 2)
    os.environ.update(environment_of(name, r, port, number, folder))
    timeout = 1800 if OPTIONS.mode == "plain" else 4
    if OPTIONS.backend == "nccl":
        torch.cuda.set_device(0)
        timeout = OPTIONS.timeout
    dist.init_process_group(OPTIONS.backend, rank=r, world_size=WORLD, timeout=datetime.timedelta(seconds=timeout))
    if OPTIONS.backend == "nccl":  # it is connected before the job begins, which takes seconds
        dist.all_reduce(T(1))
        torch.cuda.synchronize()
    threading.Thread(target=watch, args=(name, folder, r), daemon=True).start()
    (folder / f"ready_{r}").touch()
    try:
        CASES[name](r)
    except SystemExit:
        os._exit(3)
    except BaseException as error:
        traceback.print_exc()
        sys.stderr.flush()
        if "bad batch" in str(error):
            os._exit(1)
    stall()


# A rank may be dead or stopped, and never answer.
def wait_for(folder, mark, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(list(folder.glob(mark + "_*"))) < WORLD:
        time.sleep(0.05)


def is_healthy(name):
    return TRUTH[name]["verdict"] in ("no_fault", "straggler")


def run(name, number):
    folder = OPTIONS.folder / f"running_{name}"
    (folder / "log").mkdir(parents=True, exist_ok=True)
    fork = multiprocessing.get_context("fork")
    ranks = [fork.Process(target=rank_main, args=(name, r, 29800 + number, number, folder)) for r in range(WORLD)]
    for rank in ranks:
        rank.start()
    wait_for(folder, "ready", 60)
    begun = time.monotonic()
    time.sleep(OPTIONS.settle if OPTIONS.mode == "plain" else OPTIONS.settle + 6)
    asked = moments(name) if OPTIONS.mode == "plain" else moments(name)[:1]
    for mark, target, suffix, stagger in asked:
        time.sleep(2 if suffix else 0)
        (folder / mark).touch()
        wait_for(folder, mark, 4 + WORLD * stagger)
        if OPTIONS.backend == "nccl" and not suffix:
            ask_ras(target / "ras", RAS_PORT + number)
    if OPTIONS.backend == "nccl" and not is_healthy(name):  # torch's watchdog dumps, and ends the ranks
        time.sleep(max(0, begun + OPTIONS.timeout + 6 - time.monotonic()))
    for kill in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, so that no rank sees and logs another's end
        for rank in ranks:
            if rank.is_alive():
                os.kill(rank.pid, kill)
    for rank in ranks:
        rank.join()
    truth = dict(TRUTH[name], case=name, torch=torch.__version__, backend=OPTIONS.backend, ranks=WORLD, real=True,
                 mode=OPTIONS.mode)
    if OPTIONS.backend == "nccl":
        truth.update(nccl=".".join(map(str, torch.cuda.nccl.version())))
    for target in dict.fromkeys(each[1] for each in asked):
        target.mkdir(exist_ok=True)
        for kept in ("log", "watchdog"):
            if (folder / kept).exists():
                shutil.copytree(folder / kept, target / kept, dirs_exist_ok=True)
        (target / "truth.json").write_text(json.dumps(truth, indent=1))
    shutil.rmtree(folder)
    print(name, flush=True)


def chosen():
    return list(dict.fromkeys(name for prefix in OPTIONS.cases or [""] for name in CASES if name.startswith(prefix)))


if __name__ == "__main__":
    if OPTIONS.backend == "gloo" and not hasattr(torch._C._distributed_c10d, "_dump_fr_trace"):
        sys.exit("skipped: this torch has no Flight Recorder for Gloo")
    OPTIONS.folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(OPTIONS.together) as together:
        for each in [together.submit(run, name, number) for number, name in enumerate(chosen())]:
            each.result()
