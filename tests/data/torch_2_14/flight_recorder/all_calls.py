"""Makes every call that Gloo takes, once or twice, and dumps what torch's Flight Recorder has of it.

    python3 all_calls.py FOLDER                      # nccl_trace_rank_0 to 3, on real processes
    rollcall record -n 4 -o all_calls.json all_calls.py
"""
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def program(r, w):
    f = torch.float64
    t = torch.ones(3, dtype=f)
    m = torch.ones(2, 3)
    dist.all_reduce(t)
    dist.all_reduce(m)
    dist.all_reduce(torch.tensor(1.0))
    dist.broadcast(m, src=1)
    dist.reduce(t, dst=2)
    dist.scatter(t, [t + i for i in range(w)] if r == 0 else None, src=0)
    dist.scatter(m, [m + i for i in range(w)] if r == 3 else None, src=3)
    dist.gather(t, [torch.zeros_like(t) for _ in range(w)] if r == 1 else None, dst=1)
    dist.gather(m, [torch.zeros_like(m) for _ in range(w)] if r == 1 else None, dst=1)
    dist.all_gather([torch.zeros_like(t) for _ in range(w)], t)
    dist.all_gather([torch.zeros_like(m) for _ in range(w)], m)
    dist.all_gather_into_tensor(torch.zeros(12, dtype=f), t)
    dist.all_gather_into_tensor(torch.zeros(8, 3), m)
    dist.reduce_scatter(t, [t + i for i in range(w)])
    dist.reduce_scatter(m, [m + i for i in range(w)])
    dist.reduce_scatter_tensor(t, torch.ones(12, dtype=f))
    dist.reduce_scatter_tensor(m, torch.ones(8, 3))
    dist.all_to_all_single(torch.zeros(8), torch.zeros(8))
    dist.all_to_all_single(torch.zeros(4, 2), torch.zeros(4, 2))
    dist.all_to_all_single(torch.zeros(w * (r + 1)), torch.zeros(10), [r + 1] * w, [1, 2, 3, 4])
    dist.all_to_all([torch.zeros(2) for _ in range(w)], [torch.zeros(2) for _ in range(w)])
    dist.all_to_all([torch.zeros(2, 3) for _ in range(w)], [torch.zeros(2, 3) for _ in range(w)])
    dist.barrier()
    dist.all_reduce_coalesced([t, t + 1])
    o = [None] * w
    dist.all_gather_object(o, {"r": r})
    o = [1, 2]
    dist.broadcast_object_list(o, src=1)
    if r == 0:
        dist.send(t, 1)
    if r == 1:
        dist.recv(t, 0)
    dist.monitored_barrier()
    s = torch.zeros(0)
    dist.all_reduce(s)
    g = dist.new_group([0, 2])
    if r in (0, 2):
        dist.all_reduce(t, group=g)


def run(r, w):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29712", TORCH_FR_BUFFER_SIZE="2000", USE_LIBUV="0")
    dist.init_process_group("gloo", rank=r, world_size=w)
    program(r, w)
    time.sleep(1)  # the recorder notices a little later that a call is over
    dump = torch._C._distributed_c10d._dump_fr_trace()
    pathlib.Path(sys.argv[1], f"nccl_trace_rank_{r}").write_bytes(dump)
    time.sleep(1)
    os._exit(0)


if __name__ == "__main__":
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        program(dist.get_rank(), dist.get_world_size())
    else:
        mp.spawn(run, args=(4,), nprocs=4)
