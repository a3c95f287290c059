"""Runs a script as one rank, and writes its Flight Recorder dump and its stack when they are asked for, whatever the
main thread waits for: start.py SCRIPT. `run.py` beside this file starts it."""

import atexit
import faulthandler
import functools
import os
import pathlib
import runpy
import signal
import sys
import threading
import time

KEEP, RANK = pathlib.Path(os.environ["KEEP"]), os.environ["RANK"]

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d


def write_dump(folder):
    path = KEEP / folder / f"nccl_trace_rank_{RANK}"
    path.write_bytes(c10d._dump_nccl_trace(True, True, False))


def write_when_asked():
    for moment in ("", "_later"):
        while not (KEEP / f"asked{moment}").exists():
            time.sleep(0.05)
        write_stacks_to(f"stack{moment}")
        write_dump(f"pickle{moment}")


def write_stacks_to(folder):
    """Whenever the signal comes. It would end a rank that has not said so."""
    faulthandler.register(signal.SIGUSR1, file=open(KEEP / folder / f"rank_{RANK}.txt", "w"))


@functools.cache  # only before the groups are destroyed, which ends the recording
def dump_at_end():
    write_dump("pickle")


if os.environ.get("DUMP_AT_END"):
    destroy = dist.destroy_process_group

    def destroy_process_group(*arguments, **named):
        dump_at_end()
        return destroy(*arguments, **named)

    dist.destroy_process_group = dist.distributed_c10d.destroy_process_group = destroy_process_group
    atexit.register(dump_at_end)

write_stacks_to("stack")
threading.Thread(target=write_when_asked, daemon=True).start()
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
