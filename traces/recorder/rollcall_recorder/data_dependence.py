"""Finds out whether the script depends on received data. If it does, the answers for a rank that runs alone are not
good enough.

Tensors that a call has filled carry a mark, and so do tensors computed from them. A line that reads a marked tensor
(item(), bool(), tolist(), ...) is noted once. Gradients and parameters carry none: training depends on them, but every
rank still makes the same calls.
"""

import sys

import torch
from torch.overrides import TorchFunctionMode

from .call_site import call_site

_MARK = "_rollcall_received"
_READS = frozenset(
    getattr(torch.Tensor, name)
    for name in ("item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__array__", "__contains__")
    if hasattr(torch.Tensor, name)
)

_watch = None


def watch(note):
    """Calls `note(site)` from now on, for each line that reads a received value."""
    global _watch
    _watch = _Watch(note)
    _watch.__enter__()


def received(tensors):
    if _watch is None:
        return
    for tensor in tensors:
        if not (isinstance(tensor, torch.nn.Parameter) or tensor.requires_grad):
            _mark(tensor)


def _mark(tensor):
    tensor._rollcall_received = True


class _Watch(TorchFunctionMode):
    def __init__(self, note):
        super().__init__()
        self._note = note
        self._lines = set()

    def __torch_function__(self, function, types, arguments=(), named=None):
        result = function(*arguments, **(named or {}))
        if not any(_is_marked(value) for value in arguments):
            return result
        if function in _READS:
            self._read(sys._getframe(1))
        elif isinstance(result, torch.Tensor):
            _mark(result)
        return result

    def _read(self, frame):
        site = call_site(frame)
        if site.file is not None and site.key() not in self._lines:
            self._lines.add(site.key())
            self._note(site)


def _is_marked(value):
    if isinstance(value, torch.Tensor):
        return _MARK in value.__dict__
    return isinstance(value, (list, tuple)) and any(_is_marked(each) for each in value)
