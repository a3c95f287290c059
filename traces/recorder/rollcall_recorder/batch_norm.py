"""SyncBatchNorm on pretended GPUs: torch has its five operators for GPUs only, so their CPU kernels are here.

Their formulas are those of aten/src/ATen/native/cuda/Normalization.cuh. The channels are dimension 1.
"""

import torch


def install():
    """Registers the kernels, unless this torch has its own."""
    library = torch.library.Library("aten", "IMPL")
    for name, kernel in _KERNELS.items():
        if hasattr(torch, name) and not _has_kernel(name):
            library.impl(name, kernel, "CPU")
    _kept.append(library)  # it unregisters them when it is collected


_kept = []


def _has_kernel(name):
    has = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", None)
    return has is not None and has(f"aten::{name}", "CPU")


def _exact(tensor):
    """Statistics of half-precision tensors have single precision."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _others(tensor):
    return [dimension for dimension in range(tensor.dim()) if dimension != 1]


def _by_channel(values, like):
    """Shapes values of the channels such that they broadcast over `like`."""
    return values.reshape([-1 if dimension == 1 else 1 for dimension in range(like.dim())])


def _stats(given, eps):
    exact = _exact(given)
    mean = exact.mean(_others(given))
    variance = (exact - _by_channel(mean, given)).square().mean(_others(given))
    return mean, torch.rsqrt(variance + eps)


def _gather_stats(given, mean, invstd, running_mean, running_var, momentum, eps, counts):
    counts = counts.to(mean.dtype).reshape(-1, 1)
    total = counts.sum()
    combined = (mean * counts).sum(0) / total
    spread = (invstd.pow(-2) - eps + (mean - combined).square()) * counts  # of each rank, around the common mean
    variance = spread.sum(0) / total
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(momentum * combined)
    if running_var is not None:
        running_var.mul_(1 - momentum).add_(momentum * variance * total / (total - 1))
    return combined, torch.rsqrt(variance + eps)


def _normalize(given, weight, bias, mean, invstd, eps):
    result = (_exact(given) - _by_channel(mean, given)) * _by_channel(invstd, given)
    if weight is not None:
        result = result * _by_channel(_exact(weight), given)
    if bias is not None:
        result = result + _by_channel(_exact(bias), given)
    return result.to(given.dtype)


def _reduce_backward(gradient, given, mean, invstd, weight, wants_input, wants_weight, wants_bias):
    exact = _exact(gradient)
    sum_dy = exact.sum(_others(given))
    sum_dy_xmu = (exact * (_exact(given) - _by_channel(mean, given))).sum(_others(given))
    kind = weight.dtype if weight is not None else sum_dy.dtype
    nothing = torch.empty(0)
    return (sum_dy if wants_input else nothing, sum_dy_xmu if wants_input else nothing,
            (sum_dy_xmu * invstd).to(kind) if wants_weight else nothing, sum_dy.to(kind) if wants_bias else nothing)


def _normalize_backward(gradient, given, mean, invstd, weight, sum_dy, sum_dy_xmu, counts):
    total = counts.sum()
    share = sum_dy / total
    slope = invstd.square() * sum_dy_xmu / total
    result = _exact(gradient) - _by_channel(share, given)
    result = (result - (_exact(given) - _by_channel(mean, given)) * _by_channel(slope, given)) * _by_channel(invstd, given)
    if weight is not None:
        result = result * _by_channel(_exact(weight), given)
    return result.to(given.dtype)


_KERNELS = {
    "batch_norm_stats": _stats,
    "batch_norm_gather_stats_with_counts": _gather_stats,
    "batch_norm_elemt": _normalize,
    "batch_norm_backward_reduce": _reduce_backward,
    "batch_norm_backward_elemt": _normalize_backward,
}
