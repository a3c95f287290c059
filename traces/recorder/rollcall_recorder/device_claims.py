"""Tracks which device a tensor claims to be on, where GPUs are pretended.

Every tensor lives on the CPU, so its values are real. A tensor that the script has put on a GPU carries the device that
it would be on: a claim. `tensor.device` returns it, results computed from the tensor inherit it, and operations that
mix devices raise the errors that torch raises. Two modes keep claims:

    a function mode     sees Python's calls, with the requested device ("cuda", 1, torch.device("cuda:0"))
    a dispatch mode     sees every tensor operation, including those of autograd and libraries, from the first claim on

A tensor that C++ makes for itself, such as a bucket of gradients, has no claim: it is compatible with all others, and
reports the current GPU as its device, or during backward that of the last call.
"""

import contextlib
import functools
import sys
import threading

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .replacing import replace_in

_CLAIM = "_rollcall_device"
_CPU, _META = torch.device("cpu"), torch.device("meta")
_BASE = torch.Tensor.__mro__[1]  # where C++ defines the attributes of torch.Tensor
_REAL_DEVICE = _BASE.device

# Operations that accept tensors on several devices. (aten/src/ATen/native: Copy.cpp, TensorAdvancedIndexing.cpp,
# RNN.cpp, LossCTC.cpp)
_MIXING = frozenset(("copy_", "_to_copy", "index", "index_put_", "index_put", "_index_put_impl_",
                     "_unsafe_index", "set_", "resize_as_", "_pack_padded_sequence", "_ctc_loss",
                     "ctc_loss", "_has_compatible_shallow_copy_type", "_local_scalar_dense"))
_TYPE_NAMES = {torch.float32: "Float", torch.float64: "Double", torch.float16: "Half", torch.bfloat16: "BFloat16",
               torch.uint8: "Byte", torch.int8: "Char", torch.int16: "Short", torch.int32: "Int", torch.int64: "Long",
               torch.bool: "Bool"}


_OURS = __name__.partition(".")[0]


def package_of(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0]


class _Now(threading.local):
    """The state of one thread."""

    current = 0  # the current device
    asked = None  # the device that the running function asked for
    tensor = None  # the tensor that it moves
    is_backward = False  # gradients are where the forward pass has put them, so devices are not checked


class Gpus:
    """The GPUs that are pretended: how many, and which one is current in this thread."""

    def __init__(self, count):
        self._count = count
        self.announce = None  # called when the script first asks for one
        self.begin_again = None  # called instead of going on if that is too late
        self.is_too_late = False  # the job has begun, on a backend that depends on whether there are GPUs
        self.was_asked_for = False
        self.is_used = False  # a tensor has been put on one
        self.last_used = None  # by a call: where tensors are that C++ makes for calls, such as DDP's buckets
        self.now = _Now()

    @property
    def count(self):
        return self._count()

    @property
    def current(self):
        return self.now.current

    @current.setter
    def current(self, index):
        self.now.current = self.checked(index)

    def checked(self, index):
        if not 0 <= index < self.count:
            raise RuntimeError(f"CUDA error: invalid device ordinal (this is cuda:{index} of {self.count} pretended devices)")
        return index

    def used(self, place):
        """Notes where a call's tensor is, if that is known, and a GPU."""
        if place is not None and place.type == "cuda":
            self.last_used = place

    def asked_for(self):
        """Notes that the script asks for a GPU."""
        if not self.was_asked_for:
            self.was_asked_for = True
            if self.announce is not None:
                self.announce()
            if self.is_too_late and self.begin_again is not None:
                self.begin_again()

    def asked_for_by(self, caller):
        """Does the same, unless torch itself asks, perhaps through another function of ours."""
        while caller is not None and package_of(caller) == _OURS:
            caller = caller.f_back
        if caller is None or package_of(caller) != "torch":
            self.asked_for()

    def is_moving(self, tensor):
        """True if the tensor is being moved. The function mode sees our torch.Tensor.to only after it has called
        into C++."""
        return self.now.tensor is tensor

    def while_asked_for(self, device, function, arguments, named, tensor=None):
        before = self.now.asked, self.now.tensor
        self.now.asked, self.now.tensor = device, tensor
        try:
            return function(*arguments, **named)
        finally:
            self.now.asked, self.now.tensor = before

    @contextlib.contextmanager
    def in_backward(self):
        before, self.now.is_backward = self.now.is_backward, True
        try:
            yield
        finally:
            self.now.is_backward = before

    def device(self, asked, caller=None):
        """Returns the device that the script means: 1, "cuda", and torch.device("cuda", 1) may be the same. None
        stays None. `caller`: who asks, if it may be torch itself."""
        if asked is None:
            return None
        if isinstance(asked, int) and not isinstance(asked, bool):
            asked = _raw_device("cuda", asked)
        elif not isinstance(asked, torch.device):
            asked = _raw_device(asked)
        if asked.type != "cuda":
            return _CPU if asked.type == "cpu" else asked  # "cpu:0" is where other tensors of the CPU are, too
        self.asked_for_by(caller)
        return _raw_device("cuda", self.current if asked.index is None else self.checked(asked.index))


