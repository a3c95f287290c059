"""torch.distributed's primitives, one at a time, as tutorials show them. primitives.py NAME"""

import sys

import torch
import torch.distributed as dist


def broadcast():
    dist.broadcast(torch.ones(3), src=0)
    dist.broadcast(torch.ones(3), src=2)


def all_reduce(op=dist.ReduceOp.SUM):
    dist.all_reduce(torch.arange(4.0), op=op)


def all_reduce_max():
    all_reduce(dist.ReduceOp.MAX)


def reduce():
    for dst in (0, 2):
        dist.reduce(torch.ones(2), dst=dst)
        dist.reduce(torch.ones(2), dst=dst, op=dist.ReduceOp.MAX)


def all_gather():
    dist.all_gather([torch.zeros(2) for _ in range(size)], torch.ones(2))


def scatter():
    tensor = torch.zeros(2)
    dist.scatter(tensor, [torch.full((2,), float(i)) for i in range(size)] if rank == 1 else None, src=1)
    assert tensor.tolist() == [rank, rank] or rank != 1


def gather():
    dist.gather(torch.full((2,), float(rank)), [torch.zeros(2) for _ in range(size)] if rank == 2 else None, dst=2)


def reduce_scatter_tensor():
    dist.reduce_scatter_tensor(torch.zeros(2), torch.ones(2 * size))


def all_to_all_single():
    dist.all_to_all_single(torch.zeros(2 * size), torch.ones(2 * size))


def barrier():
    dist.barrier()


def asynchronous():
    tensor = torch.ones(1) * rank
    work = dist.all_reduce(tensor, op=dist.ReduceOp.SUM, async_op=True)
    other = tensor.shape[0] + 1  # meanwhile
    work.wait()
    assert other == 2


def ring():
    received = torch.zeros(4)
    for _ in range(10):
        request = dist.isend(torch.full((4,), float(rank)), (rank + 1) % size)
        dist.recv(received, (rank - 1) % size)
        request.wait()


def batch():
    operations = [dist.P2POp(dist.isend, torch.ones(2), (rank + 1) % size),
                  dist.P2POp(dist.irecv, torch.zeros(2), (rank - 1) % size)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


def objects():
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank})
    print([each["rank"] for each in gathered])


def groups():
    even = dist.new_group([0, 2])
    if rank % 2 == 0:
        dist.all_reduce(torch.ones(3), group=even)
        dist.broadcast(torch.ones(1), src=2, group=even)
    dist.destroy_process_group(even)
    dist.destroy_process_group()


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
globals()[sys.argv[1]]()
