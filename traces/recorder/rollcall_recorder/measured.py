"""Times of operations on a GPU, as torch.profiler measured them in one of the user's runs: Kineto's JSON, with
record_shapes=True.

A kernel belongs to every operation that encloses its launch on the same thread: a convolution is aten::convolution with
aten::cudnn_convolution inside it, and the recorder sees the former. Kernels and launches share a "correlation".
"""

import gzip
import json

import torch

from .operators import ATTENTION


class MeasuredKernels:
    """Mean nanoseconds by operation and shapes."""

    def __init__(self, path):
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8") as file:
            trace = json.load(file)
        events = trace if isinstance(trace, list) else trace.get("traceEvents", [])
        self._times = _times_of([event for event in events if isinstance(event, dict) and event.get("ph") == "X"])

    def time_of(self, operator, arguments, named):
        """Returns the mean time in nanoseconds, or None if the operation was not measured with these shapes."""
        return self._times.get(_key(operator.name, [_dims(value) for value in (*arguments, *named.values())]))


def _dims(value):
    if isinstance(value, torch.Tensor):
        return list(value.shape)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
        return [list(each.shape) for each in value]
    return []


def _key(name, dims):
    """Returns the key without trailing defaults, which the trace and the call may leave out. Attention has a name
    for each way to compute it."""
    if name.startswith(ATTENTION):
        forward = not name.endswith("_backward")
        name, dims = (ATTENTION + "forward", dims[:3]) if forward else (ATTENTION + "backward", dims[:4])
    while dims and not dims[-1]:
        dims = dims[:-1]
    return name, json.dumps(dims)


def _times_of(events):
    kernels, threads = {}, {}
    for event in events:
        category, arguments = event.get("cat"), event.get("args") or {}
        if category in ("kernel", "gpu_memcpy", "gpu_memset"):
            number = arguments.get("correlation")
            kernels[number] = kernels.get(number, 0) + event.get("dur", 0)
        elif category == "cpu_op":
            threads.setdefault(event.get("tid"), []).append(event)
    for event in events:
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and (event.get("args") or {}).get("correlation") in kernels:
            threads.setdefault(event.get("tid"), []).append(event)
    sums = {}
    for own in threads.values():
        _add_thread(own, kernels, sums)
    return {key: total * 1000 / count for key, (total, count) in sums.items() if total > 0}


def _add_thread(events, kernels, sums):
    """Assigns each kernel to the operations that enclose its launch in time."""
    events.sort(key=lambda event: (event["ts"], -event.get("dur", 0)))
    around = []  # [end, key, microseconds]
    for event in events:
        while around and around[-1][0] <= event["ts"]:
            _close(around, sums)
        if event["cat"] == "cpu_op":
            dims = (event.get("args") or {}).get("Input Dims", [])
            name = event["name"].partition("::")[2] or event["name"]
            around.append([event["ts"] + event.get("dur", 0), _key(name, dims), 0])
        elif around:
            around[-1][2] += kernels.pop(event["args"]["correlation"], 0)
    while around:
        _close(around, sums)


def _close(around, sums):
    _, key, time = around.pop()
    if around:
        around[-1][2] += time
    row = sums.setdefault(key, [0, 0])
    row[0] += time
    row[1] += 1