queue = None  # told which stream work is on, by enters(), recorded(), waits_for(), and waits_for_stream()
_gpus = None
_raw_device = torch.device


def real(device):
    """Returns the device that memory for `device` really comes from."""
    return _CPU if device is not None and device.type == "cuda" else device


def claimed(tensor):
    """Returns the device that the tensor claims, or None."""
    return tensor.__dict__.get(_CLAIM)


def claim(tensor, device):
    """Sets the tensor's claim, and returns the tensor."""
    tensor.__dict__[_CLAIM] = device
    if device.type == "cuda" and not _gpus.is_used:
        _gpus.is_used = True
        _modes.dispatch_too()
    return tensor


def forget(tensor):
    """Removes the tensor's claim."""
    tensor.__dict__.pop(_CLAIM, None)


def gpus():
    """Returns the pretended GPUs, or None."""
    return _gpus


def is_in_use():
    """True if this module sees every operation."""
    return _gpus is not None and _gpus.is_used


def look(function, arguments, named):
    """Replaced by another module that wants to see operations before they run."""


def computed(function, arguments, named, result, place):
    """The same, after the operation. `place`: the device of the result, or None if unknown."""


def install(pretended):
    """Pretends GPUs from now on, in all threads."""
    global _gpus
    _gpus = pretended
    _replace_attributes()
    _replace_conversions()
    _replace_state()
    _replace_engine()
    _modes.enter()
    _replace_threads()


class _Modes(threading.local):
    """The modes of one thread, which are never exited."""

    _function = _dispatch = None

    def enter(self):
        if self._function is None:
            self._function = _FunctionMode()
            self._function.__enter__()
        if _gpus.is_used:
            self.dispatch_too()

    @contextlib.contextmanager
    def again(self):
        """Enters the function mode inside a function that it has been told of: torch leaves it meanwhile."""
        if self._function is None or torch._C._len_torch_function_stack() > 0:
            yield  # it is on the stack, or nobody pretends in this thread
        else:
            with self._function:
                yield

    def dispatch_too(self):
        if self._dispatch is None:
            self._dispatch = _DispatchMode()
            self._dispatch.__enter__()


_modes = _Modes()


def _replace_engine():
    """Hooks and recomputations of a backward pass belong to the script, too. Since torch 2, autograd.backward and grad
    are functions that a mode is told of, and that run without it. (torch/autograd/graph.py)"""
    graph = getattr(torch.autograd, "graph", None)
    original = getattr(graph, "_engine_run_backward", None)
    if original is None:
        return

    @functools.wraps(original)
    def run(*arguments, **named):
        with _modes.again(), _gpus.in_backward():
            return original(*arguments, **named)

    for module in (graph, torch.autograd):
        module._engine_run_backward = run


def _replace_threads():
    run = threading.Thread.run

    def run_with_modes(self):
        _modes.enter()
        run(self)

    threading.Thread.run = run_with_modes


