"""The cost of an operation of torch on a GPU: its kind, and its floating-point operations, from the shapes of its
tensors.

Multiplications and additions count as two, as torch.utils.flop_counter counts them, with one difference: causal
attention skips the half of its scores that is masked, and so does the count here. Operations that are not in the table
below only read and write memory.
"""

import functools
import math


def _matrices(first, second):
    """Multiplies (..., m, k) by (..., k, n), whose arguments have these names."""
    return "matmul", lambda arguments, _: 2 * arguments[first].numel() * arguments[second].shape[-1]


def _by_vector(first):
    """Multiplies the argument of this name by a vector."""
    return "matmul", lambda arguments, _: 2 * arguments[first].numel()


def _convolution(given, weight, result, transposed):
    """Every weight is used once for each position of the larger image or, if transposed, of the smaller one."""
    places = given if transposed else result
    return 2 * places.shape[0] * math.prod(places.shape[2:]) * weight.numel()


def _convolution_backward(arguments):
    gradient, given, weight = arguments["grad_output"], arguments["input"], arguments["weight"]
    wanted = sum(bool(each) for each in arguments["output_mask"][:2])  # the gradients of the input and of the weight
    return wanted * _convolution(given, weight, gradient, arguments["transposed"])


def _attention(arguments, forward):
    """Two matrix products; in backward, the scores again and four more. (aten/src/ATen/native/transformers)"""
    query, key, value = arguments["query"], arguments["key"], arguments["value"]
    scores = 2 * math.prod(query.shape[:-1]) * key.shape[-2]
    inner, outer = query.shape[-1], value.shape[-1]
    flops = scores * ((inner + outer) if forward else (3 * inner + 2 * outer))
    return flops // 2 if arguments.get("is_causal") else flops


def _recurrent(given, own, hidden, passes):
    """One layer in one direction, as torch computes it on the CPU."""
    return passes * 2 * math.prod(given.shape[:-1]) * (own.numel() + hidden.numel())


# By name: the kind, and a function of the arguments by name and the result that counts the operations.
_COUNTED = {
    **dict.fromkeys(("mm", "_int_mm", "_scaled_mm", "bmm"), _matrices("self", "mat2")),
    **dict.fromkeys(("addmm", "addmm_", "_addmm_activation"), _matrices("mat1", "mat2")),
    **dict.fromkeys(("baddbmm", "baddbmm_", "addbmm"), _matrices("batch1", "batch2")),
    **dict.fromkeys(("mv", "dot", "vdot"), _by_vector("self")),
    **dict.fromkeys(("addmv", "addmv_"), _by_vector("mat")),
    "linear": ("matmul", lambda a, r: 2 * a["input"].numel() * a["weight"].shape[0]),
    "convolution": ("convolution", lambda a, r: _convolution(a["input"], a["weight"], r, a["transposed"])),
    "_convolution": ("convolution", lambda a, r: _convolution(a["input"], a["weight"], r, a["transposed"])),
    "convolution_backward": ("convolution", lambda a, r: _convolution_backward(a)),
    "mkldnn_rnn_layer": ("matmul", lambda a, r: _recurrent(a["input"], a["weight0"], a["weight1"], 1)),
    "mkldnn_rnn_layer_backward": ("matmul", lambda a, r: _recurrent(a["input"], a["weight1"], a["weight2"], 2)),
}
# Fused attention has a name for each way to compute it.
ATTENTION = "_scaled_dot_product_"

