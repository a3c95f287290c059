"""Runs train.py with each mistake on three real ranks on Gloo, and keeps what they print: run.py FOLDER [MISTAKE...]

One folder per mistake: rank_0.log, rank_1.log, rank_2.log.
"""

import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).absolute().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parents[1] / "scripts"))
import ranks as starter

MISTAKES = ["worker_killed", "worker_bus_error", "worker_exits", "worker_raises", "leaves_out", "uses_twice", "memory",
            "many_files", "full_disk", "raises_from", "has_a_layer_more", "freezes_a_layer"]
SECONDS = 40


def run(folder, mistake):
    folder.mkdir(parents=True)
    ranks = starter.start(3, [sys.executable, HERE / "train.py", mistake],
                          lambda rank: open(folder / f"rank_{rank}.log", "w"))
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
