#!/usr/bin/env python3
"""Measures what watching costs a step of 100 collectives: ranks on Gloo, with and without it in turn.

    python3 overhead.py ROLLCALL [--turns 15] [--steps 200] [--ranks 2] [--compute 1]

Each turn is a separate job: "jobs" compares watched jobs with unwatched ones. In a watched job, torch's own methods are
restored for every other step: "steps" compares adjacent steps, which other work on the machine disturbs less. A rank
computes for about 10 us times --compute before each collective. With one rank, Gloo's own part is a few microseconds,
so the cost of watching is seen best.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

COLLECTIVES = 100


def memory_of_own():
    """Returns the megabytes that no other process shares, and those of the ring."""
    fields = dict(line.split()[:2] for line in open("/proc/self/smaps_rollup").readlines()[1:])
    return (int(fields["Private_Clean:"]) + int(fields["Private_Dirty:"]) + int(fields["Shared_Dirty:"])) / 1024


def rank_main(rank, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=options.rank, GLOO_SOCKET_IFNAME="lo", RANK=str(rank),
                      WORLD_SIZE=str(options.ranks))
    dist.init_process_group("gloo")
    tensor, weights = torch.ones(250), torch.ones(64, 64)
    kinds = [(kind, "allreduce") for kind in type(dist.group.WORLD).__mro__ if "allreduce" in kind.__dict__]
    kinds.append((dist.Work, "wait"))
    ours = [kind.__dict__[name] for kind, name in kinds]
    torchs = [getattr(method, "__wrapped__", method) for method in ours]
    times = {True: [], False: []}
    used = {True: [], False: []}
    for step in range(2 * options.steps + 20):
        observed = step % 2 == 0
        for (kind, name), method in zip(kinds, ours if observed else torchs):
            setattr(kind, name, method)
        begin, use = time.perf_counter(), time.process_time()
        for _ in range(COLLECTIVES):
            for _ in range(options.compute):
                torch.mm(weights, weights)
            dist.all_reduce(tensor)
        times[observed].append(time.perf_counter() - begin)
        used[observed].append(time.process_time() - use)
    times, used = ({kind: values[10:] for kind, values in each.items()} for each in (times, used))
    if rank == 0:
        print(json.dumps({"torch": torch.__version__, "times": times[True], "times_off": times[False],
                          "cpu": used[True], "cpu_off": used[False], "memory": memory_of_own()}))
    dist.barrier()


def turn(options, is_watched, port):
    command = [options.python, os.path.abspath(__file__), "--rank", str(port)]
    command += [f"--{name}={getattr(options, name)}" for name in ("steps", "ranks", "compute")]
    with tempfile.TemporaryDirectory() as rings:
        watch = [options.rollcall, "watch", "--records", rings, "--"] if is_watched else []
        out = subprocess.run([*watch, *command], stdout=subprocess.PIPE, text=True, check=True)
        assert len(glob.glob(rings + "/*.ring")) == (options.ranks if is_watched else 0)
    return json.loads(out.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rollcall", nargs="?")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--compute", type=int, default=1)
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        rank = next((rank for rank in range(1, options.ranks) if os.fork() == 0), 0)
        rank_main(rank, options)
        return
    turns = {True: [], False: []}
    for number in range(options.turns):
        for is_watched in (number % 2 == 0, number % 2 == 1):
            turns[is_watched].append(turn(options, is_watched, 27000 + 2 * number + is_watched))
    watched, alone = turns[True], turns[False]
    print(f"torch {watched[0]['torch']}, {len(watched)} turns of {options.steps} steps, ranks: {options.ranks}")

    def says(what, with_it, without, unit="ms", scale=1000):
        pairs = [100 * (a / b - 1) for a, b in zip(with_it, without)]
        with_it, without = statistics.median(with_it) * scale, statistics.median(without) * scale
        print(f"{what:14} {with_it:8.3f} {unit} with, {without:8.3f} {unit} without: "
              f"{statistics.median(pairs):+.2f} % (median of {len(pairs)} pairs)", flush=True)

    for what, key in (("a step", "times"), ("CPU", "cpu")):
        says("jobs: " + what, [statistics.median(each[key]) for each in watched],
             [statistics.median(each[key]) for each in alone])
        says("steps: " + what, [time for each in watched for time in each[key]],
             [time for each in watched for time in each[key + "_off"]])
    says("jobs: memory", [each["memory"] for each in watched], [each["memory"] for each in alone], "MB", 1)


if __name__ == "__main__":
    if "--rank" in sys.argv:
        os.environ.setdefault("USE_LIBUV", "0")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        import torch
        import torch.distributed as dist
        torch.set_num_threads(1)
    main()
