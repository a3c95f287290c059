"""The stores that a script creates for itself. Their keys are part of the job's store. A client of the real TCPStore waits
in C++, for a server or for a key, and the simulator could not know that it waits for another rank.
"""

import datetime
import os
import sys

import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from .store import STORE_ERROR, LonelyStore, SimulatedStore, kind_of_store

_SERVER_TIMEOUT = datetime.timedelta(seconds=300)  # of TCPStore, if the script names none


def install(rank):
    for name, store in (("TCPStore", _tcp_store(rank)), ("FileStore", _file_store(rank))):
        for module in (dist, c10d, sys.modules["torch.distributed.rendezvous"]):  # dist.rendezvous is its function
            if hasattr(module, name):
                setattr(module, name, store)


def _part_of_the_jobs_store(rank, real):
    class Part(kind_of_store(rank)):
        def __new__(cls, *positional, **named):
            """In a process that the rank has forked, creates a real one."""
            return real(*positional, **named) if rank.is_forked else super().__new__(cls)

    return Part


def _tcp_store(rank):
    class TCPStore(_part_of_the_jobs_store(rank, dist.TCPStore)):
        def __init__(self, host_name, port, world_size=None, is_master=False, timeout=_SERVER_TIMEOUT,
                     wait_for_workers=True, multi_tenant=False, master_listen_fd=None, use_libuv=True):
            port = port or kind_of_store(rank)(rank, "ports of TCPStore/").add("chosen", 1) + 49_151
            super().__init__(rank, f"TCPStore on port {port}/")
            self.host, self.port, self.libuvBackend = host_name, port, use_libuv
            self.begins_with(timeout)
            size = world_size if wait_for_workers and world_size is not None and world_size > 0 else 0
            if isinstance(self, LonelyStore):
                self.add("init/", size)  # as if all had come
                return
            meeting = _Meeting(rank, self)
            is_jobs = str(port) == os.environ.get("MASTER_PORT")  # where the job's own store listens
            if is_master and not is_jobs:
                meeting.open(multi_tenant)
            elif not is_jobs:
                meeting.connect()
            if size > 0:
                meeting.wait_for_workers(size, is_master)

    return TCPStore


def _file_store(rank):
    class FileStore(_part_of_the_jobs_store(rank, dist.FileStore)):
        def __init__(self, file_name, world_size=-1):
            super().__init__(rank, f"FileStore in {file_name}/")
            self.path = file_name

    return FileStore


class _Meeting:
    """Where the server of a TCPStore and its workers wait for each other. (torch/csrc/distributed/c10d/TCPStore.cpp)"""

    def __init__(self, rank, store):
        self._store = store
        self._told = SimulatedStore(rank, f"TCPStore on port {store.port}: ")
        self._told.begins_with(store.timeout)

    def open(self, shares):
        """As the server, begins to listen. Only servers that share the port may do so twice."""
        if self._told.add("server", 1) > 1 and not shares:
            raise getattr(dist, "DistNetworkError", RuntimeError)(
                "The server socket has failed to listen on any local network address. port: "
                f"{self._store.port}, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use")

    def connect(self):
        limit = round(self._store.timeout.total_seconds() * 1000)
        self._told.wait_for("server", getattr(dist, "DistNetworkError", TimeoutError)(
            f"The client socket has timed out after {limit}ms while trying to connect to ({self._store.host}, "
            f"{self._store.port})."))

    def wait_for_workers(self, size, is_server):
        """Counts the worker; as the server, waits until all have come, or in torch 1.x until the time is over. The
        server is one of them."""
        come = self._store.add("init/", 1)
        if come == size:
            self._told.set(f"{size} workers", b"")
        if not is_server:
            return
        limit = round(self._store.timeout.total_seconds()) + 1
        late = STORE_ERROR(f"Timed out after {limit} seconds waiting for clients. {come}/{size} clients joined.")
        try:
            self._told.wait_for(f"{size} workers", late)
        except RuntimeError as error:
            if error is not late or STORE_ERROR is not RuntimeError:
                raise
