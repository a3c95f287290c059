"""Records what a rank's GPU computes between its calls: the operations of torch, summed up by kind and dtype.

Every operation of the script, of autograd, and of libraries is examined (operators.py), but not those of the recorder.
The operations between two calls of torch.distributed are written down before the second call, one line per sum:

    {"kernel": 0, "kind": "matmul", "dtype": "bfloat16", "flops": 8192, "bytes": 512, "phase": "backward",
     "count": 3}, and "time_ns" if the times of all of them were measured (measured.py)
    ["k", 0]

Work on a stream other than the default one is preceded by ["s", stream]. ["e", event, stream] records an event on a
stream, ["v", event, stream] makes the stream wait for it, and ["y", awaited, stream] makes it wait for another stream.

A sum has operations of one kind, dtype, phase, and approximate intensity (operations per byte), so it takes as long as
its operations one after the other. `phase` is "forward", "backward", or "optimizer"; everything that is neither of the
last two is "forward".
"""

import functools
import itertools
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import device_claims, memory, touches
from .device_claims import tensors_among
from .operators import operator_of

_NO_DISPATCH = torch.Tensor.__torch_dispatch__
_TRANSFERS = frozenset(("_to_copy", "copy_"))
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"


class Kernels:
    """The operations of one rank. `memory`: the memory that its tensors take. `measured`: measured times of
    operations, or None."""

    def __init__(self, record, measured=None):
        self._record, self._measured = record, measured
        self._sums = {}  # by kind, dtype (of those with operations) and intensity: [flops, bytes, kernels, ns]
        self._backwards = 0  # the number of running backwards, and of those that have ended
        self._ended = 0
        self._copies = []  # of parameters in lower precision, kept until backward ends
        self._stream = self._said = 0  # the current stream, and the last one in the record
        self._marks = set()  # the numbers of events
        self._in_step = False
        self._autocast = None  # its dtype
        self._on_gpu = False  # work before the script put a tensor on a GPU is not the GPU's work
        self._phase = FORWARD
        self.memory = memory.Memory()

    def install(self):
        """Starts to see this process's operations."""
        device_claims.computed = self.computed
        device_claims.queue = self
        self._record.before_event = self._before_call
        self._watch_backward()
        self._watch_autocast()
        self._watch_buffers()
        _Mode(self).__enter__()

    def end(self):
        self.flush()
        used = self.memory.describe()
        if used is not None:
            self._record.say({"memory": used})

    def stepped(self, optimizer):
        """Called when an optimizer's step has ended."""
        self._in_step = False
        self._enter_phase()
        with torch._C.DisableTorchFunction(), touches.of_recorder():
            self.memory.mark_optimizer(optimizer)

    def communicates(self, tensors):
        with torch._C.DisableTorchFunction(), touches.of_recorder():
            self.memory.mark([tensor for tensor in tensors if not _is_elsewhere(tensor)], memory.COMMUNICATION)

    def flush(self):
        """Writes the operations so far, before the record's next line."""
        sums, self._sums = self._sums, {}
        if sums:
            self._say_stream()
        for (kind, dtype, _), (flops, size, count, time) in sums.items():
            counted = {"dtype": dtype, "flops": flops} if flops else {}
            timed = {"time_ns": round(time)} if time else {}
            self._record.kernel({"kind": kind, **counted, "bytes": size, "phase": self._phase, "count": count, **timed})

    def _before_call(self):
        self.flush()
        self._say_stream()

    # ---- Streams, by number: 0 is the default one ----

    def enters(self, stream):
        if stream != self._stream:
            self.flush()
            self._stream = stream

    def _say_stream(self):
        if self._said != self._stream:
            self._said = self._stream
            self._record.say(["s", self._stream])

    def recorded(self, mark, stream):
        """Returns the event's mark. Numbers are reused so that iterations look alike."""
        self.flush()
        mark = mark or _Mark(self._marks)
        mark.stream = stream
        self._record.say(["e", mark.number, stream])
        return mark

    def waits_for(self, mark, stream):
        if mark is not None and mark.stream != stream:  # an event that was never recorded counts as having happened
            self.flush()
            self._record.say(["v", mark.number, stream])

    def waits_for_stream(self, awaited, stream):
        if awaited != stream:
            self.flush()
            self._record.say(["y", awaited, stream])

    def _enter_phase(self):
        phase = OPTIMIZER if self._in_step else BACKWARD if self._backwards else FORWARD
        if phase != self._phase:
            self.flush()
            self._phase = phase

    def _watch_backward(self):
        """Wraps the engine at the name by which torch.autograd calls it, whatever starts the backward pass."""
        kernels = self
        engine = torch.autograd.Variable._execution_engine

        class Engine:
            def run_backward(self, *arguments, **named):
                kernels._backwards += 1
                kernels._enter_phase()
                try:
                    return engine.run_backward(*arguments, **named)
                finally:
                    kernels._backwards -= 1
                    kernels._end_backward()

            def __getattr__(self, name):
                return getattr(engine, name)

        torch.autograd.Variable._execution_engine = Engine()

    def _end_backward(self):
        if self._backwards:
            return
        self._enter_phase()
        self._ended += 1
        with torch._C.DisableTorchFunction(), touches.of_recorder():
            self.memory.mark_gradients()
            for copy in self._copies:
                self.memory.release(copy)
        self._copies.clear()

    def _watch_autocast(self):
        kernels, kind = self, torch.autocast

        def settled(method):
            @functools.wraps(method)
            def change(context, *arguments):
                try:
                    return method(context, *arguments)
                finally:
                    kernels._autocast = _autocast_dtype()

            return change

        kind.__enter__, kind.__exit__ = settled(kind.__enter__), settled(kind.__exit__)

    def _watch_buffers(self):
        def look(module, _):
            buffers = [buffer for buffer in module._buffers.values() if buffer is not None and not _is_elsewhere(buffer)]
            if buffers:
                with torch._C.DisableTorchFunction(), touches.of_recorder():
                    self.memory.mark(buffers, memory.BUFFERS)

        torch.nn.modules.module.register_module_forward_pre_hook(look)

    # ---- Operations ----

    def computed(self, function, arguments, named, result, place):
        """Called when the script has computed a result. `place`: the device of the result, or None if unknown."""
        if touches.is_of_recorder():
            return
        operator = operator_of(function)
        if operator.is_free and arguments and isinstance(arguments[0], str):
            self._in_step = self._in_step or arguments[0].startswith("Optimizer.step#")  # record_function's name
            self._enter_phase()
            return
        with torch._C.DisableTorchFunction():
            if device_claims.is_in_use() and not self._on_gpu:
                self._on_gpu = True
                self._sums.clear()
                self.memory.clear()
            operands = [(tensor, self.memory.find(tensor), index in operator.written)
                        for index, value in enumerate((*arguments, *named.values()))
                        for tensor in tensors_among(value) if not _is_elsewhere(tensor) and not tensor.is_meta]
            for tensor, _, _ in operands:
                if type(tensor) is not torch.Tensor and isinstance(tensor, torch.nn.Parameter):
                    self.memory.is_parameter(tensor)
            is_elsewhere = place.type != "cuda" if place is not None else self._on_gpu and not operands
            if not operator.is_view and not is_elsewhere:
                self._note(operator, arguments, named, result, [row for row in operands if row[1] is not None])

    def _note(self, operator, arguments, named, result, operands):
        narrow = self._precision(operator, operands)
        made = [(tensor, self.memory.find(tensor, narrow)) for tensor in tensors_among(result) if not tensor.is_meta]
        made = [row for row in made if row[1] is not None]
        is_transfer = operator.name in _TRANSFERS and any(
            _is_elsewhere(tensor) for tensor in tensors_among(*arguments))
        if operator.is_free or is_transfer:
            return
        if narrow is not None and operator.is_narrow:
            for _, held in made:
                held.narrow = narrow
        size = self._bytes(operator, operands, made)
        if size > 0:
            first, held = made[0] if made else operands[0][:2]
            dtype = narrow if operator.is_narrow and narrow is not None else _dtype(first, held)
            time = self._measured.time_of(operator, arguments, named) if self._measured is not None else None
            self._add(operator.kind, dtype, operator.flops(arguments, named, result), size, time)

    def _add(self, kind, dtype, flops, size, time=None):
        """`time`: measured nanoseconds, or None."""
        name = _name_of(dtype, kind) if flops else None
        key = kind, name, "measured" if time is not None else (flops // size).bit_length() // 2 if flops else -1
        row = self._sums.setdefault(key, [0, 0, 0, 0])
        row[0] += flops
        row[1] += size
        row[2] += 1
        row[3] += time or 0

    # ---- Precision: autocast changes no dtype here, but would on a GPU ----

    def _precision(self, operator, operands):
        """Returns the dtype that the float32 results would have on a GPU, or None for their own. In backward,
        operations on tensors that autocast had taken in lower precision have that precision, too."""
        wanted = self._autocast
        own = [(tensor, held) for tensor, held, _ in operands if tensor.dtype == torch.float32 and tensor.dim() > 0]
        if wanted is not None and operator.is_narrow:
            for tensor, held in own:
                self._cast(tensor, held, wanted)
            return wanted if own else None
        if wanted is not None and operator.is_wide:
            return None
        if operator.is_narrow:
            return next((held.narrow for _, held in own if held.narrow is not None), None)
        dtypes = {held.dtype for _, held in own}
        return dtypes.pop() if len(dtypes) == 1 else None

    def _cast(self, tensor, held, dtype):
        """Counts the copy of the operand to lower precision; a parameter is copied once until its backward."""
        held.narrow = dtype
        if held.dtype is not None or held.cast == self._ended:
            return
        held.cast = self._ended
        count = _elements(tensor)
        self._add("elementwise", dtype, 0, count * (4 + _size_of(dtype)))
        if held.part == memory.PARAMETERS:
            self._copies.append(self.memory.hold(count * _size_of(dtype)))

    # ---- Bytes ----

    def _bytes(self, operator, operands, made):
        """Returns the number of bytes read and written."""
        limit = math.inf
        if operator.chooses:
            values = [tensor for tensor, _, _ in operands if tensor.is_floating_point()]
            limit = min((tensor.numel() for tensor in [*values, *[tensor for tensor, _ in made]]), default=limit)
        total = 0
        for tensor, held, is_written in operands:
            times = 2 if is_written and not operator.overwrites else 1
            dtype = held.narrow if operator.is_narrow and tensor.dtype == torch.float32 else None
            total += times * min(_elements(tensor), limit) * _size_of(dtype or _dtype(tensor, held))
        known = {id(held) for _, held, _ in operands}
        return total + sum(_elements(tensor) * _size_of(_dtype(tensor, held)) for tensor, held in made if id(held) not in known)


class _Mark:
    """An event's number, which is released when the event is gone."""

    def __init__(self, taken):
        self._taken = taken
        self.number = next(number for number in itertools.count() if number not in taken)
        self.stream = None
        taken.add(self.number)

    def __del__(self):
        self._taken.discard(self.number)


class _Mode(TorchDispatchMode):
    """Sees the operations of a script that uses no pretended GPU."""

    supports_higher_order_operators = True

    def __init__(self, kernels):
        super().__init__()
        self._kernels = kernels

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        named = named or {}
        if any(getattr(kind, "__torch_dispatch__", None) is not _NO_DISPATCH for kind in types):
            if any(kind.__name__ == "FakeTensor" for kind in types):
                return function(*arguments, **named)  # it has no values and no memory
            return NotImplemented  # the subclass turns it into ordinary operations
        result = function(*arguments, **named)
        if not device_claims.is_in_use():
            self._kernels.computed(function, arguments, named, result, None)
        return result


def _autocast_dtype():
    """Returns autocast's dtype on a GPU, or None outside of autocast. Operations do not see it, because it has been
    handled before they run."""
    if hasattr(torch, "get_autocast_dtype"):
        return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def _name_of(dtype, kind):
    """Returns the dtype that a GPU multiplies in: "tf32" where float32 may be rounded to it."""
    if dtype == torch.float32:
        if kind == "convolution":
            return "tf32" if torch.backends.cudnn.allow_tf32 else "float32"
        return "float32" if kind != "matmul" or torch.get_float32_matmul_precision() == "highest" else "tf32"
    return str(dtype).replace("torch.", "")


def _is_elsewhere(tensor):
    """True if the tensor is on the CPU while others are on GPUs."""
    if not device_claims.is_in_use():
        return False
    place = device_claims.claimed(tensor)
    return place is not None and place.type != "cuda"


def _dtype(tensor, held):
    """Returns the dtype of the tensor's elements on a GPU."""
    return held.dtype if held.dtype is not None and tensor.dtype == torch.float32 else tensor.dtype


def _elements(tensor):
    """Returns the number of elements in memory: expanded dimensions are read once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        if stride != 0:
            count *= size
    return count if tensor.numel() else 0


@functools.lru_cache(maxsize=None)
def _size_of(dtype):
    return torch.empty((), dtype=dtype).element_size()
