"""GPU scripts, as people write them. gpu.py NAME, recorded on a machine without a GPU."""

import multiprocessing
import os
import subprocess
import sys
import threading

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

RANK = int(os.environ["RANK"])
LOCAL_RANK = int(os.environ["LOCAL_RANK"])
if sys.argv[1:] == ["starts_children"]:
    torch.cuda.set_device(LOCAL_RANK)  # in this process and in those that it starts


def begin():
    torch.cuda.set_device(LOCAL_RANK)
    dist.init_process_group("nccl")


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5))


def train(model, device, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        inputs = torch.full((4, 10), float(RANK + step)).to(device, non_blocking=True)
        loss = model(inputs).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


def trains():
    begin()
    model = DDP(net().cuda(), device_ids=[LOCAL_RANK])
    loss = train(model, LOCAL_RANK)
    assert loss.device == torch.device("cuda", LOCAL_RANK) and loss.is_cuda and loss.get_device() == LOCAL_RANK
    total = torch.tensor([RANK + 1.0], device="cuda")
    dist.all_reduce(total)
    print("total", total.item(), "on", total.device, dist.get_backend())
    dist.destroy_process_group()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        two = torch.empty(gradient.shape, device=torch.cuda.current_device()).fill_(2)
        return gradient * two


class Recomputed(nn.Module):
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(lambda x: x * torch.tensor(2.0, device=x.device), x)


def makes_tensors_in_backward():
    """In hooks, in functions of its own, and where a checkpoint computes again: by backward and by grad."""
    import torch.utils.checkpoint
    begin()
    model = DDP(nn.Sequential(net(), Recomputed()).cuda(), device_ids=[LOCAL_RANK])
    model.module[0][0].weight.register_hook(lambda gradient: gradient * torch.as_tensor(3.0, device="cuda"))
    loss = Doubled.apply(model(torch.ones(4, 10, device="cuda"))).sum()
    loss.backward()
    x = torch.ones(3, device="cuda", requires_grad=True)
    (gradient,) = torch.autograd.grad(Doubled.apply(x).sum(), x)
    assert gradient.device == torch.device("cuda", LOCAL_RANK) and gradient.tolist() == [2.0] * 3
    print("made", model.module[0][0].weight.grad.device)
    dist.destroy_process_group()


def profiles_and_compresses():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.profiler import ProfilerActivity, profile
    begin()
    assert torch.version.cuda and torch.backends.cuda.is_built() and torch.backends.cudnn.is_available()
    model = DDP(net().cuda(), device_ids=[LOCAL_RANK])
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        train(model, LOCAL_RANK)
    print("profiled", len(profiler.events()) > 0)
    dist.destroy_process_group()


def forgets_its_device():
    dist.init_process_group("nccl")
    train(DDP(net().cuda()), "cuda")  # MISTAKE forgets


def falls_back():
    """Asks first, as libraries do; trains on the CPU if there is no GPU."""
    device = torch.device("cuda", LOCAL_RANK) if torch.cuda.is_available() else torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    model = net().to(device)
    train(DDP(model, device_ids=[LOCAL_RANK]) if device.type == "cuda" else model, device)


def converts():
    """Tries everything that moves a tensor, and checks the device of the result."""
    begin()
    here = torch.device("cuda", LOCAL_RANK)
    cpu = torch.arange(4.0)
    moved = [cpu.cuda(), cpu.cuda(LOCAL_RANK), cpu.to("cuda"), cpu.to(here), cpu.to(LOCAL_RANK), cpu.to(here, torch.float64),
             cpu.to(device=here, dtype=torch.float16), torch.zeros(4, device="cuda"), torch.tensor([1.0], device=here),
             cpu.new_zeros(3, device=here), torch.zeros_like(cpu, device=here), torch.as_tensor(cpu, device="cuda")]
    moved += [cpu.to(moved[0]), cpu.type_as(moved[0]), moved[0] + 1, moved[0][1:], 2 * moved[0].sum(), moved[0].detach(),
              moved[0].clone(), torch.ones_like(moved[0]), moved[0].numpy is not None and moved[0].view(2, 2)]
    assert all(each.device == here for each in moved), [each.device for each in moved]
    back = [moved[0].cpu(), moved[0].to("cpu"), moved[0].to(cpu), torch.zeros(4), cpu + 1]
    assert all(each.device.type == "cpu" for each in back), [each.device for each in back]
    assert cpu.to(torch.device("cpu", 0)).device == cpu.device == moved[0].to("cpu:0").device
    back[0].zero_()
    assert moved[0].sum() == 6 and cpu.sum() == 6  # a moved tensor is a copy
    assert moved[0].to(here) is moved[0] and moved[0].cuda() is moved[0]
    layer = nn.Linear(2, 2)
    weight = layer.weight
    assert layer.to(here).weight is weight and weight.device == here and layer.cpu().weight.device.type == "cpu"
    assert layer.cuda().state_dict()["weight"].device == here
    assert moved[0].type() == "torch.cuda.FloatTensor" and cpu.type() == "torch.FloatTensor"
    learned = torch.ones(2, requires_grad=True)
    (learned.to(here) * moved[0][:2]).sum().backward()
    assert learned.grad.device.type == "cpu" and learned.grad.tolist() == [0.0, 1.0]
    torch.save({"weight": moved[0]}, f"saved{RANK}.pt")
    assert torch.load(f"saved{RANK}.pt", map_location=f"cuda:{LOCAL_RANK}")["weight"].device == here
    assert torch.load(f"saved{RANK}.pt", map_location="cpu")["weight"].device.type == "cpu"
    dist.barrier()


def uses_the_rest():
    """Uses streams, events, memory, seeds, mixed precision."""
    begin()
    torch.cuda.manual_seed_all(1)
    stream, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream):
        start.record()
        value = torch.randn(8, device="cuda")
        end.record()
    torch.cuda.current_stream().wait_stream(stream)
    value.record_stream(torch.cuda.current_stream())
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0 and torch.cuda.memory_allocated() >= 0 and torch.cuda.get_device_name(0)
    assert torch.cuda.get_device_properties(0).total_memory > 0 and torch.cuda.device_count() == dist.get_world_size()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.empty_cache()
    with torch.cuda.device(0):
        assert torch.cuda.current_device() == 0
    assert torch.cuda.current_device() == LOCAL_RANK
    model = DDP(net().cuda(), device_ids=[LOCAL_RANK])
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.cuda.amp.GradScaler()
    with torch.cuda.amp.autocast():
        loss = model(torch.ones(2, 10, device="cuda")).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    found = []
    worker = threading.Thread(target=lambda: found.append(torch.ones(2).cuda(LOCAL_RANK).device))
    worker.start()
    worker.join()
    assert found == [torch.device("cuda", LOCAL_RANK)]
    loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=4, pin_memory=True)
    for batch in loader:
        dist.all_reduce(batch.cuda(non_blocking=True))
    torch.cuda.cudart().cudaProfilerStart()
    assert torch.empty(3, pin_memory=True).cuda(non_blocking=True).is_cuda


