"""Notes the first use of a tensor that a pending call still has: the call may still read it, or write it.

Every torch operation on tensors is examined, but only while the script itself has a pending call, so nothing else gets
slower. What libraries do with their own calls is ignored, and so is what numpy does with a tensor's memory.
"""

import contextlib
import sys
import threading

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import device_claims
from .call_site import call_site

# Operations that change how a tensor sees its memory, but not the memory.
_OF_VIEWS = frozenset("aten::" + name for name in (
    "detach_", "t_", "transpose_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_", "as_strided_", "set_", "resize_",
    "rename_", "requires_grad_"))
_NO_DISPATCH = torch.Tensor.__torch_dispatch__


class _State(threading.local):
    is_ours = False  # the recorder's own work is running


_state = _State()


def is_of_recorder():
    return _state.is_ours


@contextlib.contextmanager
def of_recorder():
    """Marks the work inside the context as the recorder's, not the script's."""
    before, _state.is_ours = _state.is_ours, True
    try:
        yield
    finally:
        _state.is_ours = before


class Touches:
    """The touches of one rank."""

    def __init__(self, record):
        self._record = record
        self._open = []  # [call, kind of its tensors, their memory], until the call is waited for or a use was noted
        self._mode = None

    def is_watching(self):
        return bool(self._open)

    def call(self, call, site):
        """Called before the script makes a call. NCCL runs the calls of one communicator in their order, so they do
        not conflict; Gloo and other groups do not."""
        in_order = call.group if call.group.backend == "nccl" else None
        for _, memory, writes in _parts(call):
            self._find(memory, writes, site, in_order)

    def begin(self, call):
        """Watches the tensors of the script's call from now on."""
        parts = _parts(call)
        if call.handle is None or not parts:
            return
        self._open.append((call, parts))
        if self._mode is None and not device_claims.is_in_use():  # otherwise its mode calls look()
            self._mode = _Mode(self)
            self._mode.__enter__()

    def end(self, call):
        """Called when the call has been waited for."""
        if not self._open:
            return
        self._open = [entry for entry in self._open if entry[0] is not call]
        if self._mode is not None and not self._open and _is_innermost(self._mode):
            self._mode.__exit__(None, None, None)
            self._mode = None

    def look(self, function, arguments, named):
        """Called before the script runs an operation."""
        if not self._open or _state.is_ours:
            return
        for tensor, writes in _used(function, arguments, named):
            memory = _memory(tensor)
            if memory is not None:
                self._find(memory, writes)

    def _find(self, memory, writes, site=None, in_order=None):
        for entry in self._open:
            if in_order is not None and entry[0].group is in_order:
                continue
            for part, known, is_written in entry[1]:
                if known[0] < memory[1] and memory[0] < known[1] and (writes or is_written):
                    self._note(entry, part, writes, site or call_site(sys._getframe(2)))
                    return

    def _note(self, entry, part, writes, site):
        if site.file is not None:
            self._open.remove(entry)
            self._record.say({"touch": entry[0].handle, "of": part, "access": "write" if writes else "read",
                              "site": site.describe()})


class _Mode(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self, touches):
        super().__init__()
        self._touches = touches

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        if any(getattr(kind, "__torch_dispatch__", None) is not _NO_DISPATCH for kind in types):
            return NotImplemented  # the subclass turns it into ordinary operations
        self._touches.look(function, arguments, named or {})
        return function(*arguments, **(named or {}))


def _is_innermost(mode):
    """True if the mode is the innermost one: modes have to end in reverse order."""
    if hasattr(torch._C, "_get_torch_dispatch_mode"):
        return torch._C._get_torch_dispatch_mode() is mode
    count = torch._C._len_torch_dispatch_stack()
    return count > 0 and torch._C._get_dispatch_stack_at(count - 1) is mode


def _used(function, arguments, named):
    """Yields the tensors whose memory an operation uses, and whether it writes them."""
    schema = getattr(function, "_schema", None)
    if schema is None or schema.name in _OF_VIEWS or _only_copies_shape(schema.name):
        return
    for index, argument in enumerate(schema.arguments):
        value = arguments[index] if index < len(arguments) else named.get(argument.name)
        effect = argument.alias_info
        if effect is not None and not effect.is_write:
            continue  # the result is a view of it
        for tensor in device_claims.tensors_among(value):
            yield tensor, effect is not None


def _only_copies_shape(name):
    return name.endswith("_like") or name.startswith(("aten::new_", "aten::sym_", "aten::is_"))


def _parts(call):
    """Returns what a call reads and writes: whether it is given or filled, its memory, and whether it is written."""
    reads = [] if call.given is call.filled else [("given", _memory(tensor), False) for tensor in call.given]
    keeps = call.op == "broadcast" and call.root == call.group.global_rank(call.group.rank())
    writes = [("filled", _memory(tensor), not keeps) for tensor in call.filled]
    return [part for part in reads + writes if part[1] is not None]


def _memory(tensor):
    """Returns the address of a tensor's first byte and of the one after its last, or None if it has no memory."""
    try:
        begin = tensor.data_ptr()
    except (RuntimeError, NotImplementedError):
        return None
    if begin == 0 or tensor.numel() == 0:
        return None
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return begin, begin + (last + 1) * tensor.element_size()
