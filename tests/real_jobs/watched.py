#!/usr/bin/env python3
"""Runs one of the jobs of jobs.py for `rollcall watch`: four ranks that do not know that they are watched.

    rollcall watch -- python3 watched.py CASE [PORT]
    rollcall watch -- torchrun --nproc_per_node 4 watched.py CASE

It uses MASTER_ADDR, MASTER_PORT and GLOO_SOCKET_IFNAME, and starts only the ranks in RANKS. A finished rank stays, as
in jobs.py. Some cases are only here, because a dump could not show them.
"""
import ctypes
import datetime
import json
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback

CASE = sys.argv[1]
PORT = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("MASTER_PORT", "29790")
sys.argv = ["jobs.py", tempfile.gettempdir()]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import jobs  # noqa: E402
from jobs import ABSENT, T, case, dist, healthy, nap, torch  # noqa: E402


@case("stuck_host", [2], ABSENT)
def holds_gil_in_c(r):
    for i in range(20):
        nap()
        if r == 2 and i == 9:
            ctypes.PyDLL(None).sleep(3600)  # holds the interpreter
        dist.all_reduce(T())


@case("stuck_host", [1], ABSENT)
def spins(r):
    for i in range(20):
        nap()
        while r == 1 and i == 9:
            pass
        dist.all_reduce(T())


