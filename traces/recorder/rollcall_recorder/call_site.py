"""Where a call was made: the user's line, and the parts of torch it went through."""

import os
import sys
import sysconfig
import threading
import traceback

import torch

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)

# Functions of torch, and the reason why each communicates. (algorithms/join.py,
# nn/parallel/distributed.py,
# distributed/optim/zero_redundancy_optimizer.py)
_REASONS = {
    "notify_join_context": "join.notify",
    "_get_num_nonjoined_procs": "join.count",
    "_notify_procs_to_terminate": "join.terminate",
    "_check_global_requires_backward_grad_sync": "ddp.backward_sync_flag",
    "_check_and_sync_module_buffers": "ddp.buffers",
    "_sync_module_buffers": "ddp.buffers",
    "_find_common_rank": "ddp.common_rank",
    "_verify_param_shape_across_processes": "ddp.ctor_verify",
    "_verify_model_across_ranks": "ddp.ctor_verify",
    "_sync_module_states": "ddp.module_states",
    "_match_all_reduce_for_bwd_pass": "ddp.bucket_shadow",
    "_match_unused_params_allreduce": "ddp.unused_shadow",
    "_broadcast_params_from_rank": "zero.shard",
    "_init_one_process_group": "mesh",
    "mesh_scatter": "dtensor.distribute",
    "mesh_broadcast": "dtensor.distribute",
    "redistribute_local_tensor": "dtensor.redistribute",
    "foreach_all_gather": "fsdp.unshard",
    "foreach_reduce": "fsdp.reduce",
    "_unshard": "fsdp.unshard",
    "_reduce_grad": "fsdp.reduce",
    "clip_grad_norm_": "clip_grad_norm",
    "get_total_norm": "clip_grad_norm",
    "_batch_p2p": "pipeline.messages",
    "forward_one_chunk": "pipeline.forward",
    "backward_one_chunk": "pipeline.backward",
    "average_parameters": "model_averaging",
    "_allreduce_fut": "ddp.comm_hook",
    "all_gather_object": "all_gather_object",
    "broadcast_object_list": "broadcast_object_list",
    "gather_object": "gather_object",
    "scatter_object_list": "scatter_object_list",
}
_KNOWN = frozenset(_REASONS.values())
_REDUCER = os.path.join("nn", "parallel", "distributed.py")
_DISTRIBUTED = (os.path.join("distributed", "distributed_c10d.py"), os.path.join("distributed", "c10d_logger.py"))
# Files that lie between a function and the reason why it communicates.
_PLUMBING = frozenset(("overrides.py", "_device.py", "_ops.py", "_contextlib.py", "module.py",
                       "_functional_collectives.py", "_dispatch.py", "_fsdp_collectives.py", "eval_frame.py",
                       "_utils.py", "_python_dispatch.py", "_compile.py"))
# The same for whole folders: they pass operators on.
_PLUMBING_FOLDERS = tuple(_TORCH + name + os.sep for name in ("_library", "_dynamo", "_functorch", "_higher_order_ops"))
_BATCH_NORM = os.path.join("nn", "modules", "_functions.py")  # SyncBatchNorm's forward and backward
# The C++ engine calls the reducer's hooks from here, without a Python frame of their own.
_AUTOGRAD = (os.path.join("autograd", "__init__.py"), os.path.join("autograd", "graph.py"))


class CallSite:
    """The innermost line of the user's code, `reason` if torch's own code made the call, and whether a rank that has
    joined made the call on behalf of others (`shadow`)."""

    __slots__ = ("file", "line", "function", "module", "reason", "shadow")

    def __init__(self):
        self.file = self.function = self.module = self.reason = None
        self.line = 0
        self.shadow = False

    def key(self):
        return (self.file, self.line, self.reason, self.shadow)

    def describe(self):
        site = {"file": self.file, "line": self.line, "function": self.function}
        if self.module:
            site["module"] = self.module
        if self.reason:
            site["reason"] = self.reason
        if self.shadow:
            site["shadow"] = True
        return site


def is_users(path):
    """True if the file is part of the user's program, and not of torch, of Python, or of an installed package."""
    if path.startswith((HERE, _TORCH, "<frozen")):
        return False
    return not path.startswith(_LIBRARY) and not any(part in path for part in _PACKAGES)


def outside_of_recorder(frame):
    """Returns the innermost frame that is not in our own functions; None in a thread of C++."""
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return frame