class _FunctionMode(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), named=None):
        named = named or {}
        if isinstance(function, torch._ops.OpOverload) or (
                arguments and _gpus.is_moving(arguments[0])):
            return function(*arguments, **named)  # the device of the result is already known
        if function is torch.Tensor.backward:
            with self, _gpus.in_backward():  # hooks and recomputations belong to the script, too
                return _backward(*arguments, **named)
        if function is _raw_device:
            return _make_device(arguments, named)
        wanted = None
        asked = named["device"] if named.get("device") is not None else _default_device(function)
        if "pin_memory" in named:  # that takes a GPU
            named = {name: each for name, each in named.items() if name != "pin_memory"}
        if asked is not None:
            wanted = _gpus.device(asked)
            if function in _FROM_TENSORS and arguments and isinstance(arguments[0], torch.Tensor):
                return arguments[0].to(wanted, named.get("dtype"))
            named = {**named, "device": real(wanted)}
        result = _gpus.while_asked_for(wanted, function, arguments, named)
        if isinstance(result, torch.Tensor):
            if wanted is not None:
                claim(result, wanted)
            elif _CLAIM not in result.__dict__ and (
                    not _gpus.is_used or not _has_tensor((*arguments, *named.values()))):
                result.__dict__[_CLAIM] = _META if result.is_meta else _CPU
        return result


def _default_device(function):
    """Returns the device of torch.set_default_device() or `with torch.device(...)` in this thread, or None if there is
    none or the function ignores it. Torch sees a call only after our mode. (torch/utils/_device.py)"""
    module = sys.modules.get("torch.utils._device")  # since torch 2.0
    device = getattr(module, "CURRENT_DEVICE", None)
    if device is None or torch._C._len_torch_function_stack() == 0:  # threads share the device, but not its mode
        return None
    return device if function in module._device_constructors() else None


_FROM_TENSORS = frozenset(getattr(torch, name) for name in ("as_tensor", "asarray") if hasattr(torch, name))


def _backward(tensor, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    return torch.autograd.backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)


def _make_device(arguments, named):
    """Handles torch.device(1), which needs a real GPU; torch.device("cuda") does not."""
    first = arguments[0] if arguments else named.get("device", named.get("type"))
    if isinstance(first, int) and not isinstance(first, bool):
        return _gpus.device(first)
    return _raw_device(*arguments, **named)


def _has_tensor(values):
    return any(isinstance(value, torch.Tensor) or (isinstance(value, (list, tuple)) and _has_tensor(value))
               for value in values)


class _DispatchMode(TorchDispatchMode):
    supports_higher_order_operators = True

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        named = named or {}
        if not isinstance(function, torch._ops.OpOverload):
            function, arguments = _inner(function, arguments)
        if any(getattr(kind, "__torch_dispatch__", None) is not _NO_DISPATCH for kind in types):
            if any(kind.__name__ == "FakeTensor" for kind in types):
                return function(*arguments, **named)  # it has a device but no values
            return NotImplemented  # the subclass turns it into ordinary operations
        look(function, arguments, named)
        place, arguments, named = _place_of_results(function, arguments, named)
        result = function(*arguments, **named)
        if place is not None:
            for tensor in tensors_among(result):
                tensor.__dict__.setdefault(_CLAIM, place)
        computed(function, arguments, named, result, place)
        return result


def _place_of_results(function, arguments, named):
    """Returns the device of the results, or None if unknown, and the arguments, changed to ask for CPU memory
    instead of a GPU's."""
    asked = named.get("device", next((value for value in arguments if isinstance(value, _raw_device)), None))
    if asked is None:
        return _common_device(function, arguments, named), arguments, named
    if asked.type == "cuda":
        named = {**named, "device": _CPU} if "device" in named else named
        return _gpus.device(asked), tuple(_CPU if isinstance(value, _raw_device) else value for value in arguments), named
    # This is the memory's device: the script may have asked for a GPU.
    place = _gpus.now.asked or (asked if asked.type != "cpu" else None)
    return (place if real(place) == asked else None), arguments, named


