"""Makes every public call of torch.distributed, one after the other, on four ranks: prints its result or its refusal.

    calls.py BACKEND [NAME]...

The output of real ranks on Gloo is in tests/data/calls/TORCH.txt.
"""

import datetime
import sys

import torch
import torch.distributed as dist

BACKEND = sys.argv[1]
DEVICE = "cuda" if BACKEND == "nccl" else "cpu"
dist.init_process_group(BACKEND)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
WORLD = dist.group.WORLD
if DEVICE == "cuda":
    torch.cuda.set_device(RANK % torch.cuda.device_count())


def own(count=4):
    return torch.full((count,), RANK + 1.0, device=DEVICE)


def empty(count=4):
    return torch.zeros(count, device=DEVICE)


def rows(count):
    return empty(2 * count).view(count, 2)


def each():
    return [empty() for _ in range(SIZE)]


def filled(tensor, call, *arguments, **named):
    """Returns the tensor or the list after the call."""
    call(tensor, *arguments, **named)
    return tensor


def only(root, value):
    return value if RANK == root else None


def waited(work, tensor):
    work.wait()
    return tensor


def sends_and_receives():
    received = empty()
    if RANK % 2 == 0:
        dist.send(own(), RANK + 1)
    else:
        dist.recv(received, RANK - 1)
    return received


def shifts():
    received = empty()
    works = [dist.isend(own(), (RANK + 1) % SIZE), dist.irecv(received, (RANK - 1) % SIZE)]
    for work in works:
        work.wait()
    return received


def shifts_in_a_batch():
    received = empty()
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, own(), (RANK + 1) % SIZE),
                                        dist.P2POp(dist.irecv, received, (RANK - 1) % SIZE)]):
        work.wait()
    return received


def sends_objects():
    received = [None]
    if RANK % 2 == 0:
        dist.send_object_list([{"from": RANK}], RANK + 1)
    else:
        dist.recv_object_list(received, RANK - 1)
    return received


def scatters_objects():
    received = [None]
    dist.scatter_object_list(received, only(0, list(range(SIZE))), 0)
    return received


def makes_a_group():
    pair = dist.new_group([0, 1])
    if RANK < 2:
        return filled(own(), dist.all_reduce, group=pair)
    return None


