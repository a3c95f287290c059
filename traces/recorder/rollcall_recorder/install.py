"""Puts our process group behind torch.distributed: patches of distributed_c10d, made before the script runs."""

import datetime
import functools
import inspect
import sys

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from . import call_site, device_claims, scripts_stores
from .process_group import RecordingGroup
from .replacing import replace_everywhere
from .started import AtImport
from .store import kind_of_store

BACKEND = "rollcall"
NCCL_VERSION = (2, 21, 5)  # reported by torch without NCCL when a script or torch itself asks


class ScriptError(Exception):
    """The script does something that cannot be recorded. The message says what to do instead."""


def replace(name, function):
    """Replaces a function of distributed_c10d, and returns the original."""
    original = getattr(c10d, name)
    replace_everywhere(c10d, {name: functools.update_wrapper(function, original)})
    return original


def replace_new_groups(made):
    """Calls `made(group, arguments)` for the object of a group that torch has made with these arguments, by name, and
    that this process is a member of. The object that it returns becomes the group's."""
    original = c10d._new_process_group_helper
    signature = inspect.signature(original)

    def helper(*positional, **named):
        arguments = signature.bind(*positional, **named).arguments
        result = original(*positional, **named)
        group = result[0] if isinstance(result, tuple) else result
        if not isinstance(group, c10d.ProcessGroup):
            return result
        group = made(group, arguments)
        return (group, *result[1:]) if isinstance(result, tuple) else group

    replace("_new_process_group_helper", helper)


def note_uncaught(note):
    """Calls `note(kind, error, trace)` for an exception that ends the script, before Python prints it."""
    hook = sys.excepthook

    def excepthook(*raised):
        note(*raised)
        hook(*raised)

    sys.excepthook = excepthook


def install(rank):
    """Installs the patches for a rank whose calls are answered only by `rank.answers`."""
    _replace_compile()
    call_site.remember_origins()
    _refuse_others()
    _register()
    if hasattr(c10d, "_store_based_barrier"):
        c10d._store_based_barrier = lambda *_, **__: None
    scripts_stores.install(rank)
    _replace_helper(rank)
    _replace_init(rank)
    _replace_new_group(rank)
    _replace_split_group(rank)
    _replace_destroy(rank)
    replace_batch(lambda: rank)


def _replace_compile():
    """Turns off torch.compile: compiled code makes the same calls as other code. A module is wrapped as torch wraps it:
    scripts look for `_orig_mod`, also in the keys of a state dict."""
    if not hasattr(torch, "compile"):
        return

    def compile(model=None, **_):
        if model is None:
            return compile
        return _uncompiled(model) if isinstance(model, torch.nn.Module) else model

    torch.compile = functools.update_wrapper(compile, torch.compile)
    torch.nn.Module.compile = lambda self, *_, **__: None


def _uncompiled(module):
    from torch._dynamo import OptimizedModule  # imported late: it takes seconds

    return OptimizedModule(module, lambda function: function)


# Entry points of features that are not recorded: the module, its functions, and the feature's name.
_NOT_RECORDED = (
    ("torch.distributed.rpc", ("init_rpc",), "torch.distributed.rpc"),
    ("torch.distributed._symmetric_memory", ("empty", "rendezvous", "enable_symm_mem_for_group", "get_mem_pool"),
     "symmetric memory"),
)


def _refuse_others():
    """Makes features that are not recorded raise an error, instead of waiting for processes or devices that do not
    exist."""
    for row in _NOT_RECORDED:
        if row[0] in sys.modules:
            _refuse(sys.modules[row[0]], row)
        else:
            sys.meta_path.insert(0, AtImport(row[0], functools.partial(_import_and_refuse, row)))
    if getattr(getattr(dist, "config", None), "use_torchcomms", False):
        _refusal("TorchComms")()


def _import_and_refuse(row, execute, module):
    """Patches a module when the script imports it: most scripts never do."""
    execute(module)
    _refuse(module, row)


def _refuse(module, row):
    for function in row[1]:
        if hasattr(module, function):
            setattr(module, function, _refusal(row[2]))