def _inner(operator, arguments):
    """Returns the operation inside a higher-order operator, whose own effects, such as random numbers, concern only
    a GPU."""
    for index, value in enumerate(arguments):
        if isinstance(value, torch._ops.OpOverload):
            return value, arguments[index + 1:]
    raise NotImplementedError(f"rollcall: {operator} on a pretended GPU")


_NO_DISPATCH = torch.Tensor.__torch_dispatch__


def _common_device(function, arguments, named):
    """Returns the device that the operands claim; a zero-dimensional CPU tensor is compatible with any device."""
    place = scalar = None
    is_known = True
    for tensor in tensors_among(*arguments, *named.values()):
        known = claimed(tensor)
        if known is None:
            is_known = is_known and tensor.dim() == 0
        elif tensor.dim() == 0:
            scalar = scalar if scalar is not None and known.type == "cpu" else known
        elif place is None:
            place = known
        elif known != place and not _gpus.now.is_backward and not _may_mix(function):
            raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {place} "
                               f"and {known}! (in {_name_of(function)})")
    return place if place is not None or not is_known else scalar


def tensors_among(*values):
    """Yields the tensors among the values, and in lists among them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for each in value:
                if isinstance(each, torch.Tensor):
                    yield each


def _name_of(function):
    packet = getattr(function, "overloadpacket", function)
    return getattr(packet, "__name__", str(packet))


def _may_mix(function):
    name = _name_of(function)
    return getattr(function, "namespace", "aten") != "aten" or name in _MIXING or name.startswith(("_foreach_", "_fused_"))


def device_of(tensor):
    """Returns the value of `tensor.device`."""
    place = claimed(tensor)
    if place is not None:
        return place
    place = _real_device(tensor)
    if not _gpus.is_used or place.type != "cpu":
        return place
    in_bucket = _gpus.last_used if _gpus.now.is_backward else None  # of DDP, which a hook looks at
    return in_bucket or _raw_device("cuda", _gpus.current)


def _real_device(tensor):
    """Reads the real device. Modes would call our torch.Tensor.device again, so they are disabled. torch 1.x cannot
    disable them; there it is the CPU."""
    if not hasattr(torch._C, "DisableTorchFunctionSubclass"):
        return _CPU
    with torch._C.DisableTorchFunction():
        return _REAL_DEVICE.__get__(tensor)


def _set_data(tensor, value):
    _BASE.data.__set__(tensor, value)
    known = claimed(value)
    if known is not None:
        claim(tensor, known)


def _replace_attributes():
    tensor = torch.Tensor
    tensor.data = property(_BASE.data.__get__, _set_data)
    tensor.device = property(device_of)
    tensor.is_cuda = property(lambda self: device_of(self).type == "cuda")
    if hasattr(_BASE, "is_cpu"):
        tensor.is_cpu = property(lambda self: device_of(self).type == "cpu")
    tensor.get_device = lambda self: device_of(self).index if device_of(self).type == "cuda" else -1


def _replace_conversions():
    original = {name: getattr(torch.Tensor, name) for name in ("to", "numpy", "__array__", "type", "_make_subclass",
                                                               "_make_wrapper_subclass") if hasattr(torch.Tensor, name)}

    def to(self, *arguments, **named):
        if _gpus.is_moving(self):
            return original["to"](self, *arguments, **named)
        asked, named = _keywords_of_to(arguments, named)
        if asked is None:
            return original["to"](self, **named)
        return _moved(self, _gpus.device(asked), named)

    def _moved(tensor, target, named):
        named = {**named, "device": real(target)}
        known = claimed(tensor)
        if known != target and target.type != "meta" and not (known is None and target.type == "cuda"):
            named["copy"] = True
        result = claim(_gpus.while_asked_for(target, original["to"], (tensor,), named, tensor), target)
        if known is not None and known != target and result.requires_grad:
            result.register_hook(lambda gradient: claim(gradient.view_as(gradient), known))
        return result

    def cuda(self, device=None, non_blocking=False, memory_format=torch.preserve_format):
        return to(self, _gpus.device("cuda" if device is None else device), memory_format=memory_format)

    def cpu(self, memory_format=torch.preserve_format):
        return to(self, _CPU, memory_format=memory_format)

    def kind(self, dtype=None, non_blocking=False, **named):
        if dtype is None and self.is_cuda and self.dtype in _TYPE_NAMES:
            return f"torch.cuda.{_TYPE_NAMES[self.dtype]}Tensor"
        if dtype is None:
            return original["type"](self)
        if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
            return cuda(original["type"](self, dtype.replace("torch.cuda.", "torch.")))
        return original["type"](self, dtype, **named)

    def numpy(self, *arguments, **named):
        _refuse_numpy(self, named)
        return original["numpy"](self, *arguments, **named)

    def array(self, *arguments, **named):
        _refuse_numpy(self, {})
        return original["__array__"](self, *arguments, **named)

    def make_subclass(*arguments, **named):  # torch._dynamo compares signatures and accepts this one
        made = original["_make_subclass"](*arguments, **named)
        known = claimed(arguments[1] if len(arguments) > 1 else named["data"])
        return made if known is None else claim(made, known)

    def make_wrapper_subclass(*arguments, **named):
        wanted = named.get("device")
        if wanted is None or wanted.type != "cuda":
            return original["_make_wrapper_subclass"](*arguments, **named)
        wanted = _gpus.device(wanted)
        return claim(original["_make_wrapper_subclass"](*arguments, **{**named, "device": _CPU}), wanted)

    tensor = torch.Tensor
    tensor.to = tensor.type_as = to
    tensor.cuda, tensor.cpu, tensor.type = cuda, cpu, kind
    tensor.numpy, tensor.__array__ = numpy, array
    tensor.pin_memory = lambda self, *_, **__: self
    tensor.is_pinned = lambda self, *_, **__: False
    tensor.record_stream = lambda self, stream: None
    tensor._make_subclass = staticmethod(make_subclass)
    if "_make_wrapper_subclass" in original:
        tensor._make_wrapper_subclass = staticmethod(make_wrapper_subclass)
    _replace_parse_to()


def _refuse_numpy(tensor, named):
    known = claimed(tensor)
    if known is not None and known.type == "cuda" and not named.get("force"):
        raise TypeError(f"can't convert {known} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                        "memory first.")


def _keywords_of_to(arguments, named):
    """Splits the arguments of Tensor.to into the device, if any, and the rest by name."""
    named = dict(named)
    device = named.pop("device", None)
    other = named.pop("other", None)
    rest = list(arguments)
    if rest and isinstance(rest[0], torch.Tensor):
        other = rest.pop(0)
    else:
        if rest and not isinstance(rest[0], torch.dtype):
            device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], torch.dtype)):
            named["dtype"] = rest.pop(0)
    if other is not None:
        device, named["dtype"] = device_of(other), other.dtype
    named.update(zip(("non_blocking", "copy"), rest))
    if named.get("dtype", False) is None:
        del named["dtype"]
    return device, named


def _replace_parse_to():
    """Replaces the parser of nn.Module.to's arguments."""
    original = torch._C._nn._parse_to

    def parse_to(*arguments, **named):
        if arguments and isinstance(arguments[0], int) and not isinstance(arguments[0], bool):
            arguments = (_gpus.device(arguments[0]), *arguments[1:])
        if isinstance(named.get("device"), int):
            named["device"] = _gpus.device(named["device"])
        return original(*arguments, **named)

    torch._C._nn._parse_to = parse_to


def _replace_state():
    """Keeps our claims out of pickles, and out of parameters that accelerate makes with the attributes of others
    (big_modeling.py)."""

    def new(cls, *arguments, **named):
        return make(cls, *arguments, **{name: each for name, each in named.items() if not name.startswith("_rollcall_")})

    make = replace_in(torch.nn.Parameter, "__new__", new)
    original = getattr(torch._utils, "_get_obj_state", None)
    if original is None:
        return

    def get_obj_state(value):
        state = original(value)
        if isinstance(value, torch.Tensor) and isinstance(state, dict):
            return {name: each for name, each in state.items() if not name.startswith("_rollcall_")}
        return state

    torch._utils._get_obj_state = get_obj_state
