"""Tracks the GPU memory that a rank's tensors take, and the moment of its peak.

A storage counts from the operation that made it until nothing refers to it, as a GPU's allocator sees it. No event says
when that is: storages are checked, and only when their sum, including those that may be gone, would be a new peak.

At the end of the rank, the record gets {"memory": {"peak": bytes, "parts": {"parameters": bytes, ...}, "holders":
[{"bytes": bytes, "count": 2, "part": "activations", "site": {...}}, ...]}}: the lines of the script whose storages take
most at the peak.
"""

import sys
import weakref

import torch

from .call_site import call_site

_BLOCK = 512  # the smallest block of CUDA's allocator (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize)
_HOLDERS_MAX = 8
_FEW = 300  # up to this many storages are checked every time
_MARGIN = 1.003  # with more storages, the peak may be missed by this factor
PARAMETERS, GRADIENTS, OPTIMIZER, BUFFERS, COMMUNICATION, ACTIVATIONS = (
    "parameters", "gradients", "optimizer", "buffers", "communication", "activations")
_Storage = torch.UntypedStorage


def storage_of(tensor):
    """Returns the tensor's storage, or None."""
    try:
        return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor._storage()
    except (RuntimeError, NotImplementedError):
        return None


class Held:
    """One storage. `dtype`: the dtype of its float32 elements on a GPU under autocast; `narrow`: the dtype that an
    operation under autocast used it in; `cast`: the backward in whose forward it was last copied."""

    __slots__ = ("bytes", "part", "site", "dtype", "narrow", "cast", "peak_bytes", "frozen_at", "born", "died")

    def __init__(self, size, born):
        self.bytes, self.born = size, born
        self.part = self.site = self.dtype = self.narrow = None
        self.cast = self.frozen_at = -1
        self.peak_bytes = 0


class Memory:
    def __init__(self):
        self._held = {}  # by the storage's address, which a weak reference keeps from being reused
        self._gone = []  # storages that existed at the peak
        self._now = 0  # the sum, including storages that may be gone
        self._peak = 0
        self._peaks = 0  # how often there was a new peak
        self._asked_at = 0
        self._parameters = {}  # by id, weakly
        self._watch_resizing()

    def clear(self):
        """Discards the storages counted so far, which were not on a GPU."""
        for address in self._held:
            _Storage._free_weak_ref(address)
        self._held.clear()
        self._gone.clear()
        self._now = self._peak = self._asked_at = 0

    def find(self, tensor, narrow=None):
        """Returns the entry of the tensor's storage, which is counted from now on. `narrow`: the dtype that its
        float32 elements would have on a GPU. None if it has no storage."""
        storage = storage_of(tensor)
        if storage is None:
            return None
        held = self._held.get(storage._cdata)
        return held if held is not None else self._add(storage, narrow if tensor.dtype == torch.float32 else None)

    def _add(self, storage, narrow):
        size = storage.nbytes()
        held = Held(_rounded(size if narrow is None else size // 2), self._peaks)
        held.dtype = narrow
        self._held[storage._weak_ref()] = held
        self._begin(held)
        return held

    def _begin(self, held):
        if held.bytes * 512 >= self._now:
            held.site = call_site(sys._getframe(1))
        self._grow(held.bytes)

    def hold(self, size):
        """Counts memory that would be taken on a GPU but is not taken here. Pass the result to release()."""
        held = Held(_rounded(size), self._peaks)
        self._begin(held)
        return held

    def release(self, held):
        self._now -= held.bytes
        self._went(held)

    def is_parameter(self, tensor):
        held = self.find(tensor)
        if held is not None and held.part is None:
            held.part = PARAMETERS
            self._parameters[id(tensor)] = weakref.ref(tensor)

    def mark(self, tensors, part, over=()):
        """Sets the part of those tensors that have no part yet, or one of `over`."""
        for tensor in tensors:
            held = self.find(getattr(tensor, "_local_tensor", tensor))
            if held is not None and (held.part is None or held.part in over):
                held.part = part

    def mark_gradients(self):
        self._mark_gradients_of([reference() for reference in self._parameters.values()])

    def _mark_gradients_of(self, parameters):
        gradients = [parameter.grad for parameter in parameters if parameter is not None and parameter.grad is not None]
        for gradient in gradients:
            self._widen(getattr(gradient, "_local_tensor", gradient))
        self.mark(gradients, GRADIENTS, (COMMUNICATION,))

    def _widen(self, gradient):
        """Undoes narrowing: the result of a product under autocast is cast before it becomes a gradient, which was
        therefore never narrow."""
        held = self.find(gradient)
        if held is None or held.dtype is None:
            return
        held.dtype = None
        more = _rounded(storage_of(gradient).nbytes()) - held.bytes
        held.bytes += more
        self._now += more
        if held.born < self._peaks:  # it was there at the peak
            self._peak += more
            held.peak_bytes += more

    def mark_optimizer(self, optimizer):
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self.mark(parameters, PARAMETERS)
        self._mark_gradients_of(parameters)
        for state in optimizer.state.values():
            if isinstance(state, dict):
                self.mark([value for value in state.values() if isinstance(value, torch.Tensor) and value.dim() > 0], OPTIMIZER)

    def _watch_resizing(self):
        """Follows storages that are resized: FSDP frees gathered memory, and takes it again, without an operation."""
        original, memory = _Storage.resize_, self

        def resize_(storage, size):
            result = original(storage, size)
            held = memory._held.get(storage._cdata)
            if held is not None:
                memory._resize(held, _rounded(storage.nbytes()))
            return result

        _Storage.resize_ = resize_

    def _resize(self, held, size):
        if held.frozen_at != self._peaks:
            held.peak_bytes, held.frozen_at = held.bytes, self._peaks
        before, held.bytes = held.bytes, size
        self._now -= before
        self._grow(size)

    def _grow(self, size):
        self._now += size
        if self._now > self._peak:
            few = len(self._held) < _FEW
            if few or self._now > _MARGIN * max(self._peak, self._asked_at):
                self._ask()
                if self._now > self._peak:
                    self._peak, self._peaks = self._now, self._peaks + 1
                    self._gone.clear()
                self._asked_at = self._now

    def _ask(self):
        """Removes the storages that are gone."""
        expired = _Storage._expired
        for address in [address for address in self._held if expired(address)]:
            held = self._held.pop(address)
            _Storage._free_weak_ref(address)
            self._now -= held.bytes
            self._went(held)

    def _went(self, held):
        if held.born < self._peaks:  # it was there at the peak
            self._gone.append(held)

    def _at_peak(self):
        for held in [*self._held.values(), *self._gone]:
            size = held.peak_bytes if held.frozen_at == self._peaks else held.bytes
            if held.born < self._peaks and size > 0:
                yield held, size

    def describe(self):
        """Returns the record's entry, or None if nothing was counted."""
        if self._peak == 0:
            return None
        parts, holders = {}, {}
        for held, size in self._at_peak():
            part = held.part or ACTIVATIONS
            parts[part] = parts.get(part, 0) + size
            if held.site is not None:
                holder = holders.setdefault((part, held.site.key()), [0, 0, part, held.site])
                holder[0] += size
                holder[1] += 1
        largest = sorted(holders.values(), key=lambda holder: -holder[0])[:_HOLDERS_MAX]
        return {"peak": self._peak, "parts": dict(sorted(parts.items(), key=lambda part: -part[1])),
                "holders": [{"bytes": size, "count": count, "part": part, "site": site.describe()}
                            for size, count, part, site in largest]}


def _rounded(size):
    return -(-size // _BLOCK) * _BLOCK
