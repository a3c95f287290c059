"""A process group that writes every call down and lets another component answer it.

It is a Python subclass of c10d's ProcessGroup: calls of torch.distributed arrive as Python calls, and those of the C++
gradient reducer arrive through virtual methods, which pybind11 also sends here.
"""

import collections
import datetime
import math
import sys
import threading

import torch
import torch.distributed as dist
import torch._C._distributed_c10d as bindings
from torch._C._distributed_c10d import ProcessGroup, Work

from . import device_claims, coalesced, signals, threads
from .call_site import call_site, is_scripts_own, outside_of_recorder
from .record_file import Held

_REDUCE_OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
_C10D = ("distributed_c10d.py",)
_IS_TORCH_1 = not hasattr(ProcessGroup, "_get_backend")
_NO_BACKEND_FOR_CPU = "Tensors must be CUDA and dense" if _IS_TORCH_1 else "No backend type associated with device type cpu"
_NCCL_ERROR = getattr(dist, "DistBackendError", RuntimeError)
_SMALL = 12  # elements: in live runs, the values of tensors up to this size are recorded


def reduce_op_name(op):
    """Returns a ReduceOp's name, such as "SUM"."""
    return next((name for name in _REDUCE_OPS if op == getattr(dist.ReduceOp, name, None)), "PREMUL_SUM")


def factor_of(op):
    """Returns the factor of a PREMUL_SUM. A tensor of one element may be a factor, too. (c10d/init.cpp)"""
    state = op.__getstate__() if hasattr(op, "__getstate__") else None
    if state is None:
        raise NotImplementedError("rollcall: this PyTorch does not tell the factor of a PREMUL_SUM")
    return float(state[1])


# Backends compare the shapes of these calls' tensors, or their rows; of all others, the numbers of elements.
_SHAPED = frozenset(("all_gather", "all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor", "gather", "scatter",
                     "all_to_all", "all_to_all_single"))
# Whose tensors ProcessGroupNCCL wants to be contiguous: the one that is given, and the one that is filled.
_CONTIGUOUS_GIVEN = frozenset(("all_reduce", "broadcast", "reduce", "all_gather", "all_to_all_single"))
_CONTIGUOUS_FILLED = frozenset(("reduce_scatter", "all_to_all_single"))
_DIMENSIONS_MAX = 8  # of a recorded shape; the sizes of further dimensions are multiplied


def shapes_of(tensors):
    """Returns a list of shapes, or nothing if all tensors have one dimension."""
    if all([tensor.dim() == 1 for tensor in tensors]):
        return None
    last = _DIMENSIONS_MAX - 1
    return [list(tensor.shape) if tensor.dim() <= _DIMENSIONS_MAX
            else [*tensor.shape[:last], math.prod(tensor.shape[last:])] for tensor in tensors]


