#!/usr/bin/env python3
"""Runs random PyTorch programs as real processes and on simulated ranks, and compares what every rank did.

    tests/differential/compare.py ROLLCALL FIRST COUNT [--python PYTHON] [--keep FOLDER] [--jobs N] [--warm]
                                  [--backend nccl] [--seconds N]

For each rank, it compares how the rank ended (finished, left, raised which exception, or never), at which statement,
and every value bit by bit. A correct program must be ok. If a mistake makes Gloo do something undefined, it is enough
that rollcall reports the mistake; if the order of messages is open, it is enough that both hang. `run` must report
the same on the recording as `record` did, or `record` must say that the recording is not what the script did. With
`--backend nccl`, the ranks share this machine's GPUs: each pretends to be a host of its own. The exit code is 1 if a
program differs, which is then minimized and kept in FOLDER, and 77 if there is no torch.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import draw

REAL_TIMEOUTS = 5, 30, 240  # seconds, for Gloo's calls; on a busy machine a rank can be late, so a difference must persist
LOST = re.compile("timed out|timeout|connection|enforce|socket|closed|read error|write error|failed to recv|"
                  "failed to pass monitoredBarrier|received errors while waiting", re.I)
MINIMIZED = 3  # programs; the others are kept unchanged


class Ranks(dict):
    """rank -> its lines"""

    @classmethod
    def of(cls, text, world):
        ranks = cls({rank: [] for rank in range(world)})
        for line in text.splitlines():
            match = re.match(r"(?:\[rank \d+\] )?@(\d+) (.*)", line)
            if match and int(match[1]) in ranks:
                ranks[int(match[1])].append(match[2])
        return ranks

    def end(self, rank):
        """("finished", ...), ("exit", ...), ("raised TYPE", ...) or ("stuck", ...), and the statement before it"""
        lines = self[rank]
        done = next((line.split()[0] for line in reversed(lines) if not line.startswith("end ")), "none")
        last = lines[-1] if lines and lines[-1].startswith("end ") else "end stuck"
        words = last.split(" ", 2)
        if words[1] == "raised":
            if LOST.search(words[2]):
                return "stuck", done
            return "raised " + words[2].split(":")[0], done
        return words[1], done

    def values(self, rank):
        return [line for line in self[rank] if not line.startswith("end ")]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_real(file, world, options, timeout):
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE=str(world),
                       DIFFERENTIAL_TIMEOUT=str(timeout), DIFFERENTIAL_LINGER="1", USE_LIBUV="0",
                       OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", NCCL_NET="Socket", NCCL_SOCKET_IFNAME="lo",
                       TORCH_NCCL_ASYNC_ERROR_HANDLING="0", TORCH_NCCL_ENABLE_MONITORING="0")
    outputs = [tempfile.TemporaryFile("w+") for _ in range(world)]
    ranks = [subprocess.Popen([options.python, file], stdin=subprocess.PIPE, stdout=outputs[rank],
                              stderr=subprocess.DEVNULL, env=dict(environment, RANK=str(rank), LOCAL_RANK=str(rank),
                                                                  NCCL_HOSTID=f"host{rank}"))
             for rank in range(world)]

    def said():
        text = ""
        for output in outputs:
            output.seek(0)
            text += output.read()
        return text

    # Calls on NCCL have no timeout of their own here: the ranks that wait are silent.
    quiet = 2 * timeout if options.backend == "nccl" else 0
    until = time.monotonic() + 30 + 2 * timeout  # includes imports
    before = ""
    while time.monotonic() < until:
        now = said()
        if quiet and now != before:
            before, until = now, time.monotonic() + quiet
        ended = len(re.findall(r"^@\d+ end ", now, re.M))
        if ended + sum(rank.poll() is not None for rank in ranks) >= world:
            break
        time.sleep(0.1)
    for rank in ranks:
        rank.kill()
        rank.wait()
        rank.stdin.close()
    return Ranks.of(said(), world)


def run_simulated(file, world, rollcall, python):
    """Returns what the ranks did, the verdict, and whether another order of messages could end in another way."""
    report, scenario = file + ".report.json", file + ".scenario.json"
    asked = subprocess.run([rollcall, "record", "-n", str(world), "--simulate", "--python", python,
                            "--report", f"json={report}", "-o", scenario, file],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    if asked.returncode not in (0, 1):
        return Ranks.of("", world), f"exit {asked.returncode}: {asked.stderr[-300:]}", False
    said = json.loads(pathlib.Path(report).read_text())
    verdict = said["verdict"]
    if os.path.exists(scenario) and "scenario does not do what the script did" not in asked.stderr:
        again = subprocess.run([rollcall, "run", "--format", "json", scenario], capture_output=True, text=True)
        if json.loads(again.stdout)["verdict"] != verdict:
            found = f"exit: record says {verdict}, and run {json.loads(again.stdout)['verdict']}"
            return Ranks.of("", world), found, False
    return Ranks.of(asked.stdout + asked.stderr, world), verdict, not said["exhaustive"]


def can_fail(file, rollcall):
    """True if `explore` finds an order of the recorded program's messages in which it fails."""
    found = subprocess.run([rollcall, "explore", "--format", "json", file + ".scenario.json"],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    return found.returncode == 1 and json.loads(found.stdout)["verdict"] == "race"


def difference(world, statements, is_right, options):
    """Returns None if both agree, otherwise a short description of the difference."""
    with tempfile.TemporaryDirectory(prefix="differential.") as folder:
        file = os.path.join(folder, "program.py")
        pathlib.Path(file).write_text(draw.script(statements, options.backend))
        simulated, verdict, leaves_open = run_simulated(file, world, options.rollcall, options.python)
        if verdict.startswith("exit"):
            return verdict
        if is_right and verdict != "ok" and options.backend == "gloo":  # a ring of isend hangs on NCCL
            return f"the program is right, and the verdict {verdict}"
        if not is_right and verdict == "mismatch":
            return None
        for timeout in REAL_TIMEOUTS:
            real = run_real(file, world, options, timeout)
            found = difference_of_ranks(world, simulated, verdict, real, options.backend)
            if not found:
                return None
            real_hangs = any(real.end(rank)[0] == "stuck" for rank in range(world))
            if leaves_open and real_hangs and (verdict == "deadlock" or can_fail(file, options.rollcall)):
                return None  # which message a receive from anyone takes is a race
    return found


def difference_of_ranks(world, simulated, verdict, real, backend):
    # If a rank is missing, NCCL also keeps those back that it has not connected with the others before.
    both_hang = all(any(ranks.end(rank)[0] == "stuck" for rank in range(world)) for ranks in (simulated, real))
    for rank in range(world):
        if backend == "nccl" and both_hang and "stuck" in (real.end(rank)[0], simulated.end(rank)[0]):
            continue
        if real.end(rank) != simulated.end(rank):
            return (f"rank {rank}: real {' after '.join(real.end(rank))}, simulated "
                    f"{' after '.join(simulated.end(rank))} ({verdict})")
    if verdict == "ok":
        for rank in range(world):
            for ours, theirs in zip(simulated.values(rank), real.values(rank)):
                if ours != theirs:
                    return f"rank {rank}: real {theirs[:200]}, simulated {ours[:200]}"
    return None


def minimized(world, statements, is_right, options):
    """Returns the fewest statements that still differ."""
    at = 0
    while at < len(statements):
        fewer = statements[:at] + statements[at + 1:]
        if difference(world, fewer, is_right, options):
            statements = fewer
        else:
            at += 1
    return statements


def torch_of(python):
    """Returns torch's version; empty if that Python has no torch."""
    if not python:
        return ""
    asked = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else ""


@contextlib.contextmanager
def warm(python):
    """A Python that takes a fraction of the time: processes are forked from one that has imported torch."""
    here = pathlib.Path(__file__).absolute().parent
    with tempfile.TemporaryDirectory(prefix="differential.") as folder:
        path = os.path.join(folder, "warm")
        server = subprocess.Popen([python, here / "warm_server.py", path], stdin=subprocess.DEVNULL)
        try:
            while not os.path.exists(path):
                if server.poll() is not None:
                    sys.exit(f"{python}: warm_server.py ended with {server.returncode}")
                time.sleep(0.1)
            os.environ["WARM_PYTHON"] = path
            yield str(here / "warm_python")
        finally:
            server.kill()
            server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rollcall", type=os.path.abspath)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--python", help="by default the first that has torch")
    parser.add_argument("--keep", default="differences")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--backend", default="gloo", choices=("gloo", "nccl"))
    parser.add_argument("--warm", action="store_true", help="import torch once for all programs: for nights")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no program after this time")
    options = parser.parse_args()
    pythons = [options.python] if options.python else [shutil.which("python3"), "/usr/bin/python3"]
    options.python, torch = next(((python, version) for python in pythons if (version := torch_of(python))), ("", ""))
    if not torch:
        print(f"skipped: no torch in {', '.join(map(str, pythons))}")
        return 77

    with warm(options.python) if options.warm else contextlib.nullcontext(options.python) as options.python:
        return compare(options, torch)