_REDUCTIONS = frozenset((
    "sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "any", "all", "norm", "linalg_vector_norm", "var",
    "std", "var_mean", "std_mean", "cumsum", "cumprod", "logsumexp", "topk", "sort", "_softmax", "_softmax_backward_data",
    "_safe_softmax", "_log_softmax", "_log_softmax_backward_data", "native_layer_norm", "native_layer_norm_backward",
    "native_group_norm", "native_group_norm_backward", "native_batch_norm", "native_batch_norm_backward",
    "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "batch_norm_backward", "_batch_norm_with_update",
    "_fused_rms_norm", "_fused_rms_norm_backward", "nll_loss_forward", "nll_loss_backward", "nll_loss2d_forward",
    "nll_loss2d_backward", "mse_loss", "avg_pool2d", "avg_pool2d_backward", "max_pool2d_with_indices",
    "max_pool2d_with_indices_backward", "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "_foreach_norm"))
# Operations that read as many elements as they write, whatever they choose from.
_CHOOSING = frozenset((
    "embedding", "embedding_dense_backward", "_embedding_bag", "_embedding_bag_dense_backward", "index_select", "gather", "index",
    "index_put", "index_put_", "_index_put_impl_", "scatter", "scatter_", "scatter_add", "scatter_add_", "index_add", "index_add_",
    "take", "masked_select", "index_select_backward"))
# Operations that do not read the tensor that they write.
_OVERWRITING = frozenset(("copy_", "zero_", "fill_", "normal_", "uniform_", "bernoulli_", "random_", "_foreach_copy_", "_foreach_zero_"))
# Operations that only say where memory is, or ask the host.
_FREE = frozenset((
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "_local_scalar_dense", "lift_fresh", "lift",
    "detach", "alias", "_unsafe_view", "_reshape_alias", "set_", "resize_", "equal", "is_same_size", "record_stream",
    "is_pinned", "_pin_memory", "sym_size", "sym_numel", "sym_stride", "_has_compatible_shallow_copy_type"))
_FREE_NAMESPACES = frozenset(("c10d", "_c10d_functional", "c10d_functional", "_c10d_functional_autograd", "profiler", "prim",
                              "_dtensor", "symm_mem"))

# Operations that autocast runs in float32 on a GPU; others take their operands as they are.
# (aten/src/ATen/autocast_mode.h)
_WIDE = frozenset((
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh", "tan", "pow",
    "softplus", "native_layer_norm", "native_group_norm", "norm", "linalg_vector_norm", "nuclear_norm", "cosine_similarity",
    "mse_loss", "smooth_l1_loss", "nll_loss_forward", "nll_loss2d_forward", "binary_cross_entropy_with_logits", "dist", "renorm",
    "logsumexp", "cumprod", "cumsum", "prod", "sum", "_softmax", "_safe_softmax", "_log_softmax"))


class Operator:
    """The properties of an operation that are known before it is called."""

    __slots__ = ("name", "kind", "names", "written", "is_free", "is_view", "is_wide", "chooses", "overwrites", "_count")

    def __init__(self, function):
        schema = getattr(function, "_schema", None)
        namespace, _, self.name = schema.name.partition("::") if schema is not None else ("", "", "")
        effects = [argument.alias_info for argument in schema.arguments] if schema is not None else []
        self.names = [argument.name for argument in schema.arguments] if schema is not None else []
        self.written = frozenset(index for index, effect in enumerate(effects) if effect is not None and effect.is_write)
        self.is_view = any(effect is not None and not effect.is_write for effect in effects)
        self.is_free = schema is None or self.name in _FREE or namespace in _FREE_NAMESPACES
        self.is_wide = self.name in _WIDE
        self.chooses = self.name in _CHOOSING
        self.overwrites = self.name in _OVERWRITING
        self.kind, self._count = self._row()

    def _row(self):
        if self.name in _COUNTED:
            return _COUNTED[self.name]
        if self.name.startswith(ATTENTION):
            forward = not self.name.endswith("_backward")
            return "attention", lambda arguments, result: _attention(arguments, forward)
        if self.chooses:
            return "embedding", None
        return ("reduction" if self.name in _REDUCTIONS else "elementwise"), None

    @property
    def is_narrow(self):
        """True if autocast runs it in lower precision."""
        return self._count is not None

    def flops(self, arguments, named, result):
        if self._count is None:
            return 0
        return int(self._count({**dict(zip(self.names, arguments)), **named}, result))


operator_of = functools.lru_cache(maxsize=None)(Operator)