def _refusal(what):
    def refuse(*_, **__):
        raise ScriptError(f"the script uses {what}, which is not recorded: only collectives, messages and the store "
                          "are")

    return refuse


def _register():
    """Registers our backend with its devices, because torch 2 warns about a backend that does not name them."""
    register = dist.Backend.register_backend
    devices = {"devices": ["cpu", "cuda"]} if "devices" in inspect.signature(register).parameters else {}
    register(BACKEND, lambda *_: None, **devices)
    if not hasattr(torch._C, "_nccl_version"):  # torch without NCCL asks for both when a group's backend is nccl
        torch.cuda.nccl.version = lambda: NCCL_VERSION
    if hasattr(c10d, "_check_for_nccl_backend"):  # torch 1.13 asks before it moves pickled objects to the GPU
        replace("_check_for_nccl_backend", _is_nccl)
    if hasattr(c10d, "default_pg_nccl_timeout"):
        c10d.default_pg_nccl_timeout = c10d.default_pg_nccl_timeout or datetime.timedelta(minutes=10)


def _is_nccl(group):
    return getattr(group or c10d._get_default_group(), "backend", None) == "nccl"


def _replace_helper(rank):
    """Replaces the function that creates the object behind a group, whatever backend is asked for."""
    original = c10d._new_process_group_helper
    signature = inspect.signature(original)

    def helper(*positional, **named):
        bound = signature.bind(*positional, **named)
        arguments = bound.arguments
        members = list(arguments["global_ranks_in_group"]) or list(range(rank.process_size))
        requested, devices = _backend_of(arguments["backend"])
        if requested == BACKEND:  # the default group's
            requested, devices = rank.backend, rank.devices
        made = []

        def create(*_):
            number = rank.next_group if rank.is_initialized else rank.world
            made.append(RecordingGroup(rank, number, members, arguments["group_rank"], arguments["group_size"],
                                       requested, devices))
            made[0].bound_device_id = arguments.get("device_id")
            return made[0]

        plugins, name = c10d.Backend._plugins, BACKEND.upper()
        plugins[name] = plugins[name]._replace(creator_fn=create, extended_api=False)
        arguments["backend"] = BACKEND
        for options in ("pg_options", "backend_options"):
            arguments.pop(options, None)
        result = original(*bound.args, **bound.kwargs)
        group = result[0] if isinstance(result, tuple) else result
        if made:
            _say_backend(group, requested)
        return result

    replace("_new_process_group_helper", helper)


_DEVICES = {"gloo": ("cpu", "cuda"), "nccl": ("cuda",), "mpi": ("cpu",)}


def _backend_of(requested, on_gpu=None):
    """Resolves "cpu:gloo,cuda:nccl" and None, which mean a backend for each device. Returns the one of the device in
    use, and the devices that the group takes tensors from. Calls of both devices are recorded as those of one backend."""
    text = str(requested or "").lower()
    is_open = text in ("", "undefined", "none")
    if is_open or ":" in text:
        wanted = "cuda" if (has_gpu() if on_gpu is None else on_gpu) else "cpu"
        pairs = dict(part.split(":") for part in text.split(",") if ":" in part)
        single = pairs.get(wanted, "nccl" if wanted == "cuda" else "gloo")
        return single, ("cpu", "cuda") if is_open else tuple(pairs)
    return text, _DEVICES.get(text, ("cpu", "cuda"))


def is_on_gloo(of_job, backend=None, *_rest, **_named):
    """True for the arguments of a new_group that asks for Gloo in a job on NCCL."""
    return "nccl" in str(of_job or "") and str(backend or "").lower() == "gloo"


def has_gpu():
    """True if there is a GPU, or if the script uses a pretended one."""
    gpus = device_claims.gpus()
    return gpus.count > 0 and gpus.was_asked_for if gpus is not None else torch.cuda.is_available()