def splits_its_model():
    """Two GPUs for each rank."""
    dist.init_process_group("gloo")
    first, second = 2 * RANK, 2 * RANK + 1

    class Split(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(10, 10).to(first), nn.Linear(10, 5).to(second)

        def forward(self, inputs):
            return self.second(self.first(inputs.to(first)).to(second))

    assert train(DDP(Split()), "cpu").device == torch.device("cuda", second)


def normalizes_together():
    """SyncBatchNorm does with two halves of a batch what BatchNorm does with the whole."""
    begin()
    torch.manual_seed(0)
    batch, gradient = torch.randn(6, 3, 4, 5, dtype=torch.float64), torch.randn(6, 3, 4, 5, dtype=torch.float64)
    size = dist.get_world_size()
    mine = slice(6 * RANK // size, 6 * (RANK + 1) // size)
    whole, part = nn.BatchNorm2d(3).double(), nn.SyncBatchNorm(3).double().cuda()
    given, own = batch.clone().requires_grad_(), batch[mine].cuda().requires_grad_()
    model = DDP(part, device_ids=[LOCAL_RANK])
    expected, normalized = whole(given), model(own)
    expected.backward(gradient)
    normalized.backward(gradient[mine].cuda())
    for found, wanted in ((normalized, expected[mine]), (own.grad, given.grad[mine]), (part.running_mean, whole.running_mean),
                          (part.running_var, whole.running_var), (part.weight.grad * size, whole.weight.grad)):
        assert torch.allclose(found.cpu(), wanted), (found, wanted)


def reduces_a_column():
    begin()
    dist.all_reduce(torch.ones(3, 2).cuda()[:, 0])  # MISTAKE reduces_a_column


def binds_its_device():
    """One rank sends and the other receives in a batch: with a device_id both use the group's communicator."""
    here = torch.device("cuda", LOCAL_RANK)
    dist.init_process_group("nccl", device_id=here)
    tensor = torch.ones(2, device=here)
    if RANK == 0:
        dist.send(tensor, 1)
    elif RANK == 1:
        for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, tensor, 0)]):
            work.wait()
    torch.cuda.synchronize()


