#!/usr/bin/env python3
"""Starts a script on N ranks, as torchrun does: ranks.py N SCRIPT ARGUMENTS..."""

import importlib.util
import os
import socket
import subprocess
import sys


def start(size, command, output=lambda rank: None):
    """Starts the command as each rank, and returns the processes. `output`: the file that a rank prints to, or None."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = dict(os.environ, WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1",
                  GLOO_SOCKET_IFNAME="lo", USE_LIBUV="0")  # Debian builds torch without libuv
    outputs = [output(rank) for rank in range(size)]
    return [subprocess.Popen(command, stdout=outputs[rank], stderr=outputs[rank],
                             env=dict(common, RANK=str(rank), LOCAL_RANK=str(rank))) for rank in range(size)]


if __name__ == "__main__":
    python = sys.executable if importlib.util.find_spec("torch") else "/usr/bin/python3"
    sys.exit(max(rank.wait() != 0 for rank in start(int(sys.argv[1]), [python, *sys.argv[2:]])))
