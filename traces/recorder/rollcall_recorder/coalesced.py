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
    return _packed(call, [_bytes_of(tensor) for tensor in inputs] if _are_mixed(inputs) else inputs, 1, size)


@touches.of_recorder()
def reduce_scatter(call):
    inputs = call.given
    if len(inputs) < 2:
        return call
    if _are_mixed(inputs):
        raise RuntimeError("rollcall: reductions of several types in one call are not recorded")
    return _packed(call, inputs, call.group.size(), 1)


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


def _packed(call, tensors, rows, rows_filled):
    """Returns the call with one tensor that has a part of each in every row, and one that is filled with such rows."""
    parts, outputs = [tensor.detach().reshape(rows, -1) for tensor in tensors], call.filled
    table = torch.cat(parts, 1)
    call.given, call.filled = [table.reshape(-1)], [table.new_empty(rows_filled * table.shape[1])]
    widths, is_of_bytes = [part.shape[1] for part in parts], table.dtype == torch.uint8

    @touches.of_recorder()
    @torch.no_grad()
    def unpack():
        columns = call.filled[0].view(rows_filled, -1).split(widths, 1)
        for output, column in zip(outputs, columns):
            part = column.contiguous()
            output.copy_((part.view(output.dtype) if is_of_bytes else part).reshape(output.shape))

    call.unpack = unpack
    return call