def splits_its_world():
    torch.cuda.set_device(LOCAL_RANK)
    dist.init_process_group(device_id=torch.device("cuda", LOCAL_RANK))
    assert dist.get_backend() == "nccl"
    half = dist.split_group(split_ranks=[[0, 1], [2, 3]])
    total = torch.tensor([float(RANK)], device="cuda")
    dist.all_reduce(total, group=half)
    assert total.item() == (1 if RANK < 2 else 5), total
    pair = dist.split_group(split_ranks=[[0]], parent_pg=half)
    if RANK % 2 == 0:
        dist.all_reduce(total, group=pair)
    else:
        assert pair in (None, dist.GroupMember.NON_GROUP_MEMBER)
    other = dist.new_group([0, 3])
    if RANK in (0, 3):
        dist.broadcast(total, 3, group=other)
    dist.destroy_process_group()


def is_told_of_the_device_too_late():
    dist.init_process_group("nccl")
    dist.split_group(split_ranks=[[0], [1]])  # MISTAKE is_told_of_the_device_too_late


def looks_in_a_child(number):
    assert torch.cuda.device_count() == int(os.environ["LOCAL_WORLD_SIZE"])
    assert torch.ones(number).cuda().device == torch.device("cuda", LOCAL_RANK)


def starts_children():
    """Children of every kind have the GPUs, from their first line on: this module is imported there."""
    begin()
    if RANK == 1:
        for method in ("fork", "spawn", "forkserver"):
            child = multiprocessing.get_context(method).Process(target=looks_in_a_child, args=(2,))
            child.start()
            child.join()
            assert child.exitcode == 0, (method, child.exitcode)
        other = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.is_available())"],
                               stdout=subprocess.PIPE, check=True)
        assert other.stdout == b"%s\n" % str(os.path.exists("/dev/nvidia0")).encode(), other.stdout
    dist.barrier()


def needs_no_gpu():
    """Torch itself asks for GPUs here, and the script does not."""
    dist.init_process_group("gloo")
    model = DDP(net())
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(4, 10)).sum().backward()
    optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


def leaves_its_backend_open():
    """With GPUs, the job would be on NCCL."""
    dist.init_process_group()
    dist.all_reduce(torch.ones(1))


def asks_in_a_child_only():
    dist.init_process_group()
    child = os.fork()
    if child == 0:
        os._exit(5 if torch.cuda.is_available() else 6)
    assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 5
    dist.all_reduce(torch.ones(1))


def begins_before_it_asks():
    dist.init_process_group()
    torch.cuda.set_device(LOCAL_RANK)
    dist.all_reduce(torch.ones(1, device="cuda"))


def begins_with_a_mesh():
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cuda", (int(os.environ["WORLD_SIZE"]),))
    dist.all_reduce(torch.ones(1, device="cuda"), group=mesh.get_group())


def forgets_to_move():
    begin()
    model = DDP(net().cuda())
    labels = torch.zeros(4, 5)
    outputs = model(torch.ones(4, 10).cuda())
    nn.functional.mse_loss(outputs, labels).backward()  # MISTAKE forgets_to_move


def reduces_on_the_cpu():
    begin()
    dist.all_reduce(torch.ones(1))  # MISTAKE reduces_on_the_cpu


def has_too_few():
    torch.cuda.set_device(7)  # MISTAKE has_too_few


def reads_from_the_gpu():
    begin()
    torch.ones(2).cuda().numpy()  # MISTAKE reads_from_the_gpu


def says_where_it_is():
    print({name: os.environ[name] for name in ("RANK", "LOCAL_RANK", "GROUP_RANK", "LOCAL_WORLD_SIZE")},
          torch.cuda.device_count())
    dist.init_process_group()


