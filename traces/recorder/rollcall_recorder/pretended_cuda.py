"""Pretends the torch.cuda and torch.accelerator of a machine with GPUs, for scripts that ask for them where there are
none.

device_claims.py handles tensors. This module handles the rest: devices, streams, events, memory, and seeds. Nothing takes
time, and nothing takes memory. A missing function raises an error with its name.
"""

import collections
import contextlib
import functools
import itertools
import os
import struct
import sys
import types

import torch

from . import batch_norm, device_claims
from .install import NCCL_VERSION
from .replacing import replace_everywhere, replace_in

_MEMORY = 80 * 1024**3
_NAME = "NVIDIA A100-SXM4-80GB"  # has bfloat16, and no features of newer GPUs
_CAPABILITY = (8, 0)
_CUDA_VERSION = "12.8"


def install(count):
    """Pretends `count` GPUs for this process and those that it forks; started.py takes care of others."""
    gpus = device_claims.Gpus(lambda: _visible(count))
    device_claims.install(gpus)
    _replace_all(torch.cuda, _cuda(gpus))
    _replace_all(torch.cuda, _streams(gpus))
    if hasattr(torch, "accelerator"):
        _replace_all(torch.accelerator, _accelerator(gpus))
    _replace_parts_of_cuda()
    _replace_default_types()
    _replace_generator()
    _replace_load(gpus)
    _replace_nccl(gpus)
    _replace_versions()
    _replace_profiler()
    _replace_attention()
    _replace_buckets(gpus)
    batch_norm.install()
    _name_what_is_missing()


