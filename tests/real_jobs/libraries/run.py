#!/usr/bin/env python3
"""Runs scripts on training libraries as real ranks on NCCL that share a GPU, and keeps what they leave.

    tests/real_jobs/libraries/run.py FOLDER [--together N]

The scripts beside this file run on three ranks, with a mistake on one of them: two Flight Recorder dumps and two stacks
of each rank, five seconds apart, and the logs. Those in healthy/ run on two ranks, and leave a dump when they end. Each
rank pretends to be a host of its own, because NCCL refuses a GPU that ranks of one host share. The jobs in
tests/data/nccl_libraries and tests/data/recorded_as_on_nccl were run like this, from the shell.
"""

import argparse
import concurrent.futures
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).absolute().parent
HANGS = {
    "lightning": ("short", "log", "raises", "saves"), "lightning_fsdp": ("saves",), "trainer": ("short", "evaluates"),
    "accelerate_loop": ("gathers", "breaks", "saves"), "fsdp2": ("clips", "evaluates", "saves"),
    "ddp": ("eval", "unused", "nan", "stops"),
}
HEALTHY = ("accelerate_loop", "amp_ddp", "compiled", "fsdp2", "lightning_ddp", "lightning_fsdp", "tp_dp", "trainer")
SCRIPTS = {"lightning_fsdp": ("lightning.py", "lightning_ddp.py")}  # with a mistake, and without
HANGS_AFTER = 42  # seconds, with imports


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(script, ranks, folder, **more):
    environment = dict(os.environ, WORLD_SIZE=str(ranks), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", MASTER_ADDR="127.0.0.1",
                       MASTER_PORT=str(free_port()), GROUP_WORLD_SIZE=str(ranks), ROLE_WORLD_SIZE=str(ranks),
                       TORCHELASTIC_RUN_ID="libraries", NCCL_NET="Socket", NCCL_SOCKET_IFNAME="lo",
                       TORCH_FR_BUFFER_SIZE="4000", KEEP=str(folder), **more)
    for name in ("log", "pickle", "pickle_later", "stack", "stack_later"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return [subprocess.Popen([sys.executable, HERE / "start.py", script],
                             stdout=open(folder / f"log/rank_{rank}.log", "w"), stderr=subprocess.STDOUT,
                             env=dict(environment, RANK=str(rank), GROUP_RANK=str(rank), ROLE_RANK=str(rank),
                                      NODE_RANK=str(rank), NCCL_HOSTID=f"host{rank}"))
            for rank in range(ranks)]


def hang(folder, name, mistake):
    script = HERE / SCRIPTS.get(name, (name + ".py",))[0]
    strategy = {"STRATEGY": "fsdp"} if name == "lightning_fsdp" else {}
    ranks = start(script, 3, folder, MISTAKE=mistake, **strategy)
    time.sleep(HANGS_AFTER)
    for moment in ("", "_later"):
        (folder / f"asked{moment}").touch()
        time.sleep(1)  # until the ranks have seen it, and know where their next stack goes
        for rank in ranks:
            if rank.poll() is None:
                rank.send_signal(signal.SIGUSR1)
        time.sleep(5)
    for rank in ranks:
        rank.kill()
        rank.wait()


def succeed(folder, name):
    script = HERE / "healthy" / SCRIPTS.get(name, ("", name + ".py"))[1]
    script = HERE.parent.parent / "scripts/public/trainer.py" if name == "trainer" else script
    strategy = {"STRATEGY": "fsdp"} if name == "lightning_fsdp" else {}
    for rank in start(script, 2, folder, DUMP_AT_END="1", **strategy):
        rank.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--together", type=int, default=4, help="jobs at a time")
    options = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(options.together) as pool:
        jobs = [pool.submit(succeed, options.folder / "healthy" / name, name) for name in HEALTHY]
        jobs += [pool.submit(hang, options.folder / f"{name}.{mistake}", name, mistake)
                 for name, mistakes in HANGS.items() for mistake in mistakes]
        for job in jobs:
            job.result()


if __name__ == "__main__":
    main()