def mixes_backends():
    """Asks for NCCL as frameworks do, and makes a group on Gloo beside it, which has barriers with a limit."""
    assert dist.is_nccl_available()
    assert dist.ProcessGroupNCCL.Options(is_high_priority_stream=True).is_high_priority_stream
    begin()
    hosts = dist.new_group(backend="gloo")
    assert dist.get_backend(hosts) == "gloo"
    dist.monitored_barrier(hosts)
    pair = [dist.new_group(backend="gloo") for _ in range(2)]  # connected when they are made: first calls may cross
    works = [dist.all_reduce(torch.ones(2), group=each, async_op=True) for each in (pair if RANK == 0 else pair[::-1])]
    for work in works:
        work.wait()
    tensor = torch.ones(4, device="cuda")
    dist.all_reduce(tensor)
    assert tensor.tolist() == [float(dist.get_world_size())] * 4


def crosses_first_calls():
    """The first call on a group makes its communicator, which holds up even an asynchronous call."""
    begin()
    pair = [dist.new_group() for _ in range(2)]
    tensors = [torch.ones(4, device="cuda") for _ in pair]
    order = (0, 1) if RANK == 0 else (1, 0)
    works = [dist.all_reduce(tensors[each], group=pair[each], async_op=True) for each in order]
    for work in works:
        work.wait()
    torch.cuda.synchronize()


def calls_first_in_threads():
    """A thread that is held up by its first call does not hold up another one."""
    begin()
    own = dist.new_group()

    def reduce_often(group):
        torch.cuda.set_device(LOCAL_RANK)
        for _ in range(3):
            tensor = torch.ones(4, device="cuda")
            dist.all_reduce(tensor, group=group)
            assert tensor.tolist() == [float(dist.get_world_size())] * 4
    aside = threading.Thread(target=reduce_often, args=(own,))
    aside.start()
    reduce_often(None)
    aside.join()


def scales_first():
    """Sums with a factor for each member, as FSDP does for a gradient_divide_factor."""
    make = getattr(dist, "_make_nccl_premul_sum", None)
    begin()
    if make is None:
        return
    tensor = torch.ones(4, device="cuda")
    dist.all_reduce(tensor, op=make(0.5))
    assert tensor.tolist() == [0.5 * dist.get_world_size()] * 4


def makes_tensors_on_the_default_device():
    begin()
    if not hasattr(torch, "set_default_device"):
        return
    torch.set_default_device("cuda")
    here = torch.device("cuda", LOCAL_RANK)
    assert torch.ones(3).device == nn.Linear(3, 2).weight.device == torch.tensor(2.5).device == here
    assert torch.as_tensor([1.0]).device == torch.zeros(0).device == here
    assert torch.zeros(1, device="cpu").device == torch.zeros_like(torch.zeros(1, device="cpu")).device == torch.device("cpu")
    total = torch.full((3,), RANK + 1.0)
    dist.all_reduce(total)
    torch.set_default_device(None)
    assert torch.ones(1).device == torch.device("cpu")
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    assert model.weight.is_meta and model.to_empty(device="cuda").weight.device == here
    with torch.device("cuda"):
        assert net()[0].weight.device == here
    print("total", total.tolist(), "on", total.device)


def calculates_on_meta():
    meta = torch.device("meta")
    scale = torch.arange(4.0, device="meta")  # before any tensor is on a GPU
    assert (10 ** scale).device == (1.0 / scale).device == torch.outer(scale, scale).device == scale.double().device == meta
    weight = nn.Linear(4, 2).weight
    weight.__dict__["requires_grad"] = False
    assert nn.Parameter(weight.to("meta"), **weight.__dict__).device == meta  # as accelerate's init_empty_weights does
    begin()
    gpu = torch.ones(4, device="cuda")
    assert (scale * 2).device == torch.zeros_like(scale).device == (nn.Linear(4, 2, device="meta").weight + 1).device == meta
    model = nn.Linear(4, 2, device="meta").to_empty(device="cuda")
    assert model.weight.device == (gpu * 2).device == torch.device("cuda", LOCAL_RANK)
    dist.all_reduce(torch.empty_like(scale, device="cuda").fill_(1))


def sends_sparse_gradients():
    begin()
    dist.all_reduce(torch.sparse_coo_tensor([[0]], [1.0], (4,)))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