def _visible(count):
    """Returns the number of visible GPUs: a script may choose devices before it first asks for one."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return count
    return min(count, len([name for name in chosen.split(",") if name.strip() not in ("", "-1")]))


def _replace_all(module, answers):
    """Replaces the names that the module has; functions also in the modules of torch that have imported them."""
    known = {name: getattr(module, name) for name in answers if getattr(module, name, None) is not None}
    for name in known:
        if not isinstance(known[name], types.FunctionType):
            setattr(module, name, answers[name])
    replace_everywhere(module, {name: answers[name] for name, was in known.items() if isinstance(was, types.FunctionType)})


def _answer(value):
    return lambda *_, **__: value


def _cuda(gpus):
    def index_of(device=None):
        """Returns the index of a device that may be None, a number, a name, or a torch.device."""
        return gpus.current if device is None else gpus.device("cuda" if device == "" else device).index

    def device_count():
        gpus.asked_for_by(sys._getframe(1))
        return gpus.count

    def is_available():
        return device_count() > 0

    def set_device(device):
        gpus.asked_for()
        index = device if isinstance(device, int) else index_of(device)
        if index >= 0:
            gpus.current = index

    class device:
        """A context in which another device is current; -1 and None change nothing."""

        def __init__(self, device):
            self.idx = -1 if device is None or device == -1 else index_of(device)
            self.prev_idx = -1

        def __enter__(self):
            self.prev_idx = gpus.current
            if self.idx >= 0:
                gpus.current = self.idx

        def __exit__(self, *_):
            gpus.current = self.prev_idx
            return False

    class device_of(device):
        def __init__(self, tensor):
            super().__init__(tensor.get_device() if tensor.is_cuda else None)

    def exchange_device(index):
        before = gpus.current
        if index >= 0:
            gpus.current = index
        return before

    states = {}  # of the generators: 8 bytes of seed, 8 of offset

    def get_rng_state(device="cuda"):
        index = gpus.device(device).index
        if index not in states:
            states[index] = torch.frombuffer(bytearray(struct.pack("<QQ", torch.initial_seed() % 2**64, 0)), dtype=torch.uint8)
        return states[index].clone()

    def set_rng_state(state, device="cuda"):
        states[gpus.device(device).index] = state.cpu()

    def set_rng_state_all(given):
        for index, state in enumerate(given):
            set_rng_state(state, index)

    properties = types.SimpleNamespace(
        name=_NAME, major=_CAPABILITY[0], minor=_CAPABILITY[1], total_memory=_MEMORY, multi_processor_count=108,
        is_integrated=0, is_multi_gpu_board=0, max_threads_per_multi_processor=2048, warp_size=32, gcnArchName="",
        regs_per_multiprocessor=65536, shared_memory_per_block=49152, shared_memory_per_block_optin=166912,
        shared_memory_per_multiprocessor=167936, L2_cache_size=41943040, uuid="pretended")

    answers = {
        "is_available": is_available, "device_count": device_count, "set_device": set_device,
        "current_device": lambda: gpus.current, "device": device, "device_of": device_of, "_DeviceGuard": device,
        "_exchange_device": exchange_device, "_maybe_exchange_device": exchange_device,
        "memory_stats": lambda *_: collections.defaultdict(int), "memory_stats_as_nested_dict": lambda *_: {},
        "memory_snapshot": lambda *_: [], "initial_seed": lambda: torch.initial_seed(),
        "get_rng_state": get_rng_state, "set_rng_state": set_rng_state, "set_rng_state_all": set_rng_state_all,
        "is_initialized": lambda: gpus.is_used,
        "get_rng_state_all": lambda: [get_rng_state(index) for index in range(gpus.count)],
    }
    # Seeds are the CPU's, where all random numbers are drawn: a script that seeds its GPU has seeded its CPU, too.
    constants = (
        (True, ("_is_compiled", "is_bf16_supported", "is_tf32_supported", "can_device_access_peer")),
        (False, ("_is_in_bad_fork", "is_current_stream_capturing")),
        ("", ("get_gencode_flags", "memory_summary", "list_gpu_processes")),
        (0, ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached",
             "max_memory_cached", "get_sync_debug_mode", "clock_rate", "power_draw", "temperature", "utilization",
             "memory_usage")),
        (1.0, ("get_per_process_memory_fraction",)),
        ("native", ("get_allocator_backend",)),
        (_NAME, ("get_device_name",)),
        (_CAPABILITY, ("get_device_capability",)),
        (properties, ("get_device_properties",)),
        (["sm_80"], ("get_arch_list",)),
        ((_MEMORY, _MEMORY), ("mem_get_info",)),
        (None, ("manual_seed", "manual_seed_all", "seed", "seed_all", "_lazy_init", "init", "synchronize", "empty_cache",
                "ipc_collect", "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
                "reset_accumulated_memory_stats", "set_per_process_memory_fraction", "set_sync_debug_mode", "_sleep",
                "_lazy_call", "_set_allocator_settings")),
        (types.SimpleNamespace(cudaProfilerStart=lambda: 0, cudaProfilerStop=lambda: 0), ("cudart",)),
    )
    answers.update((name, _answer(value)) for value, names in constants for name in names)
    return answers


def _streams(gpus):
    """Pretends streams and events. Work is done when it is requested, so every stream is idle and every event has
    happened. If kernels are recorded, the stream that they would be on is noted."""

    numbers = itertools.count(1)

    class Stream:
        def __init__(self, device=None, priority=0, **_):
            self.device = gpus.device("cuda" if device is None else device, sys._getframe(1))
            self.priority = priority
            self.stream_id = self.cuda_stream = 0
            self.device_index, self.device_type = self.device.index, 1
            self.number = next(numbers)
            self._before = []

        @staticmethod
        def priority_range():
            return (0, -5)

        def query(self):
            return True

        def is_capturing(self):
            return False

        def record_event(self, event=None):
            event = Event() if event is None else event
            event.record(self)
            return event

        def synchronize(self):
            pass

        def wait_event(self, event):
            if device_claims.queue is not None:
                device_claims.queue.waits_for(event.mark, self.number)

        def wait_stream(self, stream):
            if device_claims.queue is not None:
                device_claims.queue.waits_for_stream(stream.number, self.number)

        def __enter__(self):
            self._before.append(enter(self))
            return self

        def __exit__(self, *_):
            enter(self._before.pop())
            return False

    class Event:
        def __init__(self, *_, **__):
            self.event_id = self.cuda_event = 0
            self.device = gpus.device("cuda")
            self.mark = None  # the queue's own object for it

        @classmethod
        def from_ipc_handle(cls, *_):
            return cls()

        def query(self):
            return True

        def elapsed_time(self, _):
            return 0.0

        def synchronize(self):
            pass

        def record(self, stream=None):
            if device_claims.queue is not None:
                self.mark = device_claims.queue.recorded(self.mark, (stream or stream_of()).number)

        def wait(self, stream=None):
            (stream or stream_of()).wait_event(self)

    class StreamContext:
        def __init__(self, stream):
            self.stream = stream

        def __enter__(self):
            return self.stream if self.stream is None else self.stream.__enter__()

        def __exit__(self, *_):
            return False if self.stream is None else self.stream.__exit__()

    streams, entered = {}, []  # the default streams by device; the current stream, if it is another one

    def default_of(device=None):
        # Optimizers ask for the current stream, whatever they work on.
        place = gpus.device("cuda" if device is None else device, sys._getframe(1))
        if place.index not in streams:
            streams[place.index] = Stream(place)
            streams[place.index].number = 0
        return streams[place.index]

    def stream_of(device=None):
        return entered[0] if entered and device_claims.queue is not None else default_of(device)

    def enter(stream):
        """Makes `stream` current, and returns the one that was."""
        before = stream_of()
        entered[:] = [stream]
        if device_claims.queue is not None:
            device_claims.queue.enters(stream.number)
        return before

    return {"Stream": Stream, "ExternalStream": Stream, "Event": Event, "StreamContext": StreamContext, "stream": StreamContext,
            "current_stream": stream_of, "default_stream": default_of, "set_stream": lambda stream: stream and enter(stream),
            "get_stream_from_external": lambda pointer, device=None: default_of(device)}


def _accelerator(gpus):
    def current_accelerator(check_available=False):
        gpus.asked_for_by(sys._getframe(1))
        return torch.device("cuda") if gpus.count else None

    def set_index(device):
        gpus.current = gpus.device(device).index

    if hasattr(torch._C, "_get_accelerator"):
        torch._C._get_accelerator = lambda *_: torch.device("cuda" if gpus.count else "cpu")

    answers = {
        "current_accelerator": current_accelerator, "is_available": lambda: current_accelerator() is not None,
        "device_count": lambda: gpus.count, "set_device_index": set_index, "set_device_idx": lambda device: set_index(device),
        "current_device_index": lambda: gpus.current, "current_device_idx": lambda: gpus.current,
        "get_device_capability": lambda *_: {"supported_dtypes": set()}, "memory_stats": lambda *_: collections.OrderedDict(),
        "current_stream": lambda *_: torch.cuda.current_stream(), "device_index": lambda index: torch.cuda.device(index),
        "get_memory_info": _answer((_MEMORY, _MEMORY)),
    }
    answers.update((name, _answer(None)) for name in (
        "synchronize", "empty_cache", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_stream"))
    answers.update((name, _answer(0)) for name in (
        "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"))
    return answers


def _replace_parts_of_cuda():
    parts = {
        torch.cuda.nvtx: {"range_push": 0, "range_pop": 0, "range_start": 0, "mark": None, "range_end": None},
        torch.cuda.nccl: {"version": NCCL_VERSION, "is_available": True},
        torch.cuda.memory: {"_record_memory_history": None, "_dump_snapshot": None, "_snapshot": None},
    }
    for module, values in parts.items():
        _replace_all(module, {name: _answer(value) for name, value in values.items()})
    _replace_all(torch.cuda.nvtx, {"range": lambda *_, **__: contextlib.nullcontext()})

    class CUDAGraph:
        def __init__(self, *_, **__):
            raise NotImplementedError("rollcall: the pretended GPU captures no CUDA graphs; let the script do without them")

    torch.cuda.CUDAGraph = torch.cuda.graphs.CUDAGraph = CUDAGraph
    if int(torch.__version__.partition(".")[0]) < 2:
        _without_scaling()


def _replace_versions():
    """Tells the script, but not torch itself, that torch was built with CUDA and cuDNN. DDP's hooks ask, too."""
    torch.version.cuda = _CUDA_VERSION
    for module, name in ((torch.backends.cuda, "is_built"), (torch.backends.cudnn, "is_available")):
        original = getattr(module, name)

        def answer(original=original):
            return True if device_claims.package_of(sys._getframe(1)) != "torch" else original()

        setattr(module, name, functools.update_wrapper(answer, original))


