#!/usr/bin/python3
"""Starts a script on N ranks, as torchrun does: ranks.py N SCRIPT ARGUMENTS..."""

import os
import socket
import subprocess
import sys

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
size = sys.argv[1]
common = dict(os.environ, WORLD_SIZE=size, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1",
              GLOO_SOCKET_IFNAME="lo")
ranks = [subprocess.Popen([sys.executable, *sys.argv[2:]], env=dict(common, RANK=str(rank), LOCAL_RANK=str(rank)))
         for rank in range(int(size))]
sys.exit(max(rank.wait() != 0 for rank in ranks))