def compare(options, torch):
    until = time.monotonic() + options.seconds

    def judge(seed):
        if time.monotonic() > until:
            return None
        world, statements, mistake = draw.draw(seed, options.backend)
        return seed, mistake, difference(world, statements, mistake is None, options)

    counts = collections.Counter()
    different = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        seeds = range(options.first, options.first + options.count)
        for seed, mistake, found in filter(None, pool.map(judge, seeds)):
            counts[mistake or "right", "differs" if found else "agrees"] += 1
            if found:
                different.append(seed)
                print(f"seed {seed} ({mistake or 'right'}): {found}", flush=True)
    for count, seed in enumerate(different):
        world, statements, mistake = draw.draw(seed, options.backend)
        if count < MINIMIZED:
            statements = minimized(world, statements, mistake is None, options)
        keep = pathlib.Path(options.keep)
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{seed}.py").write_text(f"# {world} ranks, torch {torch}\n" + draw.script(statements, options.backend))
        print(f"seed {seed}: {keep / f'{seed}.py'}")
    begun = sum(counts.values())
    print(f"\ntorch {torch}, {options.backend}, {begun} of seeds {options.first} to {options.first + options.count - 1}")
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:14} {counts[kind, 'agrees']:5} agree {counts[kind, 'differs']:5} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