def _replace_profiler():
    """Profiles what runs on the CPU. For events of a GPU there is none: torch warns of each, with its stack."""
    import torch.profiler.profiler

    on_cpu, on_gpu = torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA

    def __init__(self, *arguments, **named):
        begin(self, *arguments, **named)
        self.activities = {activity for activity in self.activities if activity != on_gpu} or {on_cpu}
        if getattr(self, "use_device", None) == "cuda":
            self.use_device = None

    def init_autograds(self, *arguments, **named):
        named = {name: value for name, value in named.items() if name != "use_cuda"}
        if named.get("use_device") == "cuda":
            named["use_device"] = None
        begin_autograds(self, *arguments, **named)

    begin = replace_in(torch.profiler.profiler._KinetoProfile, "__init__", __init__)
    begin_autograds = replace_in(torch.autograd.profiler.profile, "__init__", init_autograds)


def _replace_attention():
    """Handles DTensors: the CPU's attention kernel has no sharding rule for them, but CUDA's has, which keeps heads
    and batches where they are. (torch/distributed/tensor/_ops/_matrix_ops.py)"""
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        return

    def scaled_dot_product_attention(query, key, value, *arguments, **named):
        if not hasattr(query, "placements") or any(place.is_shard() and place.dim > 1 for place in query.placements):
            return original(query, key, value, *arguments, **named)
        local = original(query.to_local(), key.to_local(), value.to_local(), *arguments, **named)
        return type(query).from_local(local, query.device_mesh, query.placements, run_check=False)

    original = replace_in(torch.nn.functional, "scaled_dot_product_attention", scaled_dot_product_attention)