def makes_a_mesh():
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh(DEVICE, (2, SIZE // 2), mesh_dim_names=("dp", "tp"))
    return mesh["tp"].size(), mesh.get_local_rank("dp"), dist.get_process_group_ranks(mesh.get_group("tp"))


def distributes():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    mesh = init_device_mesh(DEVICE, (SIZE,))
    tensor = distribute_tensor(torch.arange(4.0 * SIZE, device=DEVICE), mesh, [Shard(0)])
    return ((tensor + 1).redistribute(mesh, [Replicate()]).to_local().sum().item(), tensor.full_tensor().sum().item(),
            (tensor * tensor).sum().full_tensor().item())


def functional(name, *arguments):
    import torch.distributed._functional_collectives as functions
    return getattr(functions, name)(*arguments) + 0


def coalesces_pairs(call, *pairs):
    """Makes calls of the form call(output, input). The remains of one do not disturb the next."""
    from torch.distributed import distributed_c10d
    try:
        with distributed_c10d._coalescing_manager():
            for output, given in pairs:
                call(output, given)
    finally:
        if hasattr(distributed_c10d, "_world"):
            distributed_c10d._world.pg_coalesce_state.clear()
    return [output for output, _ in pairs]


def reduces_every_other():
    memory = torch.arange(8.0) + RANK
    dist.all_reduce(memory[::2])
    return memory


def coalesces(call, tensors):
    from torch.distributed.distributed_c10d import _coalescing_manager
    with _coalescing_manager(device=torch.device(DEVICE)):
        for tensor in tensors:
            call(tensor)
    return tensors


def asks_the_store():
    store = dist.distributed_c10d._get_default_store()
    if RANK == 0:
        store.set("key", "value")
    return store.get("key"), store.add("count", 0)


CALLS = {
    "all_reduce": lambda: filled(own(), dist.all_reduce),
    "all_reduce async": lambda: (lambda tensor: waited(dist.all_reduce(tensor, async_op=True), tensor))(own()),
    "all_reduce MAX": lambda: filled(own(), dist.all_reduce, dist.ReduceOp.MAX),
    "all_reduce AVG": lambda: filled(own(), dist.all_reduce, dist.ReduceOp.AVG),
    "all_reduce bool": lambda: filled(torch.tensor([RANK > 1, False], device=DEVICE), dist.all_reduce),
    "all_reduce of no tensor": lambda: dist.all_reduce("tensor"),
    "broadcast": lambda: filled(own(), dist.broadcast, 0),
    "broadcast group_src": lambda: filled(own(), dist.broadcast, group_src=1),
    "reduce": lambda: only(0, filled(own(), dist.reduce, 0)),
    "all_gather": lambda: filled(each(), dist.all_gather, own()),
    "all_gather, a short list": lambda: filled([empty()], dist.all_gather, own()),
    "all_gather_into_tensor": lambda: filled(empty(4 * SIZE), dist.all_gather_into_tensor, own()),
    "all_gather_single": lambda: filled(empty(4 * SIZE), dist.all_gather_single, own()),
    "gather": lambda: (lambda found: dist.gather(own(), found, 0) or found)(only(0, each())),
    "gather_single": lambda: dist.gather_single(own(), only(0, empty(4 * SIZE)), 0),
    "scatter": lambda: filled(empty(), dist.scatter, only(0, each()), 0),
    "reduce_scatter": lambda: filled(empty(), dist.reduce_scatter, [own() for _ in range(SIZE)]),
    "reduce_scatter_tensor": lambda: filled(empty(), dist.reduce_scatter_tensor, own(4 * SIZE)),
    "reduce_scatter_single": lambda: filled(empty(), dist.reduce_scatter_single, own(4 * SIZE)),
    "all_to_all": lambda: filled(each(), dist.all_to_all, [own() for _ in range(SIZE)]),
    "all_to_all_single": lambda: filled(empty(4 * SIZE), dist.all_to_all_single, own(4 * SIZE)),
    "all_to_all_single of rows": lambda: filled(rows(2 * SIZE), dist.all_to_all_single, own(4 * SIZE).view(-1, 2),
                                                [2] * SIZE, [2] * SIZE),
    "all_to_all_single of rows, too few": lambda: filled(rows(2 * SIZE), dist.all_to_all_single, own(4 * SIZE).view(-1, 2),
                                                         [2] * SIZE, [1] * SIZE),
    "all_gather_into_tensor of rows": lambda: filled(rows(2 * SIZE), dist.all_gather_into_tensor, own().view(2, 2)),
    "all_gather_into_tensor of another shape": lambda: filled(empty(4 * SIZE), dist.all_gather_into_tensor, own().view(2, 2)),
    "all_gather of another shape": lambda: filled(each(), dist.all_gather, own().view(1, 4)),
    "reduce_scatter_tensor of rows": lambda: filled(rows(1), dist.reduce_scatter_tensor, own(2 * SIZE).view(SIZE, 2)),
    "isend of a transposed tensor": lambda: dist.isend(own().view(2, 2).t(), (RANK + 1) % SIZE),
    "barrier": dist.barrier,
    "monitored_barrier": lambda: dist.monitored_barrier(timeout=datetime.timedelta(seconds=20)),
    "send, recv": sends_and_receives,
    "isend, irecv": shifts,
    "batch_isend_irecv": shifts_in_a_batch,
    "all_gather_object": lambda: filled([None] * SIZE, dist.all_gather_object, {"rank": RANK}),
    "broadcast_object_list": lambda: filled([only(0, "object")], dist.broadcast_object_list, 0),
    "gather_object": lambda: (lambda found: dist.gather_object(RANK, found, 0) or found)(only(0, [None] * SIZE)),
    "scatter_object_list": scatters_objects,
    "send_object_list": sends_objects,
    "new_group": makes_a_group,
    "new_group local": lambda: dist.new_group([RANK], use_local_synchronization=True).size(),
    "new_subgroups": lambda: dist.new_subgroups(2)[0].size(),
    "split_group": lambda: dist.split_group(split_ranks=[[0, 1]]).size(),
    "coalesced all_reduce": lambda: coalesces(dist.all_reduce, [own(), own()]),
    "coalesced all_gather_into_tensor": lambda: coalesces_pairs(
        dist.all_gather_into_tensor, (empty(2 * SIZE), own(2)), (empty(3 * SIZE), own(3))),
    "coalesced reduce_scatter_tensor": lambda: coalesces_pairs(
        dist.reduce_scatter_tensor, (empty(2), own(2 * SIZE)), (empty(1), own(SIZE))),
    "coalesced all_gather_into_tensor, a short one": lambda: coalesces_pairs(
        dist.all_gather_into_tensor, (empty(SIZE), own(2)), (empty(SIZE), own(1))),
    "coalesced nothing": lambda: coalesces_pairs(dist.all_gather_into_tensor),
    "all_reduce of every other element": reduces_every_other,
    "functional all_reduce": lambda: functional("all_reduce", own(), "sum", WORLD),
    "functional all_gather": lambda: functional("all_gather_tensor", own(), 0, WORLD),
    "functional reduce_scatter": lambda: functional("reduce_scatter_tensor", own(4 * SIZE), "sum", 0, WORLD),
    "functional all_to_all": lambda: functional("all_to_all_single", own(4 * SIZE), None, None, WORLD),
    "functional broadcast": lambda: functional("broadcast", own(), 0, WORLD),
    "device mesh": makes_a_mesh,
    "dtensor": distributes,
    "group_name": lambda: bool(getattr(WORLD, "group_name", None)),
    "ranks": lambda: dist.get_process_group_ranks(WORLD),
    "backend": lambda: (dist.get_backend(), dist.get_backend_config()),
    "shrink_group": lambda: dist.shrink_group([SIZE - 1]).size(),
    "store": asks_the_store,
    "destroy": dist.destroy_process_group,
}

for name, call in CALLS.items():
    if len(sys.argv) > 2 and name not in sys.argv[2:]:
        continue
    try:
        print(f"{name}: {call()}".replace("\n", " "), flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}".split("\n")[0], flush=True)
