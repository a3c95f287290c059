"""Jobs with stores of their own, which take no part in init_process_group or take its place. stores.py NAME

Each prints what the stores say, and real processes print the same: STORES_PORT=31000 ranks.py 3 stores.py NAME
"""

import datetime
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PORT = int(os.environ.get("STORES_PORT", "29511"))
LIMIT = datetime.timedelta(seconds=5)


def tcp(size=None, is_server=rank == 0, port=PORT, **named):
    if dist.TCPStore.__module__ == "torch._C._distributed_c10d" and hasattr(dist, "DistStoreError"):
        named["use_libuv"] = False  # Debian builds torch without it
    return dist.TCPStore("127.0.0.1", port, size, is_server, timeout=LIMIT, **named)  # MISTAKE connects


def finishes():
    dist.barrier()
    print("end")


def begins_with_its_own():
    store = tcp(world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    total = torch.ones(1) * rank
    dist.all_reduce(total)
    print(total.item(), store.host, store.port == PORT, isinstance(store, dist.TCPStore), isinstance(store, dist.Store))
    finishes()


def rendezvouses():
    """As frameworks do that create the store of init_process_group themselves."""
    store, own, size = next(dist.rendezvous("env://", rank, world))
    dist.init_process_group("gloo", store=dist.PrefixStore("job", store), rank=own, world_size=size)
    store.set(f"rank {rank}", "here")
    print(store.get(f"rank {(rank + 1) % world}"))
    finishes()


def keeps_them_apart():
    """The keys of two stores, and of the job, do not meet; a PrefixStore works on all of them."""
    first, second = tcp(world), tcp(world, port=PORT + 1)
    dist.init_process_group("gloo", store=dist.PrefixStore("job", first), rank=rank, world_size=world)
    if rank == 0:
        first.set("key", "first")
        dist.PrefixStore("inside", second).set("key", "second")
    print(first.get("key"), second.get("inside/key"), second.add("count", 0))
    dist.barrier()
    print(second.num_keys())  # init/, inside/key and count
    dist.barrier()
    if rank == 1:
        print(second.delete_key("inside/key"), second.compare_set("once", "", "mine"))
    finishes()


def asks_again_and_again():
    """Before the job begins, rank 0 looks whether the others have come."""
    store = tcp(wait_for_workers=False)
    if rank > 0:
        store.add("come", 1)
    while store.add("come", 0) < world - 1:
        time.sleep(0.01)
    print("all have come")
    dist.init_process_group("gloo", store=dist.PrefixStore("job", store), rank=rank, world_size=world)
    finishes()


def waits_for_no_worker():
    store = tcp(wait_for_workers=False)
    if rank == 0:
        store.set("settings", "lr=3")
    print(store.get("settings"))
    dist.init_process_group("gloo", store=dist.PrefixStore("job", store), rank=rank, world_size=world)
    finishes()


def chooses_a_port():
    dist.init_process_group("gloo", store=tcp(world), rank=rank, world_size=world)
    if rank == 0:
        served = tcp(port=0, is_server=True, wait_for_workers=False)
        told = [served.port]
    else:
        told = [None]
    dist.broadcast_object_list(told)
    store = tcp(port=told[0], is_server=False) if rank else served
    store.wait(["here"]) if rank else store.set("here", "1")
    print(told[0] > 1023)
    finishes()


def meets_in_a_file():
    store = dist.FileStore(os.path.join(tempfile.gettempdir(), f"stores.{PORT}"), world)
    dist.init_process_group("gloo", store=dist.PrefixStore("job", store), rank=rank, world_size=world)
    store.set(f"rank {rank}", "here")
    store.wait([f"rank {each}" for each in range(world)])
    finishes()


def one_is_not_ready():
    """Each rank sets a key of its own, except for rank 1; rank 0 waits for all of them."""
    dist.init_process_group("gloo", store=tcp(world), rank=rank, world_size=world)
    store = dist.PrefixStore("job", dist.distributed_c10d._get_default_store())
    if rank != 1:
        store.set(f"ready{rank}", "1")
    if rank == 0:
        store.wait([f"ready{each}" for each in range(world)], datetime.timedelta(seconds=2))  # MISTAKE not_ready
    finishes()


def has_no_server():
    try:
        tcp(is_server=False)
    except (RuntimeError, TimeoutError) as error:
        print(type(error).__name__)


def lacks_a_worker():
    try:
        if rank == 0:
            tcp(world)
    except RuntimeError as error:
        print(type(error).__name__, error)


def waits_before_the_job():
    """Rank 0 sets the key after init_process_group, which waits for rank 1."""
    store = tcp(wait_for_workers=False)
    if rank == 1:
        store.get("settings")  # MISTAKE settings
    dist.init_process_group("gloo", store=dist.PrefixStore("job", store), rank=rank, world_size=world)
    if rank == 0:
        store.set("settings", "lr=3")
    finishes()


def never_begins():
    tcp(world + 1)
    dist.init_process_group("gloo")


def serves_nobody():
    tcp(is_server=False)
    dist.init_process_group("gloo")


def serves_twice():
    dist.init_process_group("gloo", store=tcp(world), rank=rank, world_size=world)
    try:
        if rank == 1:
            tcp(is_server=True)
    except RuntimeError as error:
        print(type(error).__name__, "EADDRINUSE" in str(error) or "already in use" in str(error))
    finishes()


globals()[sys.argv[1]]()
