#!/usr/bin/env python3
"""Runs random PyTorch programs that hang as real processes on Gloo, and diagnoses their Flight Recorder dumps.

    tests/differential/diagnose.py ROLLCALL FIRST COUNT --python PYTHON [--keep FOLDER] [--jobs N] [--warm]

Each program has a mistake on one rank, which is the truth. Only programs that hang count: all their ranks are dumped
while they hang. A rank that has exited or raised leaves no dump. Programs without a mistake are dumped at their end,
and must not be blamed. Prints a line per wrong diagnosis, and a table. The exit code is 1 if a diagnosis is wrong at
high confidence, or if a program without a mistake is blamed; 77 if that torch has no Flight Recorder for Gloo.
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
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import compare
import draw

QUIET_S = 2.5  # a job in which no rank has said anything for so long hangs
LONGEST_S = 60


def run_and_dump(file, world, python, folder):
    """Returns what the ranks did until they hung or ended. Their dumps are in `folder`."""
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(compare.free_port()), WORLD_SIZE=str(world),
                       DIFFERENTIAL_TIMEOUT="600", DIFFERENTIAL_LINGER="1", DIFFERENTIAL_DUMPS=folder, USE_LIBUV="0",
                       OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", TORCH_FR_BUFFER_SIZE="2000")
    outputs = [tempfile.TemporaryFile("w+") for _ in range(world)]
    ranks = [subprocess.Popen([python, file], stdin=subprocess.PIPE, stdout=outputs[rank], stderr=subprocess.DEVNULL,
                              env=dict(environment, RANK=str(rank), LOCAL_RANK=str(rank)))
             for rank in range(world)]

    def said():
        text = ""
        for output in outputs:
            output.seek(0)
            text += output.read()
        return text

    def dumped():
        return [rank for rank in range(world) if os.path.exists(os.path.join(folder, f"nccl_trace_rank_{rank}"))]

    before, since, began = "", time.monotonic(), time.monotonic()
    while time.monotonic() - began < LONGEST_S:
        text = said()
        if text != before:
            before, since = text, time.monotonic()
        all_ended = len(re.findall(r"^@\d+ end ", text, re.M)) + sum(rank.poll() is not None for rank in ranks) >= world
        if all_ended or (text and time.monotonic() - since > QUIET_S):
            break
        time.sleep(0.05)
    open(os.path.join(folder, "now"), "w").close()
    until = time.monotonic() + 10
    while len(dumped()) < world and time.monotonic() < until:
        time.sleep(0.05)
    for rank in ranks:
        rank.kill()
        rank.wait()
        rank.stdin.close()
    os.remove(os.path.join(folder, "now"))
    return compare.Ranks.of(said(), world)


def judged(seed, options):
    """(mistake or "right", "ok", "right", "undecided", "low", "HIGH" or why it does not count, what was said)"""
    world, statements, mistake, culprit = draw.draw_with_culprit(seed)
    kind = mistake or "right"
    with tempfile.TemporaryDirectory(prefix="differential.") as folder:
        file = os.path.join(folder, "program.py")
        pathlib.Path(file).write_text(draw.script(statements))
        dumps = os.path.join(folder, "dumps")
        os.mkdir(dumps)
        ranks = run_and_dump(file, world, options.python, dumps)
        ends = [ranks.end(rank)[0] for rank in range(world)]
        hangs = "stuck" in ends
        if mistake is None and hangs:
            return kind, "late", ""
        if mistake is not None and not hangs:
            return kind, "does not hang", ""
        for rank, end in enumerate(ends):
            path = os.path.join(dumps, f"nccl_trace_rank_{rank}")
            if end == "exit" or end.startswith("raised"):
                pathlib.Path(path).unlink(missing_ok=True)
        if not os.listdir(dumps):
            return kind, "no dumps", ""
        asked = subprocess.run([options.rollcall, "diagnose", "--format", "json", *(["--hung"] if mistake else []), dumps],
                               capture_output=True, text=True, timeout=120)
        if asked.returncode not in (0, 1, 6):
            return kind, "HIGH", f"exit code {asked.returncode}: {asked.stderr[-200:]}"
        said = json.loads(asked.stdout)
        verdict = f"{said['kind']} {said['culprits']} ({said['confidence']}): {said['headline']}"
        is_wrong = bool(said["culprits"]) and asked.returncode == 1 if mistake is None else said["culprits"] != [culprit]
        if not is_wrong:
            found = "right"
        elif mistake is not None and not said["culprits"]:
            found = "nobody"
        else:
            found = {"high": "HIGH"}.get(said["confidence"], said["confidence"])
        if is_wrong:
            keep = pathlib.Path(options.keep) / f"{seed}"
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(dumps, keep / "dumps")
            shutil.copy(file, keep / "program.py")
            (keep / "truth").write_text(f"{mistake} on rank {culprit}; {ends}\n{verdict}\n")
        return kind, found, f"{mistake} on rank {culprit}, {ends}: {verdict}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rollcall", type=os.path.abspath)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--python", default="python3")
    parser.add_argument("--keep", default="misjudged")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--warm", action="store_true", help="import torch only once for all programs")
    options = parser.parse_args()
    has = "import torch; raise SystemExit(not hasattr(torch._C._distributed_c10d, '_dump_fr_trace'))"
    if subprocess.run([options.python, "-c", has], capture_output=True).returncode:
        print(f"skipped: {options.python} has no torch with a Flight Recorder for Gloo")
        return 77
    counts = collections.Counter()
    with compare.warm(options.python) if options.warm else contextlib.nullcontext(options.python) as options.python:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            seeds = range(options.first, options.first + options.count)
            for seed, (kind, found, said) in zip(seeds, pool.map(lambda seed: judged(seed, options), seeds)):
                counts[kind, found] += 1
                if said and found != "right":
                    print(f"seed {seed}: {found}: {said}", flush=True)
    columns = sorted({found for _, found in counts})
    print(f"\n{'':18}" + "".join(f"{column:>15}" for column in columns))
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:18}" + "".join(f"{counts[kind, column]:15}" for column in columns))
    is_blamed = any(counts["right", found] for found in ("HIGH", "medium", "low"))
    return int(is_blamed or any(found == "HIGH" for _, found in counts))


if __name__ == "__main__":
    sys.exit(main())
