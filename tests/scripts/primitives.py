"""Runs torch.distributed's primitives as tutorials show them, one after the other in one job: primitives.py NAME...

The sizes are those of tests/data/golden. all_reduce:MAX:float32:4 means an all_reduce of a tensor like that.
"""

import sys
from datetime import timedelta

import torch
import torch.distributed as dist


def ramp(count, dtype=torch.float32):
    return torch.arange(1, count + 1, dtype=torch.int64).add(10 * rank).to(dtype)


def rooms(count):
    return [torch.zeros(count) for _ in range(size)]


def all_reduce(op="SUM", dtype="float32", numel="4"):
    dist.all_reduce(ramp(int(numel), getattr(torch, dtype)), op=getattr(dist.ReduceOp, op))


def all_reduce_coalesced():
    dist.all_reduce_coalesced([ramp(2), ramp(3)])


def all_reduce_order():
    for count in (1, 4, 1000):
        dist.all_reduce(torch.full((count,), 1e8 * (rank - 1)))


def broadcast():
    dist.broadcast(ramp(3), src=0)
    dist.broadcast(ramp(3), src=2)


def reduce():
    for dst in (0, 2):
        dist.reduce(ramp(2), dst=dst)
        dist.reduce(ramp(2), dst=dst, op=dist.ReduceOp.MAX)


def reduce_order():
    dist.all_reduce(ramp(1))
    for dst in range(size):
        dist.reduce(ramp(1), dst)


def all_gather():
    dist.all_gather(rooms(2), ramp(2))


def all_gather_into_tensor():
    dist.all_gather_into_tensor(torch.zeros(2 * size), ramp(2))


def scatter():
    tensor = torch.zeros(2)
    dist.scatter(tensor, [torch.full((2,), float(i)) for i in range(size)] if rank == 1 else None, src=1)


def gather():
    dist.gather(ramp(2), rooms(2) if rank == 1 else None, dst=1)


def reduce_scatter():
    dist.reduce_scatter(torch.zeros(2), [ramp(2) for _ in range(size)])


def reduce_scatter_tensor():
    dist.reduce_scatter_tensor(torch.zeros(2), ramp(2 * size))


def all_to_all():
    dist.all_to_all(rooms(1), [ramp(1) for _ in range(size)])


def all_to_all_single():
    dist.all_to_all_single(torch.zeros(size), ramp(size))
    sends = [rank + 1] * size
    receives = [i + 1 for i in range(size)]
    dist.all_to_all_single(torch.zeros(sum(receives)), ramp(sum(sends)), receives, sends)


def even_exchanges(dtype, rows):
    for row in rows.split("/"):
        sizes = [int(size) for size in row.split(",")]
        tensor = ramp(sizes[rank % len(sizes)], getattr(torch, dtype))
        try:
            dist.all_to_all_single(torch.zeros_like(tensor), tensor)
        except (RuntimeError, ValueError) as error:  # Gloo splits bytes, but not any number of them
            print(error)


def barrier():
    dist.barrier()
    dist.barrier(async_op=True).wait()


def monitored_barrier():
    dist.monitored_barrier(timeout=timedelta(seconds=5))


def objects():
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "pad": "x" * rank})
    dist.broadcast_object_list([rank, f"from {rank}"], src=1)
    dist.gather_object(rank * 2, [None] * size if rank == 0 else None, dst=0)
    dist.scatter_object_list([None], ["a", "b", "c"] if rank == 2 else [None] * size, src=2)
    print([each["rank"] for each in gathered])


def async_wait():
    tensors = [ramp(2) for _ in range(3)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for index in (2, 0, 1):
        works[index].wait()


def async_no_wait():
    for _ in range(4):
        dist.all_reduce(torch.ones(1), async_op=True)
    dist.barrier()


def async_order():
    tensors = [torch.ones(1), torch.zeros(1)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in (tensors if rank == 0 else reversed(tensors))]
    for work in works:
        work.wait()


def shapes():
    for tensor in (torch.tensor(1.0), torch.zeros(0), ramp(6).reshape(2, 3).t(), ramp(6)[::2]):
        dist.all_reduce(tensor)
        dist.broadcast(tensor, src=0)


def same_numel_other_shape():
    dist.all_reduce(ramp(6).reshape((2, 3) if rank == 0 else (3, 2)))


def world_of_one():
    tensor = ramp(2)
    dist.all_reduce(tensor)
    dist.broadcast(tensor, 0)
    dist.reduce(tensor, 0)
    dist.all_gather([torch.zeros(2)], tensor)
    dist.barrier()


def simple():
    dist.send(ramp(3), dst=1) if rank == 0 else dist.recv(ramp(3), src=0)


def recv_any():
    if rank > 0:
        dist.send(torch.full((1,), 10.0 * rank), dst=0)
        return
    for _ in range(size - 1):
        dist.recv(torch.zeros(1))


def async_exchange():
    for work in [dist.isend(ramp(2), 1 - rank), dist.irecv(torch.zeros(2), 1 - rank)]:
        work.wait()


def batch_ring():
    operations = [dist.P2POp(dist.isend, ramp(2), (rank + 1) % size),
                  dist.P2POp(dist.irecv, torch.zeros(2), (rank - 1) % size)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


def ring():
    received = torch.zeros(4)
    for _ in range(10):
        request = dist.isend(torch.full((4,), float(rank)), (rank + 1) % size)
        dist.recv(received, (rank - 1) % size)
        request.wait()


def same_tag_fifo():
    tensors = [torch.full((1,), float(index)) for index in range(4)]
    works = [dist.isend(tensor, 1) if rank == 0 else dist.irecv(tensor, 0) for tensor in tensors]
    for work in works if rank == 0 else reversed(works):
        work.wait()


def tags_out_of_order():
    tensors = [torch.ones(1), torch.zeros(1)]
    if rank == 0:
        works = [dist.isend(tensor, 1, tag=tag) for tag, tensor in enumerate(tensors, 1)]
    else:
        works = [dist.irecv(tensors[tag - 1], 0, tag=tag) for tag in (2, 1)]
    for work in works:
        work.wait()


def size_recv_larger():
    dist.send(ramp(2), 1) if rank == 0 else dist.recv(ramp(4), 0)


def dtype():
    dist.send(ramp(2), 1) if rank == 0 else dist.recv(ramp(2, torch.int32), 0)


def isend_unreceived():
    if rank == 0:
        dist.isend(torch.ones(1), dst=1)


def nonmember():
    group = dist.new_group([0, 1])
    dist.all_reduce(torch.ones(1), group=group)


def global_roots():
    group = dist.new_group([1, 3])
    dist.broadcast(ramp(2), src=3, group=group)
    dist.reduce(ramp(2), dst=3, group=group)


def p2p():
    group = dist.new_group([1, 3])
    if rank == 1:
        dist.send(ramp(2), dst=3, group=group)
    if rank == 3:
        dist.recv(ramp(2), group=group)


def unsorted():
    dist.broadcast(ramp(1), src=2, group=dist.new_group([2, 0, 1]))


def new_subgroups():
    mine, _ = dist.new_subgroups(group_size=2)
    dist.all_reduce(torch.ones(1), group=mine)


def ends():
    group = dist.new_group([0, 2])
    if rank % 2 == 0:
        dist.all_reduce(torch.ones(3), group=group)
    dist.destroy_process_group(group)
    dist.destroy_process_group()


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
for word in sys.argv[1:]:
    name, *arguments = word.split(":")
    try:
        globals()[name](*arguments)
    except (RuntimeError, ValueError) as error:  # every rank refuses what this backend does not have
        print(error)
