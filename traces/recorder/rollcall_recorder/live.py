"""Records a real job: wraps the process groups that the script creates, no matter what starts its ranks.

`rollcall record --live` puts the folder `hook` on PYTHONPATH and the folder for records into ROLLCALL_RECORDS. Every
process that creates a group writes down its rank's calls, line by line, so that a killed rank leaves its record.
"""

import atexit
import ctypes
import os
import signal
import sys
import threading

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
import torch._C._distributed_c10d as bindings
from torch._C._distributed_c10d import Work

from . import install
from .call_site import describe_error
from .process_group import RecordingGroup
from .rank import Rank
from .record_file import RecordFile

METHODS = ("allreduce", "allreduce_coalesced", "broadcast", "reduce", "allgather", "allgather_coalesced",
            "_allgather_base", "gather", "scatter", "reduce_scatter", "_reduce_scatter_base", "alltoall",
            "alltoall_base", "barrier", "monitored_barrier", "send", "recv", "recv_anysource",
            "allgather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced", "all_gather_single",
            "all_gather_single_coalesced", "reduce_scatter_single", "reduce_scatter_single_coalesced", "all_to_all_single")


def _passing(name):
    def method(self, *arguments, **named):
        return getattr(self.inner, name)(*arguments, **named)

    return method


def pass_on(kind, names):
    """Gives a class methods that call those of `inner`, which its objects stand for."""
    for name in names:
        setattr(kind, name, _passing(name))


class LiveWork(Work):
    """Wraps the real Work, and notes when the rank waits for it."""

    def __init__(self, rank, call, inner, blocks, held):
        super().__init__()
        self._rank, self._call, self.inner, self._blocks, self._held = rank, call, inner, blocks, held
        self._waited = False

    def wait(self, *timeout):
        first = self._begins_to_wait()
        if first and not self._blocks:
            self._rank.record.waits(self._call.handle)
        done = self.inner.wait(*timeout)
        if first:
            self._rank.record.returned()
        return done

    def _begins_to_wait(self):
        """Returns whether nobody has waited before."""
        first, self._waited = not self._waited, True
        self._is_over()
        return first

    def _is_over(self):
        if self._held is not None:
            self._held.is_waited = True

    def is_completed(self):
        is_completed = self.inner.is_completed()
        if is_completed:
            self._is_over()
        return is_completed

    def source_rank(self):
        return self.inner._source_rank()

    _source_rank = source_rank

    def get_future(self):
        if self._begins_to_wait():
            self._rank.record.future_taken(self._call.handle)
        return self.inner.get_future()


pass_on(LiveWork, ("is_success", "exception", "synchronize", "result"))


class StandIn:
    """What a group that stands for another one, `inner`, passes on to it, but for calls."""

    def getGroupName(self):
        return self.inner.group_name

    def getGroupDesc(self):
        return self.inner.group_desc

    @property
    def _device_types(self):
        return self.inner._device_types


pass_on(StandIn, ("_get_backend", "get_backend", "shutdown", "abort", "_set_sequence_number_for_group",
                  "_get_sequence_number_for_group", "_start_coalescing", "_end_coalescing"))


class LiveGroup(StandIn, RecordingGroup):
    supports_splitting = False

    def __init__(self, inner, *place):
        super().__init__(*place)
        self.inner = inner
        self._real = threading.local()  # the call on the real group, to make when ours has been noted

    def _issue(self, call, opts, result=None, peer=None):
        blocks = self._note(call, opts, peer)
        if self._of.batch is not None and call.op in ("send", "recv"):
            self._of.batch.append(call)
        real = self._real.call()
        if real is None:
            self._of.record.returned()
            return None
        held = self.held(call)
        work = LiveWork(self._of, call, real, blocks, held)
        if held is None:
            self._recent.append(work)
        return work


def _through(name):
    noted = getattr(RecordingGroup, name)

    def method(self, *arguments, **named):
        self._real.call = lambda: getattr(self.inner, name)(*arguments, **named)
        return noted(self, *arguments, **named)

    return method


for _name in METHODS:
    if hasattr(c10d.ProcessGroup, _name):
        setattr(LiveGroup, _name, _through(_name))


class _Process:
    """The recording of this process, from the moment it knows its rank."""

    def __init__(self, folder):
        self.folder = folder
        self.rank = None
        self.backend = None

    def begin(self, rank, world_size):
        record = RecordFile(os.path.join(self.folder, f"rank{rank}.jsonl"))
        record.say({"rollcall_record": 1, "rank": rank, "world_size": world_size, "mode": "live",
                    "torch": torch.__version__, "python": sys.version.split()[0], "script": sys.argv[0],
                    "arguments": sys.argv[1:], "folder": os.getcwd()})
        self.rank = Rank(rank, world_size, record, None, keeps_values=True)
        _note_the_end(record)