def _say_backend(group, requested):
    """Makes get_backend() and new_group() continue with the backend that the script asked for."""
    groups = c10d._world.pg_map if hasattr(c10d, "_world") else c10d._pg_map
    _, store = groups[group]
    name = getattr(dist.Backend, requested.upper(), requested)  # torch asks whether a name *is* Backend.GLOO
    groups[group] = (name, store)
    configurations = getattr(getattr(c10d, "_world", None), "pg_backend_config", {})
    if group in configurations:
        configurations[group] = str(c10d.BackendConfig(requested))


def _replace_init(rank):
    def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank_given=-1, store=None,
                           *rest, **named):
        own = named.pop("rank", rank_given)
        _check_place(rank, own, world_size)
        bound = _bound_device(named, rest)
        if bound.get("device_id") is not None and backend is None:
            backend = _BACKEND_ON[_type_of(bound["device_id"])]
        requested, devices = _backend_of(backend)
        if rank.is_initialized:
            raise RuntimeError("trying to initialize the default process group twice!")
        is_eager = requested == "nccl" and _type_of(bound.get("device_id")) == "cuda"
        said = {"eager": True} if is_eager else {}
        is_another = rank.begins_world({"backend": requested, **_seconds(timeout), **said}, sys._getframe(1))
        rank.backend, rank.devices = requested, devices
        _note_what_gpus_would_change(backend, requested)
        rank.answers.initialized(requested, timeout, is_eager)
        if is_another:
            rank.answers.host_call()
        extra = {"timeout": timeout} if timeout is not None else {}
        shared = kind_of_store(rank)(rank)
        shared.begins_with(timeout if timeout is not None else _default_timeout(requested))
        original(BACKEND, store=shared, rank=rank.rank, world_size=rank.process_size, **extra, **bound)
        _say_backend(c10d._get_default_group(), requested)
        rank.is_initialized = True

    original = replace("init_process_group", init_process_group)
    has_device = "device_id" in inspect.signature(original).parameters

    def _bound_device(named, rest):
        """Returns the device_id that the script gives, as an argument for torch, which checks it."""
        if not has_device:
            if "device_id" in named:
                raise TypeError("init_process_group() got an unexpected keyword argument 'device_id'")
            return {}
        device = named.get("device_id", rest[2] if len(rest) > 2 else None)
        if _type_of(device) == "cuda" and device_claims.gpus() is not None:
            device_claims.gpus().asked_for()
        return {"device_id": device}


def _note_what_gpus_would_change(backend, requested):
    """A script may begin its job before it asks for a GPU, and then the ranks have to begin again."""
    gpus = device_claims.gpus()
    if gpus is not None and gpus.count > 0 and not gpus.was_asked_for:
        gpus.is_too_late = _backend_of(backend, on_gpu=True)[0] != requested


_BACKEND_ON = {"cpu": "gloo", "cuda": "nccl"}  # what torch chooses for a device_id without a backend


def _type_of(device):
    """Returns the type of a device_id. A number is that of a GPU."""
    return None if device is None else "cuda" if isinstance(device, int) else device.type


def _default_timeout(backend):
    known = getattr(c10d, "_get_default_timeout", None)  # torch 1.x has one for all backends
    return c10d.default_pg_timeout if known is None else known(backend)


def _seconds(timeout):
    return {} if timeout is None else {"timeout_s": timeout.total_seconds()}


def _check_place(rank, own, world_size):
    if world_size not in (-1, None, rank.process_size):
        if rank.worlds > 0:
            raise ScriptError(
                f"the script begins another job, of {world_size} ranks, after one of {rank.process_size}: a later job is "
                "recorded only with the same ranks")
        raise ScriptError(
            f"the script creates a job of {world_size} ranks, but it is recorded with {rank.process_size}: "
            f"use --world-size {world_size}")
    if own not in (-1, None, rank.rank):
        raise ScriptError(
            f"the process of rank {rank.rank} calls init_process_group(rank={own}): ranks have to come from RANK, as "
            "torchrun sets it, or from torch.multiprocessing.spawn")