def tensors_in(value):
    """Returns the tensors of a tensor, a list, or a list of lists, as a new list."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for each in value for tensor in tensors_in(each)]


def dtype_name(tensor):
    return str(tensor.dtype).replace("torch.", "")


class Call:
    """One call, as the answering side sees it. `given` and `filled` are lists of tensors, made of what has tensors in
    it; they are the same list if nothing else is filled."""

    __slots__ = ("op", "group", "given", "filled", "reduce", "factor", "root", "peer", "tag", "splits", "wait_all_ranks", "number",
                 "handle", "timeout", "device", "aside", "is_scripts", "unpack")

    def __init__(self, op, group, given, filled=None):
        self.op, self.group, self.given = op, group, tensors_in(given)
        self.filled = self.given if filled is None else tensors_in(filled)
        self.reduce = self.factor = self.root = self.peer = self.splits = self.wait_all_ranks = self.handle = self.timeout = self.device = None
        self.unpack = None  # copies the filled tensors to the script's, if they differ
        self.tag = 0
        self.number = -1
        self.aside = None  # true if a thread other than the main one made it
        self.is_scripts = False  # the script's own line made it

    def dtype(self):
        tensors = self.given or self.filled
        return dtype_name(tensors[0]) if tensors else None

    def key(self, site):
        shapes = tuple([tensor.shape for tensor in self.given])
        filled = None if self.filled is self.given else tuple([tensor.shape for tensor in self.filled])
        return (self.op, self.group.number, shapes, filled, self.dtype(), self.reduce, self.factor, self.root, self.peer, self.tag,
                self.splits, self.wait_all_ranks, self.device, self.aside, site.key())

    def describe(self, site):
        call = {"op": self.op, "group": self.group.number}
        if self.op not in ("barrier", "monitored_barrier"):
            call["numel"] = [tensor.numel() for tensor in self.given]
            call["dtype"] = self.dtype()
            if self.filled is not self.given:
                call["out_numel"] = [tensor.numel() for tensor in self.filled]
            if self.op in _SHAPED:
                for name, shapes in (("shapes", shapes_of(self.given)), ("out_shapes", shapes_of(self.filled))):
                    if shapes is not None:
                        call[name] = shapes
        for name in ("reduce", "factor", "root", "peer", "splits", "wait_all_ranks", "timeout", "device", "aside"):
            if getattr(self, name) is not None:
                call[name] = getattr(self, name)
        if self.tag:
            call["tag"] = self.tag
        call["site"] = site.describe()
        return call


class RecordedWork(Work):
    """The Work that an asynchronous call returns. The second is_completed() waits for the call, because the
    simulator advances only when no other rank can."""

    def __init__(self, rank, call, result, held=None):
        super().__init__()
        self._rank, self._call, self._result, self._held = rank, call, result, held
        self._waited = False
        self._asked = rank.answers.are_immediate

    def wait(self, timeout=datetime.timedelta(0)):
        self._finish(self._rank.record.waits)
        return True

    def is_completed(self):
        if not self._waited and not self._asked:
            self._asked = True
            return False
        return self.wait()

    def is_success(self):
        return True

    def synchronize(self):
        self.wait()

    def result(self):
        return self._result

    def source_rank(self):
        return self._rank.answers.source_of(self._call)

    _source_rank = source_rank

    def get_future(self):
        self._finish(self._rank.record.future_taken)
        future = torch.futures.Future()
        future.set_result(self._result)
        return future

    def _finish(self, note):
        if self._waited:
            return
        with signals.put_off():
            self._waited = True
            if self._held is not None:
                self._held.is_waited = True
            is_alone = not threads.others()
            if self._call.handle is not None:
                (note if is_alone else self._rank.record.begins_to_wait)(self._call.handle)
            self._rank.touches.end(self._call)
            self._rank.answers.finish(self._call)
            if self._call.handle is not None and not is_alone:
                note(self._call.handle)  # calls of other threads in the meantime come before it
            if self._rank.kernels is not None:
                self._call.group.forget(self)


class CoalescedWork(Work):
    """The Work that _end_coalescing returns: all calls since _start_coalescing."""

    def __init__(self, works):
        super().__init__()
        self._works = works

    def wait(self, timeout=datetime.timedelta(0)):
        return all([work.wait(timeout) for work in self._works])


class RecordingGroup(ProcessGroup):
    """`number`: the group's number in the record. `ranks`: the members' global ranks, in the group's order.
    `backend`: the one that the script asked for, or of several the one of the device in use. `devices`: those that its
    tensors may be on."""

    supports_coalescing = supports_time_estimate = supports_shrinking = False
    supports_reconfigure = supports_window = supports_tensor_alloc = False
    bound_device_id = None  # the device_id that the job was initialized with

    def __init__(self, rank, number, ranks, group_rank, size, backend="gloo", devices=("cpu", "cuda")):
        super().__init__(group_rank, size)
        self._of = rank
        self.number = number
        self.ranks = ranks
        self.backend = backend
        self.devices = devices
        self._name = self._description = "undefined"
        # C++ keeps the base object of a Work alive, but not the attributes that Python adds to it.
        self._recent = collections.deque(maxlen=4096)
        self._coalesced = None  # the calls since _start_coalescing

    def getBackendName(self):
        return "rollcall"

    name = getBackendName

    def __repr__(self):
        """Without an address, so that equal runs say equal things."""
        return f"<ProcessGroup {self.number} of {self.size()} ranks>"

    # torch 2 looks groups up by name, from C++ as well. (ProcessGroup.hpp)

    def getGroupName(self):
        return self._name

    def setGroupName(self, name):
        self._name = name

    def getGroupDesc(self):
        return self._description

    def setGroupDesc(self, description):
        self._description = description

    @property
    def _device_types(self):
        return [torch.device(name) for name in self.devices]

    def _get_backend(self, device):
        """The group is its only backend."""
        kind = torch.device(device).type
        if torch.device(kind) not in self._device_types:
            raise RuntimeError(f"No backend type associated with device type {kind}")
        return self

    get_backend = _get_backend

    def _get_backend_name(self):
        return self.backend

    @property
    def supports_splitting(self):
        return self.backend == "nccl"

    def shutdown(self, *_, **__):
        """Does nothing: there are no connections to make, to wait for, or to end."""

    abort = _wait_for_pending_works = _set_sequence_number_for_group = shutdown
    eager_connect_single_device = perform_nocolor_split = shutdown

    def _get_sequence_number_for_group(self):
        return 0

    def _has_hooks(self):
        return False

    def _start_coalescing(self, *_):
        if self.backend == "gloo" and not _IS_TORCH_1:  # where it does nothing
            raise RuntimeError("Backend gloo does not implement startCoalescing")
        self._coalesced = []

    def _end_coalescing(self, *_):
        works, self._coalesced = self._coalesced, None
        return CoalescedWork(works)

    def global_rank(self, group_rank):
        return self.ranks[group_rank]

    def _issue(self, call, opts, result=None, peer=None):
        """Writes the call down and has it answered."""
        with signals.put_off():
            is_blocking = self._note(call, opts, peer)
            held = self.held(call)
            work = RecordedWork(self._of, call, call.filled if result is None else result, held)
            self._of.start(call, is_blocking)
            if held is None:
                self._recent.append(work)
            if self._coalesced is not None:
                self._coalesced.append(work)
            return work

    def held(self, call):
        """Returns what the Work of a message on Gloo holds; None for other calls."""
        if self.backend != "gloo" or call.op not in ("send", "recv"):
            return None
        held = Held(self._of.record) if self._of.batch is None else self._of.batch_held
        held.calls.append(call)
        return held

    def forget(self, work):
        """Drops a completed Work. The tensors that it still held would count as the rank's GPU memory."""
        if work in self._recent:
            self._recent.remove(work)

    def _issue_in_place(self, op, tensors, opts):
        tensors = tensors_in(tensors)
        memory = tensors if self.backend != "gloo" else [_from_first_element(tensor) for tensor in tensors]
        return self._issue(Call(op, self, memory), opts, tensors)

    def _note(self, call, opts, peer):
        """Writes the call down. Returns whether it blocks."""
        rank, caller = self._of, outside_of_recorder(sys._getframe())
        rank.refuse_in_child()
        if any(tensor.layout is not torch.strided for tensor in (*call.given, *call.filled)):
            raise NotImplementedError(f"rollcall: {call.op} of sparse tensors cannot be recorded")
        self._check(call, getattr(opts, "rootRank", None), peer)
        if hasattr(opts, "reduceOp"):
            call.reduce = reduce_op_name(opts.reduceOp)
            if call.reduce == "PREMUL_SUM":
                call.factor = factor_of(opts.reduceOp)
        if hasattr(opts, "rootRank"):
            call.root = self.global_rank(opts.rootRank)
        if peer is not None:
            call.peer = self.global_rank(peer)
        self._check_devices(call)
        self._check_strides(call)
        if any(tensor.is_meta for tensor in (*call.given, *call.filled)):
            call.device = "meta"
        site = call_site(caller, call.dtype())
        is_blocking = blocks(caller)
        call.is_scripts = not is_blocking and is_scripts_own(caller)
        if rank.touches.is_watching() and (call.is_scripts or is_scripts_own(caller)):
            rank.touches.call(call, site)
        rank.is_called_by(threading.get_ident())
        call.aside = True if threading.current_thread() is not threading.main_thread() else None
        if is_blocking and rank.answers is not None and threads.others():
            is_blocking = False  # another thread's call may come before it ends, so its end is a separate event
        call.number = rank.record.call_number(call.key(site), lambda: call.describe(site))
        if rank.batch is None or call.op not in ("send", "recv"):
            call.handle = None if is_blocking else rank.record.new_handle()
            rank.record.issued(call.number, call.handle, rank.values_of(call, _SMALL))
        return is_blocking

    def _check(self, call, root, peer):
        """Raises the errors that every backend raises. (ProcessGroupGloo.cpp has their texts)"""
        if call.tag < 0:
            raise RuntimeError("Tag must be nonnegative")
        if root is not None and not 0 <= root < len(self.ranks):
            if self.backend == "nccl" and call.op in ("broadcast", "reduce"):
                raise _NCCL_ERROR(f"NCCL error: invalid argument. {call.op.capitalize()} : invalid root {root} (root "
                                  f"should be in the 0..{len(self.ranks)} range)")
            function = "ProcessGroupGloo::" if self.backend == "gloo" else ""
            raise RuntimeError(f"{function}{call.op}: invalid root rank: {root}")
        if peer is not None and not 0 <= peer < len(self.ranks):
            raise IndexError(f"vector::_M_range_check: __n (which is {peer % 2 ** 64}) >= this->size() (which is "
                             f"{len(self.ranks)})")

    def _check_devices(self, call):
        """Raises an error for CPU tensors, which NCCL does not support, and sets the call's device if a tensor is on
        another GPU than the rank's own. A group with a backend for the CPU as well takes them."""
        gpus = device_claims.gpus()
        if gpus is None or self.backend != "nccl":
            return
        for tensor in (*call.given, *call.filled):
            place = device_claims.claimed(tensor)
            gpus.used(place)
            place = place or gpus.last_used
            if place is None:
                continue
            if place.type == "cpu" and "cpu" not in self.devices:
                raise RuntimeError(_NO_BACKEND_FOR_CPU)
            if place.type == "cuda" and place.index != self._of.local_rank:
                call.device = str(place)

    def _check_strides(self, call):
        """Raises the errors for tensors that are not contiguous. (ProcessGroupGloo.cpp, checkSingleTensor, and
        ProcessGroupNCCL.cpp, check_gpu_single_tensor, which lets messages through)"""
        if self.backend == "gloo" and call.op in ("send", "recv"):
            if not all([tensor.is_contiguous() for tensor in call.given]):
                raise RuntimeError("input tensor has to be contiguous")
        elif self.backend == "nccl":
            ends = (call.given if call.op in _CONTIGUOUS_GIVEN else []) + (call.filled if call.op in _CONTIGUOUS_FILLED else [])
            if not all([_is_dense(tensor) for tensor in ends]):
                raise (RuntimeError if _IS_TORCH_1 else ValueError)("Tensors must be contiguous")

    # As in C++, a tensor may be given instead of a list of one, and a reduce op or a root instead
    # of options.

    def allreduce(self, tensors, opts=None, op=None):
        return self._issue_in_place("all_reduce", tensors, _options(bindings.AllreduceOptions, opts, op=op))

    def allreduce_coalesced(self, tensors, opts=None):
        options = _options(bindings.AllreduceCoalescedOptions, opts)
        return self._issue(Call("all_reduce_coalesced", self, tensors), options)

    def broadcast(self, tensors, opts=None, root=None):
        return self._issue_in_place("broadcast", tensors, _options(bindings.BroadcastOptions, opts, root=root))

    def reduce(self, tensors, opts=None, op=None, root=None):
        return self._issue_in_place("reduce", tensors, _options(bindings.ReduceOptions, opts, op=op, root=root))

    def allgather(self, outputs, inputs, opts=None):
        return self._issue(Call("all_gather", self, inputs, outputs), opts, outputs)

    def allgather_coalesced(self, outputs, inputs, opts=None):
        return self._issue(Call("all_gather_coalesced", self, inputs, outputs), opts, outputs)

    def _allgather_base(self, output, given, opts=None):
        return self._issue(Call("all_gather_into_tensor", self, given, output), opts)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        call = coalesced.all_gather(Call("all_gather_into_tensor", self, inputs, outputs))
        return self._issue(call, opts, list(outputs))

    def gather(self, outputs, inputs, opts=None, root=None):
        options = _options(bindings.GatherOptions, opts, root=root)
        return self._issue(Call("gather", self, inputs, outputs), options, outputs)

    def scatter(self, outputs, inputs, opts=None, root=None):
        options = _options(bindings.ScatterOptions, opts, root=root)
        return self._issue(Call("scatter", self, inputs, outputs), options)

    def reduce_scatter(self, outputs, inputs, opts=None, op=None):
        options = _options(bindings.ReduceScatterOptions, opts, op=op)
        return self._issue(Call("reduce_scatter", self, inputs, outputs), options)

    def gather_single(self, output, given, opts=None):
        if self.backend == "gloo":
            raise RuntimeError("Backend gloo does not support gather_single")
        filled = output if isinstance(output, (torch.Tensor, list)) else []
        return self._issue(Call("gather_single", self, given, filled), _options(bindings.GatherOptions, opts))

    def _reduce_scatter_base(self, output, given, opts=None):
        options = _options(bindings.ReduceScatterOptions, opts)
        return self._issue(Call("reduce_scatter_tensor", self, given, output), options)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        call = coalesced.reduce_scatter(Call("reduce_scatter_tensor", self, inputs, outputs))
        return self._issue(call, _options(bindings.ReduceScatterOptions, opts), list(outputs))

    def alltoall(self, outputs, inputs, opts=None):
        return self._issue(Call("all_to_all", self, inputs, outputs), opts)

    def alltoall_base(self, output, given, output_splits, input_splits, opts=None):
        call = Call("all_to_all_single", self, given, output)
        if output_splits or input_splits:
            call.splits = (tuple(output_splits), tuple(input_splits))
        return self._issue(call, opts)

    # The names in torch 2.14. (torch/distributed/distributed_c10d.py)
    all_gather_single, all_gather_single_coalesced = _allgather_base, allgather_into_tensor_coalesced
    reduce_scatter_single, reduce_scatter_single_coalesced = _reduce_scatter_base, reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base

    def barrier(self, opts=None):
        return self._issue(Call("barrier", self, []), opts)

    def _is_of_gloo_beside_nccl(self):
        return self.backend == "gloo" and "nccl" in (self._of.backend or "")

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        if self._is_of_gloo_beside_nccl():  # the job is simulated on NCCL, where a barrier waits for the same ranks
            self._issue(Call("barrier", self, []), None)
            return
        call = Call("monitored_barrier", self, [])
        call.wait_all_ranks = bool(wait_all_ranks)
        if timeout is not None and timeout.total_seconds() > 0:
            call.timeout = timeout.total_seconds()
        self._issue(call, None)

    def send(self, tensors, destination, tag):
        call = Call("send", self, tensors, [])
        call.tag = tag
        return self._issue(call, None, peer=destination)

    def recv(self, tensors, source, tag):
        call = Call("recv", self, tensors)
        call.tag = tag
        return self._issue(call, None, peer=source)

    def recv_anysource(self, tensors, tag):
        if self._is_of_gloo_beside_nccl():
            raise NotImplementedError(
                "rollcall: a receive from any source on a Gloo group of an NCCL job cannot be recorded; name the source")
        call = Call("recv", self, tensors)
        call.tag = tag
        return self._issue(call, None)