def install_live(folder):
    process = _Process(folder)
    _replace_new_groups(process)
    _replace_init(process)
    _replace_groups(process)
    real_check = getattr(c10d, "_check_for_nccl_backend", None)
    if real_check is not None:
        c10d._check_for_nccl_backend = lambda group: real_check(_inner(group or c10d._get_default_group()))


def _inner(group):
    return group.inner if isinstance(group, LiveGroup) else group


def _replace_new_groups(process):
    def made(real, arguments):
        if process.rank is None:
            process.begin(real.rank(), real.size())  # with MPI, the arguments are -1
        rank = process.rank
        members = list(arguments["global_ranks_in_group"]) or list(range(rank.world_size))
        number = rank.next_group if rank.is_initialized else rank.world
        group = LiveGroup(real, rank, number, members, real.rank(), real.size())
        _replace_in_tables(real, group)
        return group

    install.replace_new_groups(made)


def _replace_in_tables(real, group):
    """Makes torch know the group as `group` from now on."""
    world = getattr(c10d, "_world", None)
    if world is None:  # torch 1.x
        for table in (c10d._pg_map, c10d._pg_names):
            table[group] = table.pop(real)
        return
    for name in ("pg_map", "pg_names", "pg_group_ranks", "pg_backend_config", "pg_to_tag"):
        table = getattr(world, name, {})
        if real in table:
            table[group] = table.pop(real)
    for groups in getattr(world, "tags_to_pg", {}).values():
        groups[:] = [group if each is real else each for each in groups]
    if hasattr(bindings, "_register_process_group"):
        bindings._unregister_process_group(real.group_name)
        bindings._register_process_group(real.group_name, group)


def _replace_init(process):
    def init_process_group(*positional, **named):
        caller = sys._getframe(1)
        is_another = process.rank is not None and not process.rank.is_initialized
        if is_another:
            process.rank.begins_world({"backend": process.backend}, caller)
        original(*positional, **named)
        if is_another:
            process.rank.record.returned()
        elif process.rank is not None:
            process.backend = dist.get_backend()
            process.rank.begins_world({"backend": process.backend}, caller)
        if process.rank is not None:
            process.rank.is_initialized = True

    original = install.replace("init_process_group", init_process_group)


def _replace_groups(process):
    def new_group(ranks=None, *rest, **named):
        rank = process.rank
        if rank is None:
            return new(ranks, *rest, **named)
        is_local = bool(named.get("use_local_synchronization"))
        before, rank.next_group = rank.next_group, rank.number_of_group(ranks, is_local)
        members = sorted(ranks) if ranks is not None else None
        rank.host_call("new_group", rank.next_group, members=members, caller=sys._getframe(1), is_local=is_local,
                       is_on_gloo=install.is_on_gloo(process.backend, *rest[1:], **named))
        try:
            group = new(ranks, *rest, **named)
        finally:
            rank.next_group = before if is_local else rank.next_group
        rank.record.returned()
        return group

    def destroy_process_group(group=None):
        rank = process.rank
        is_world = group is None or group is dist.group.WORLD
        if rank is not None and (is_world or isinstance(group, LiveGroup)):
            number = rank.world if is_world else group.number
            rank.host_call("destroy_process_group", number, caller=sys._getframe(1))
        destroy(group)
        if rank is not None:
            rank.record.returned()
            rank.is_initialized = rank.is_initialized and not is_world

    new = install.replace("new_group", new_group)
    destroy = install.replace("destroy_process_group", destroy_process_group)
    install.replace_batch(lambda: process.rank)


def _note_the_end(record):
    raised = []

    def note(kind, error, trace):
        raised.append(error)
        record.say({"end": "raised", **describe_error(error)})

    install.note_uncaught(note)
    atexit.register(lambda: None if raised else record.say({"end": "finished"}))
    _note_termination(record)


def _note_termination(record):
    """Notes a termination: a launcher terminates the other ranks when one has failed. Python's own handlers do not
    run while the main thread waits in C++, but the wakeup descriptor still gets the signal's number."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        return
    signal.signal(signal.SIGTERM, lambda *_: None)

    def serve():
        while True:
            if signal.SIGTERM in os.read(read, 64):
                record.say({"end": "terminated"})
                ctypes.CDLL(None).signal(signal.SIGTERM, None)  # SIG_DFL
                os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=serve, daemon=True).start()
