"""Tensors that a call still uses, each as small as possible. races.py NAME [BACKEND]"""

import sys
import time

import torch
import torch.distributed as dist


def sends_and_writes():
    data = torch.ones(4)
    if rank == 0:
        work = dist.isend(data, 1)
        data.zero_()  # MISTAKE sends_and_writes
        work.wait()
    else:
        dist.recv(data, 0)


def adds_too_early():
    data = torch.ones(4)
    dist.all_reduce(data, async_op=True)
    data += 1  # MISTAKE adds_too_early


def reads_too_early():
    parts = torch.zeros(2 * 2)
    work = dist.all_gather(list(parts.split(2)), torch.ones(2), async_op=True)
    print(parts.sum().item())  # MISTAKE reads_too_early
    work.wait()


def receives_over_what_is_sent():
    data = torch.full((4,), float(rank))
    work = dist.isend(data, 1 - rank)
    dist.recv(data, 1 - rank)  # MISTAKE receives_over_what_is_sent
    work.wait()


def reduces_twice():
    """NCCL runs the calls of one communicator in order, but Gloo has two threads."""
    data = torch.ones(4, device="cuda" if dist.get_backend() == "nccl" else "cpu")
    works = [dist.all_reduce(data, async_op=True)]
    works.append(dist.all_reduce(data, async_op=True))  # MISTAKE reduces_twice
    for work in works:
        work.wait()


def sends_it_twice():
    """Two calls that only read do not conflict."""
    data = torch.ones(4)
    if rank == 0:
        for work in [dist.isend(data, 1), dist.isend(data, 1)]:
            work.wait()
    else:
        dist.recv(data, 0)
        dist.recv(data, 0)


def receives_into_a_view():
    """The other half of the memory is free."""
    data = torch.zeros(8)
    work = dist.irecv(data[:4], 1 - rank)
    data[4:].fill_(2)
    sent = dist.isend(data[4:], 1 - rank)
    assert data[4:].sum().item() == 8
    torch.zeros_like(data[:4]).add_(1)
    sent.wait()
    work.wait()


def waits_first():
    data = torch.ones(4)
    works = [dist.all_reduce(data, async_op=True)]
    other = torch.ones(4)
    works.append(dist.broadcast(other, 0, async_op=True))
    if rank == 0:
        assert other.sum().item() == 4  # the root's tensor is only read
    for work in works:
        work.wait()
    data += 1
    other += data


def trains():
    """DDP's own calls are not checked."""
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)),
                                                      bucket_cap_mb=0.00001, find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()


def nobody_waits():
    """A call's result arrives even if no rank waits for it."""
    data = torch.ones(1)
    dist.all_reduce(data, async_op=True)
    dist.barrier()
    print("brought", data.item())


def lets_go():
    """Gloo takes a message back with its Work."""
    data = torch.ones(4, device="cuda" if dist.get_backend() == "nccl" else "cpu")
    if rank == 0:
        dist.isend(data, 1)  # MISTAKE lets_go
        dist.barrier()
    else:
        dist.recv(data, 0)
        dist.barrier()


def keeps_the_last():
    data = torch.ones(4)
    if rank == 1:
        for _ in range(3):
            work = dist.isend(data, 0)  # MISTAKE keeps_the_last
        work.wait()
    else:
        for _ in range(3):
            dist.recv(data, 1)


def keeps_all():
    data = torch.ones(4)
    if rank == 0:
        works = [dist.isend(data, 1) for _ in range(3)]
    else:
        for _ in range(3):
            dist.recv(data, 0)
    dist.barrier()  # every message has arrived


def comes_first():
    data = torch.ones(4)
    if rank == 0:
        time.sleep(1)
        dist.isend(data, 1)
    else:
        dist.recv(data, 0)
    dist.barrier()


dist.init_process_group(sys.argv[2] if len(sys.argv) > 2 else "gloo")
rank = dist.get_rank()
if dist.get_backend() == "nccl":
    torch.cuda.set_device(rank)
globals()[sys.argv[1]]()
