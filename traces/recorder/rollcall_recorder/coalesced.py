"""Several gathers or reductions in one call, as _coalescing_manager and functional collectives make them: one call
whose tensors are all of their tensors, one after the other. (ProcessGroupGloo.cpp: allgather_into_tensor_coalesced)
"""

import torch

from . import touches


@touches.of_recorder()
def all_gather(call):
    inputs, outputs, size = call.given, call.filled, call.group.size()
    if call.group.backend == "gloo":
        _check_sizes(inputs, outputs, size)
    if len(inputs) < 2:
        return call
    call.given, packed = _packed([_bytes_of(tensor) for tensor in inputs] if _are_mixed(inputs) else inputs, 1)
    call.filled = [call.given[0].new_empty(size * call.given[0].numel())]

    def unpack():
        parts = packed(call.filled[0].view(size, -1))
        for output, part in zip(outputs, parts):
            output.copy_(part.contiguous().view(output.dtype).reshape(output.shape))

    call.unpack = unpack
    return call


@touches.of_recorder()
def reduce_scatter(call):
    inputs, outputs, size = call.given, call.filled, call.group.size()
    if len(inputs) < 2:
        return call
    if _are_mixed(inputs):
        raise RuntimeError("rollcall: reductions of several types in one call are not recorded")
    call.given, packed = _packed(inputs, size)
    call.filled = [call.given[0].new_empty(call.given[0].numel() // size)]

    def unpack():
        parts = packed(call.filled[0].view(1, -1))
        for output, part in zip(outputs, parts):
            output.copy_(part.reshape(output.shape))

    call.unpack = unpack
    return call


def _check_sizes(inputs, outputs, size):
    for index, (given, output) in enumerate(zip(inputs, outputs)):
        part = list(output.shape)
        part[:1] = [-(-length // size) for length in part[:1]]
        if part != list(given.shape) and output.numel() != size * given.numel():
            raise RuntimeError(f"ProcessGroupGloo::allgather_coalesced: invalid size of output tensor at index {index} "
                               f"(expected length {_text(given.shape)}, got {_text(part)})")


def _text(shape):
    return f"({', '.join(map(str, shape))})"


def _are_mixed(tensors):
    return len({tensor.dtype for tensor in tensors}) > 1


def _bytes_of(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _packed(tensors, rows):
    """Returns one tensor with a part of each in every row, and a function that splits these rows again."""
    parts = [tensor.detach().reshape(rows, -1) for tensor in tensors]
    widths = [part.shape[1] for part in parts]
    return [torch.cat(parts, 1).reshape(-1)], lambda table: table.split(widths, 1)