def _replace_buckets(gpus):
    """Splits tensors by device: DDP puts the tensors of one device into common buckets
    (torch/csrc/distributed/c10d/reducer.cpp, comm.cpp), but C++ sees the devices where tensors really are."""
    import torch.distributed as dist
    broadcast, assign = dist._broadcast_coalesced, dist._compute_bucket_assignment_by_size

    def broadcast_coalesced(group, tensors, *arguments, **named):
        for indices in _by_device(tensors):
            broadcast(group, [tensors[index] for index in indices], *arguments, **named)

    def compute_bucket_assignment_by_size(tensors, limits, expect_sparse=(), indices=(), *rest):
        places = _by_device(tensors)
        if len(places) < 2 or len(indices) > 0:
            return assign(tensors, limits, expect_sparse, indices, *rest)
        buckets = []
        for own in places:
            found, sizes = assign([tensors[index] for index in own], limits, [expect_sparse[index] for index in own]
                                  if len(expect_sparse) else [], [], *rest)
            buckets.extend(([own[index] for index in bucket], size) for bucket, size in zip(found, sizes))
        buckets.sort(key=lambda bucket: min(bucket[0]))
        return [bucket for bucket, _ in buckets], [size for _, size in buckets]

    verify = dist._verify_params_across_processes

    def verify_params_across_processes(group, tensors, *arguments, **named):
        gpus.used(device_claims.claimed(tensors[0]) if len(tensors) else None)  # it makes tensors there
        return verify(group, tensors, *arguments, **named)

    dist._verify_params_across_processes = verify_params_across_processes
    dist._broadcast_coalesced = broadcast_coalesced
    dist._compute_bucket_assignment_by_size = compute_bucket_assignment_by_size


def _by_device(tensors):
    """Returns lists of indices of the tensors that claim the same device, in order of the first of each."""
    places = {}
    for index, tensor in enumerate(tensors):
        places.setdefault(device_claims.claimed(tensor), []).append(index)
    return list(places.values())