def _replace_new_group(rank):
    def new_group(ranks=None, timeout=None, *rest, **named):
        rank.refuse_in_child()
        extra = {"timeout": timeout} if timeout is not None else {}
        is_local = bool(named.get("use_local_synchronization"))
        before, rank.next_group = rank.next_group, rank.number_of_group(ranks, is_local)
        try:
            group = original(ranks, *rest, **extra, **named)
        except BaseException:
            rank.next_group = before  # torch refused the list before any other rank knew of it
            raise
        members = sorted(ranks) if ranks is not None else None
        number = rank.next_group
        rank.host_call("new_group", number, members=members, caller=sys._getframe(1), is_local=is_local,
                       is_on_gloo=is_on_gloo(rank.backend, *rest, **named), **_seconds(timeout))
        if is_local:
            rank.next_group = before
        rank.answers.host_call()
        return group

    original = replace("new_group", new_group)


def _replace_split_group(rank):
    """Only NCCL splits groups, and only if the job is bound to its devices. The checks are torch's, in its order."""
    if not hasattr(c10d, "split_group"):
        return

    def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None):
        rank.refuse_in_child()
        if not split_ranks:
            raise ValueError("split_ranks cannot be None or empty")
        world = c10d._get_default_group()
        if not world.bound_device_id:
            raise RuntimeError("No device associated with the default pg, not safe to split any process groups")
        parent = parent_pg or world
        if parent not in c10d._world.pg_group_ranks:
            raise ValueError(f"Group {parent} is not registered")
        places = c10d._world.pg_group_ranks[parent]
        if rank.rank not in places:
            raise ValueError(f"Global rank {rank.rank} is not part of the parent group {parent}")
        if not parent.supports_splitting:
            raise RuntimeError("No backend for the parent process group or its backend does not support splitting")
        own = _own_part(split_ranks, places[rank.rank], world.size())
        number = rank.number_of_parts(parent, split_ranks)
        members = [parent.global_rank(place) for place in own]
        if not has_order:
            members.sort()
        rank.host_call("split_group", number, members=members, caller=sys._getframe(1), parent=parent.number,
                       parts=split_ranks, **_seconds(timeout))
        rank.answers.host_call()
        if not own:
            return c10d.GroupMember.NON_GROUP_MEMBER if has_order else None
        before, rank.next_group = rank.next_group, number
        named = {"sort_ranks": False} if has_order else {}
        inherited = "cpu:gloo,cuda:nccl" if has_order and "cpu" in parent.devices else parent.backend
        try:
            return c10d._new_group_with_tag(members, timeout, backend or inherited, use_local_synchronization=True,
                                            group_desc=group_desc, **named)
        finally:
            rank.next_group = before

    replace("split_group", split_group)
    # Newer releases keep the order of the ranks and the backends of all devices, and return what new_group returns to
    # ranks that are in no part.
    has_order = "sort_ranks" in inspect.signature(c10d._new_group_with_tag).parameters


def _own_part(parts, place, world_size):
    """Returns the part that the rank is in; empty if it is in none. As torch does, checks parts up to it."""
    for part in parts:
        if len(part) == 0:
            raise ValueError("the split group cannot be empty")
        if len(part) > world_size:
            raise ValueError("the split group's size should be less or equal to the world_size set by init_process_group")
        if len(part) != len(set(part)):
            raise ValueError("the split group cannot have duplicate ranks")
        if place in part:
            return list(part)
    return []


def _replace_destroy(rank):
    def destroy_process_group(group=None):
        rank.refuse_in_child()
        is_world = group is None or group is dist.group.WORLD
        if rank.is_initialized and (isinstance(group, RecordingGroup) or is_world):
            number = rank.world if is_world else group.number
            rank.host_call("destroy_process_group", number, caller=sys._getframe(1))
            if number > 0:  # another world may follow the first one
                rank.answers.host_call()
        original(group)
        if is_world:
            rank.is_initialized = False

    original = replace("destroy_process_group", destroy_process_group)
    rank.forget = original


def replace_batch(own_rank):
    """`own_rank`: returns the rank of this process, or None if it is not known yet."""

    def batch_isend_irecv(operations):
        rank = own_rank()
        if rank is None:
            return original(operations)
        rank.begin_batch()
        try:
            return original(operations)
        finally:
            rank.end_batch()

    original = replace("batch_isend_irecv", batch_isend_irecv)
