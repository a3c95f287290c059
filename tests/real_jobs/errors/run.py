"""Runs train.py with each mistake on three real ranks on Gloo, and keeps what they print: run.py FOLDER [MISTAKE...]

One folder per mistake: rank_0.log, rank_1.log, rank_2.log.
"""

import os
import pathlib
import socket
import subprocess
import sys
import time

MISTAKES = ["worker_killed", "worker_bus_error", "worker_exits", "worker_raises", "leaves_out", "uses_twice", "memory",
            "many_files", "full_disk", "raises_from"]
SECONDS = 40


def run(folder, mistake):
    folder.mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = dict(os.environ, WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1",
                  GLOO_SOCKET_IFNAME="lo", USE_LIBUV="0")  # Debian builds torch without libuv
    script = pathlib.Path(__file__).with_name("train.py")
    ranks = []
    for rank in range(3):
        with open(folder / f"rank_{rank}.log", "w") as log:
            ranks.append(subprocess.Popen([sys.executable, script, mistake], stdout=log, stderr=subprocess.STDOUT,
                                          env=dict(common, RANK=str(rank), LOCAL_RANK=str(rank))))
    end = time.monotonic() + SECONDS
    for rank in ranks:
        try:
            rank.wait(max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            rank.kill()
    print(mistake, flush=True)


if __name__ == "__main__":
    for each in sys.argv[2:] or MISTAKES:
        run(pathlib.Path(sys.argv[1]) / each, each)