def _without_scaling():
    """Disables loss scaling, which torch 1.x does only on GPUs. A scale that is always 1 changes no call."""

    def __init__(self, *arguments, **named):
        original(self, enabled=False)

    original = replace_in(torch.cuda.amp.GradScaler, "__init__", __init__)


def _replace_default_types():
    original = torch.set_default_tensor_type

    def set_default_tensor_type(kind):
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
        if name.startswith("torch.cuda.") and hasattr(torch, "set_default_device"):
            torch.set_default_device("cuda")
        original(name.replace("torch.cuda.", "torch."))

    torch.set_default_tensor_type = set_default_tensor_type
    for name in ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool"):
        setattr(torch.cuda, f"{name}Tensor", _legacy_type(getattr(torch, f"{name}Tensor")))


def _legacy_type(kind):
    return lambda *arguments: kind(*arguments).cuda()


def _replace_generator():
    """Makes generators of GPUs draw their numbers on the CPU."""
    original = torch.Generator

    class OfAnyDevice(type):
        def __instancecheck__(cls, value):
            return isinstance(value, original)

        def __call__(cls, device="cpu"):
            device_claims.gpus().device(device)
            return original()

    class Generator(metaclass=OfAnyDevice):
        __doc__ = original.__doc__

    torch.Generator = Generator


def _replace_load(gpus):
    """Loads tensors to the CPU, with a claim to the device that map_location names."""

    def load(file, map_location=None, *arguments, **named):
        target, plain = _target_of(gpus, map_location)
        return _claim_all(original(file, plain, *arguments, **named), target)

    original = replace_in(torch, "load", load)
    torch.UntypedStorage.cuda = lambda self, *_, **__: self


def _replace_nccl(gpus):
    """Tells the script, but not torch itself, that there is NCCL. Options of its groups can be made and are ignored."""
    import torch.distributed as dist

    original = dist.is_nccl_available

    def is_nccl_available():
        caller = sys._getframe(1)
        asks_for_script = (device_claims.package_of(caller) != "torch"
                           or caller.f_globals["__name__"].startswith("torch.nn."))  # DDP, about a hook of the script's
        return gpus.count > 0 if asks_for_script else original()

    dist.is_nccl_available = is_nccl_available
    if not hasattr(dist, "ProcessGroupNCCL"):
        class Options(types.SimpleNamespace):
            def __init__(self, is_high_priority_stream=False):
                super().__init__(is_high_priority_stream=is_high_priority_stream, config=types.SimpleNamespace(),
                                 backend="nccl", global_ranks_in_group=[], group_name="")

        dist.ProcessGroupNCCL = type("ProcessGroupNCCL", (), {"Options": Options})


def _target_of(gpus, where):
    """Returns the device, or None for the unknown one that the tensors were saved from, and the map_location to load
    with."""
    if isinstance(where, dict):
        devices = [gpus.device(value) for value in where.values()]
        return (devices[0] if devices else None), "cpu"
    if isinstance(where, (str, torch.device, int)):
        target = gpus.device(where)
        return target, device_claims.real(target)
    return None, where


def _claim_all(value, target, seen=None):
    seen = set() if seen is None else seen
    if id(value) in seen:
        return value
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        device_claims.forget(value) if target is None else device_claims.claim(value, target)
    elif isinstance(value, torch.nn.Module):
        _claim_all([*value.parameters(), *value.buffers()], target, seen)
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            _claim_all(each, target, seen)
    return value


def _name_what_is_missing():
    """Replaces functions that torch.cuda calls but torch built without CUDA lacks, so that an error names the caller
    and the function."""

    def missing(name):
        if not name.startswith(("_cuda_", "_nccl_", "_accelerator_", "_cudart")):
            raise AttributeError(f"module 'torch._C' has no attribute '{name}'")

        def refuse(*_, **__):
            raise NotImplementedError(f"rollcall: the pretended GPU has no {sys._getframe(1).f_code.co_name}() ({name})")

        return refuse

    torch._C.__getattr__ = missing