def _is_dense(tensor):
    """True if NCCL takes the tensor as one piece: contiguous, or channels last."""
    return tensor.is_contiguous() or (tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)) or (
        tensor.dim() == 5 and tensor.is_contiguous(memory_format=torch.channels_last_3d))


def _from_first_element(tensor):
    """Returns the memory that Gloo uses: as many elements as the tensor has, from its first one on, whatever its
    strides. (ProcessGroupGloo.cpp, getDataPointers)"""
    if tensor.layout is not torch.strided or tensor.is_contiguous():
        return tensor
    return tensor.detach().as_strided((tensor.numel(),), (1,), tensor.storage_offset())


def _options(kind, given, op=None, root=None):
    """Returns the options of a call, which may be given as options, as a reduce op, as a root, or not at all."""
    if isinstance(given, kind):
        return given
    options = kind()
    if isinstance(given, int):
        root = given
    elif given is not None:
        op = given
    if op is not None:
        options.reduceOp = op
    if root is not None:
        options.rootRank = root
    return options


def blocks(caller):
    """True if `caller`, a function of torch.distributed, waits before it returns. Calls from C++ do not."""
    if caller is None:
        return False
    code = caller.f_code
    if not code.co_filename.endswith(_C10D):
        return code.co_name == "monitored_barrier"
    if code.co_name in ("send", "recv", "monitored_barrier"):
        return True
    return caller.f_locals.get("async_op") is False
