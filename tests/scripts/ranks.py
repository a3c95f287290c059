#!/usr/bin/env python3
"""Starts a script on N ranks, as torchrun does: ranks.py N SCRIPT ARGUMENTS..."""

import importlib.util
import os
import socket
import subprocess
import sys

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
size = sys.argv[1]
python = sys.executable if importlib.util.find_spec("torch") else "/usr/bin/python3"
common = dict(os.environ, WORLD_SIZE=size, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1",
              GLOO_SOCKET_IFNAME="lo", USE_LIBUV="0")  # Debian builds torch without libuv
ranks = [subprocess.Popen([python, *sys.argv[2:]], env=dict(common, RANK=str(rank), LOCAL_RANK=str(rank)))
         for rank in range(int(size))]
sys.exit(max(rank.wait() != 0 for rank in ranks))