class Blocking(torch.utils.data.Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        if index == 12:
            threading.Event().wait()
        return torch.ones(4)


@case("stuck_host", [3], ABSENT)
def loader_blocks(r):
    data = Blocking() if r == 3 else [torch.ones(4)] * 100
    for batch in torch.utils.data.DataLoader(data, batch_size=2, num_workers=1 if r == 3 else 0):
        nap(0.01)
        dist.all_reduce(batch)


@case("crashed_rank", [0], ABSENT)
def disk_full_at_checkpoint(r):
    for i in range(8):
        nap()
        dist.all_reduce(T())
    if r == 0:
        with open("/dev/full", "wb", buffering=0) as out:
            out.write(b"x" * 4096)
    dist.barrier()


@case("stuck_host", [1], ABSENT)
def never_initializes(r):
    dist.all_reduce(T())  # rank 1 is not here: see main


@case("stuck_host", [0], ABSENT + ("p2p_mismatch",))
def waits_for_lock_file(r):
    for i in range(6):
        nap()
        dist.all_reduce(T())
    while r == 0 and not os.path.exists("/nonexistent/lock"):
        time.sleep(0.05)
    dist.broadcast(T(), 0)


@healthy()
def healthy_checkpoints(r):
    step = 0
    while True:
        nap(0.01)
        dist.all_reduce(T(1000))
        step += 1
        if step % 200 == 0:
            if r == 0:
                end = time.monotonic() + 8
                with tempfile.TemporaryFile() as out:
                    while time.monotonic() < end:
                        out.seek(0)
                        out.write(os.urandom(1 << 20))
            dist.barrier()


@healthy()
def healthy_validation(r):
    model = jobs.net()
    step = 0
    while True:
        nap(0.01)
        dist.all_reduce(T(1000))
        step += 1
        if step % 200 == 0:
            if r == 0:
                end = time.monotonic() + 9
                total = 0.0
                while time.monotonic() < end:
                    outputs = model(torch.rand(64, 32))
                    total += outputs.sum().item()
            dist.barrier()


@healthy()
def healthy_pauses(r):
    """All ranks wait for a slow file system now and then, each time slightly longer."""
    step = 0
    while True:
        nap(0.01)
        dist.all_reduce(T(1000))
        step += 1
        if step % 100 == 0:
            nap(min(6, step / 200) if r == 2 else 0)


def trains(r, at_step, seconds=0.2):
    """Training steps, with `at_step` before each."""
    model = torch.nn.parallel.DistributedDataParallel(jobs.net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    while True:
        at_step(step)
        nap(seconds)
        optimizer.zero_grad()
        model(torch.ones(4, 32)).sum().backward()
        optimizer.step()
        if step % 10 == 9:
            dist.all_reduce(T(1))
        step += 1


def writes(megabytes, seconds):
    """Writes as if to a remote disk."""
    with tempfile.TemporaryFile() as out:
        for _ in range(int(seconds / 0.05)):
            out.write(bytes(int(megabytes * 1e6 * 0.05 / seconds)))
            nap(0.05)
        os.fsync(out.fileno())


@healthy()
def hour_wandering_straggler(r):
    """Every forty steps, a different rank is ten times slower."""
    trains(r, lambda step: nap(2) if step // 40 % jobs.WORLD == r else None)


@healthy()
def hour_random_straggler(r):
    dice = random.Random(r)
    trains(r, lambda step: nap(dice.expovariate(1) / 2))


@healthy()
def hour_checkpoint_on_rank_0(r):
    """The checkpoint takes longer each time, up to 20 s."""
    def saves(step):
        if step % 100 == 50:
            writes(10, min(20, 4 + step / 50)) if r == 0 else None
            dist.barrier()
    trains(r, saves)


@healthy()
def hour_sharded_checkpoint(r):
    def saves(step):
        if step % 100 == 99:
            writes(5, 1 + 3 * r)
            dist.barrier()
    trains(r, saves)


@healthy()
def hour_validation_on_rank_0(r):
    model = jobs.net()

    def validates(step):
        end = time.monotonic() + (8 if step % 300 == 50 and r == 0 else 0)
        total = 0.0
        while time.monotonic() < end:
            outputs = model(torch.rand(64, 32))
            total += outputs.sum().item()
        if step % 300 == 50:
            dist.barrier()
    trains(r, validates)


@healthy()
def hour_uneven_validation(r):
    """Each rank has its own part of the data, and some ranks have more of it."""
    model = jobs.net()

    def validates(step):
        if step % 100 == 99:
            for _ in range(20 * (r + 1)):
                model(torch.rand(64, 32))
                nap(0.05)
            dist.all_reduce(T(2))
    trains(r, validates)


@healthy()
def hour_first_step_compiles(r):
    """The compiler is another process, and changed shapes need it again."""
    def compiles(step):
        if step % 500 == 3 and r % 2 == 0:
            work = "import time\nend = time.process_time() + %d\nwhile time.process_time() < end: sum(range(1000))"
            subprocess.run([sys.executable, "-c", work % (6 if step < 10 else 2)], check=True)
    trains(r, compiles)


class Slow(torch.utils.data.Dataset):
    """A file comes late now and then."""
    def __len__(self):
        return 100

    def __getitem__(self, index):
        time.sleep(2.5 if index == 60 else 0.02)
        return torch.ones(4)


@healthy()
def hour_loader_pauses(r):
    """Workers read ahead, and each epoch starts them again."""
    while True:
        data = torch.utils.data.DataLoader(Slow(), batch_size=2, num_workers=1 if r == 1 else 0)
        for batch in data:
            dist.all_reduce(batch)
        dist.barrier()


@healthy()
def hour_begins_again(r):
    """The groups are destroyed and created again."""
    number = 0
    while True:
        for _ in range(100):
            nap(0.2)
            dist.all_reduce(T(100))
        dist.destroy_process_group()
        number += 1
        os.environ["MASTER_PORT"] = str(int(PORT) + 100 + number % 50)
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=1800))


@healthy()
def hour_pipeline(r):
    while True:
        for _ in range(3):
            if r > 0:
                dist.recv(T(4), r - 1)
            nap(0.1)
            if r < jobs.WORLD - 1:
                dist.send(T(4), r + 1)
        dist.all_reduce(T(8))


@healthy()
def hour_halves(r):
    """Two groups run at different speeds, and meet."""
    half = [dist.new_group([0, 1]), dist.new_group([2, 3])][r // 2]
    step = 0
    while True:
        step += 1
        nap(0.1 if r < 2 else 0.2)
        dist.all_reduce(T(16), group=half)
        if step % 10 == 0:
            dist.all_reduce(T(8))


@healthy()
def hour_works_at_once(r):
    """Handles are waited for much later, or not at all."""
    pending = []
    step = 0
    while True:
        step += 1
        pending.append(dist.all_reduce(T(3000), async_op=True))
        nap(0.1)
        if len(pending) > 20:
            (pending.pop(0) if step % 7 else pending.pop(0).wait())


@case("stuck_host", [1], ABSENT)
def recovers(r):
    for i in range(20):
        nap()
        if r == 1 and i == 9:
            nap(14)
        dist.all_reduce(T())


def main(r):
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: no rank outlives the one that started it
    os.environ.update(MASTER_PORT=PORT, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE=str(jobs.WORLD))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if CASE == "never_initializes" and r == 1:
        jobs.stall()
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=1800))
    try:
        jobs.CASES[CASE](r)
    except SystemExit as ended:
        os._exit(ended.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # as at the end of a script, which a forked child never reaches
        sys.stderr.flush()
        os._exit(1)
    jobs.stall()


if __name__ == "__main__" and CASE == "--truth":
    print(json.dumps(jobs.TRUTH))
elif __name__ == "__main__" and "TORCHELASTIC_RUN_ID" in os.environ:
    main(int(os.environ["RANK"]))
elif __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    here = os.environ.get("RANKS", "0,1,2,3").split(",")  # the ranks of this node
    ranks = [fork.Process(target=main, args=(int(r),)) for r in here]
    for rank in ranks:
        rank.start()
    while True:  # as in torchrun: a failed rank ends the others
        time.sleep(0.1)
        codes = [rank.exitcode for rank in ranks]
        if any(codes):
            time.sleep(0.5)
            for rank in ranks:
                rank.kill()
            sys.exit(1)