def call_site(frame, dtype=None):
    """Returns the site of the call that is being made from `frame`."""
    site = CallSite()
    outside = unit = None
    while frame is not None:
        code = frame.f_code
        path = code.co_filename
        if code.co_name == "main_hook":
            site.shadow = True
        if site.file is None:
            if path.startswith(_TORCH):
                site.reason = _better_reason(site.reason, code.co_name, path, dtype)
                unit = unit or _unit_of(frame)
            elif is_users(path):
                site.file, site.line, site.function = path, frame.f_lineno, code.co_name
                site.module = _module_of(frame)
            elif outside is None and not path.startswith((HERE, "<frozen")):
                outside = frame
        frame = frame.f_back
    origin = _origin() if site.file is None else None
    if origin is not None:
        site.file, site.line, site.function = origin
    elif site.file is None and outside is not None:
        code = outside.f_code
        site.file, site.line, site.function = code.co_filename, outside.f_lineno, code.co_name
    if unit and site.reason:
        site.reason += " " + unit
    return site


_ORIGIN = "_rollcall_origin"  # of a thread: the user's line that led to its start


def _origin():
    # Not current_thread(): that would add threads of C++ to those of Python.
    return getattr(threading._active.get(threading.get_ident()), _ORIGIN, None)


def remember_origins():
    """Lets calls of a thread that runs no code of the user, such as one that saves a checkpoint, be found at the user's
    line that started it."""
    start = threading.Thread.start

    def remember_and_start(self):
        frame = sys._getframe(1)
        while frame is not None and not is_users(frame.f_code.co_filename):
            frame = frame.f_back
        setattr(self, _ORIGIN, _origin() if frame is None
                else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        start(self)

    threading.Thread.start = remember_and_start


# Files between a function of torch.distributed and its caller.
_WRAPPERS = frozenset(("distributed_c10d.py", "c10d_logger.py", "overrides.py", "_device.py", "contextlib.py",
                       "functools.py", "typing_extensions.py", "warnings.py", "_py_warnings.py"))


def is_scripts_own(frame):
    """True if the call that is being made from `frame` is made by the script, and not by a library that it uses."""
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(HERE) and os.path.basename(path) not in _WRAPPERS:
            return is_users(path)
        frame = frame.f_back
    return False


def _unit_of(frame):
    """The module whose parameters FSDP2 handles together: "layers.3". (fsdp/_fully_shard/_fsdp_param_group.py)"""
    if frame.f_code.co_name not in ("unshard", "post_backward"):
        return None
    return getattr(frame.f_locals.get("self"), "_module_fqn", None)


def _better_reason(known, name, path, dtype):
    """Prefers a function that we know to the innermost function of torch."""
    if name in _REASONS and known not in _KNOWN:
        return _REASONS[name]
    if known is not None or path.endswith(_DISTRIBUTED):
        return known
    if path.endswith(_REDUCER) and name in ("forward", "main_hook", "_pre_forward"):
        return "ddp.rebuild"
    if path.endswith(_AUTOGRAD):
        return "ddp.unused_bitmap" if dtype == "int32" else "ddp.bucket"
    if path.endswith(_BATCH_NORM):
        return "sync_batch_norm"
    file = os.path.basename(path)
    return None if path.startswith(_PLUMBING_FOLDERS) or file in _PLUMBING else os.path.splitext(file)[0] + "." + name


def _module_of(frame):
    """Returns the class of the nn.Module whose method contains the line, or None."""
    own = frame.f_locals.get("self") if frame.f_code.co_argcount else None
    return type(own).__name__ if isinstance(own, torch.nn.Module) else None


def stack_of(thread):
    """Returns a thread's stack, innermost first: [file, line, function], without our own and Python's frames."""
    frame = sys._current_frames().get(thread)  # none: the thread has ended
    return _told(list(traceback.walk_stack(frame)) if frame is not None else [])


def stack_of_error(error):
    """Returns the same for the place where an error was raised."""
    return _told(reversed(list(traceback.walk_tb(error.__traceback__))))


def describe_error(error):
    """Returns an exception's type and message, and the innermost line of the user's code that it passed through, if any."""
    described = {"type": type(error).__name__, "message": _text_of(error)[:2000]}
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if is_users(code.co_filename):
            described["site"] = {"file": code.co_filename, "line": line, "function": code.co_name}
    return described


def _text_of(error):
    try:
        return str(error)
    except Exception:
        return ""  # the script's own class cannot say


def _told(frames):
    lines = []
    for frame, line in frames:
        path = frame.f_code.co_filename
        is_pythons = path.startswith((_LIBRARY, "<frozen")) and not any(part in path for part in _PACKAGES)
        if not is_pythons and not path.startswith(HERE):
            lines.append([path, line, frame.f_code.co_name])
    return lines[:100]
