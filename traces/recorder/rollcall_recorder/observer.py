"""Observes a real job: writes a rank's calls into its ring (ring.py), and where it is when it is asked.

`rollcall watch` puts the folder `hook` on PYTHONPATH and a folder for rings into ROLLCALL_RINGS. The methods of c10d's
process groups and of Work are wrapped in place, so the groups themselves do not change. Calls that C++ makes on its own
(DDP's gradient reducer, functional collectives) bypass these methods; such callers are given a group that sends them
through Python.

Every call is written down. Its description (operation, sizes, line) is made once per place in the program and size.
"""

import atexit
import faulthandler
import functools
import inspect
import itertools
import multiprocessing
import os
import sys
import threading
import time
import traceback

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
import torch._C._distributed_c10d as bindings
from torch._C._distributed_c10d import ProcessGroup, Work

from . import install, ring
from .ring import native
from .call_site import HERE, call_site, is_users
from .live import METHODS, StandIn, pass_on
from .process_group import Call, RecordingGroup, dtype_name
from .replacing import replace_everywhere, replace_in

_BEAT_S = 0.1
_BEATS_PER_EXPECTATION = 5
_HELD_S = 2  # without a beat: then something other than Python code holds the interpreter
_FRAMES_MAX = 40
_ROOTED = frozenset(("broadcast", "reduce", "gather", "scatter"))
_MESSAGES = frozenset(("send", "recv", "recv_anysource"))
# RecordingGroup would pack their tensors for the simulator.
_COALESCED = {"allgather_into_tensor_coalesced": "all_gather_into_tensor",
              "all_gather_single_coalesced": "all_gather_into_tensor",
              "reduce_scatter_tensor_coalesced": "reduce_scatter_tensor",
              "reduce_scatter_single_coalesced": "reduce_scatter_tensor"}


class _Description:
    """Stands in for a RecordingGroup, whose methods interpret the arguments of each call."""

    def __init__(self, backend, ranks):
        self.backend, self.ranks = backend, ranks
        self.call = self.root = self.peer = None

    def _issue(self, call, opts, result=None, peer=None):
        self.call, self.peer = call, peer
        self.root = getattr(opts, "rootRank", None)

    def _issue_in_place(self, op, tensors, opts):
        self._issue(Call(op, self, tensors), opts)


class _Group:
    """A process group of this rank, in its ring. Ranks of calls are ranks inside the group, as torch passes them."""

    def __init__(self, number, ranks, own, backend):
        self.number, self.ranks, self.own, self.backend = number, ranks, own, backend
        self.calls = {}  # a call's number in the table, by its arguments and its place in the program
        self.collectives = 0
        self.messages = {}  # by peer and direction
        self.ends_on_host = "nccl" not in backend

    def next_message(self, name, arguments):
        """Returns the message's number among those in one direction."""
        lane = (name == "send", arguments[1] if len(arguments) > 2 else -1)
        number = self.messages[lane] = self.messages.get(lane, 0) + 1
        return number

    def describe(self, name, arguments, named, frame):
        """Returns the call's entry in the table."""
        described = _Description(self.backend, self.ranks)
        try:
            if name in _COALESCED:
                outputs, inputs = arguments[:2]
                described._issue(Call(_COALESCED[name], described, inputs, outputs), None)
            else:
                getattr(RecordingGroup, name)(described, *arguments, **named)
            call = described.call
            about = {"op": call.op, "in": [list(tensor.shape) for tensor in call.given],
                     "in_dtypes": [dtype_name(tensor) for tensor in call.given]}
            if call.op != "send":
                about["out"] = [list(tensor.shape) for tensor in call.filled]
                about["out_dtypes"] = [dtype_name(tensor) for tensor in call.filled]
            if call.op in ("send", "recv"):
                about["peer"] = -1 if described.peer is None else described.peer
                about["own"] = self.own
            if name in _ROOTED and described.root is not None:
                about["root"] = described.root
        except Exception:  # torch will report what is wrong with the arguments
            about = {"op": name}
        site = call_site(frame, (about.get("in_dtypes") or [None])[0])
        if site.reason:
            about["reason"] = site.reason
        about["stack"] = _stack(frame)
        return about


class _Mark:
    """An event on the stream of a GPU. It stands for the Work of a call before it for which torch returns none: a call
    on NCCL that is not async_op runs on the current stream (since 2.8: ProcessGroupNCCL.cpp, asyncOp)."""

    __slots__ = ("_event",)

    def __init__(self, device):
        self._event = torch.cuda.Event()
        self._event.record(torch.cuda.current_stream(device))

    def is_completed(self):
        return self._event.query()


def _mark_after(*arguments):
    """Returns a mark behind a call with these arguments; None if its tensors are on no GPU, or if a graph is being
    captured, which would keep the event."""
    try:
        device = _gpu_of(arguments)
        if device is None or torch.cuda.is_current_stream_capturing():
            return None
        return _Mark(device)
    except RuntimeError:  # the job will find out what is wrong with its GPU
        return None


def _gpu_of(value):
    """Returns the first GPU that has a tensor of the value, or None."""
    if isinstance(value, torch.Tensor):
        return value.device if value.is_cuda else None
    devices = map(_gpu_of, value) if isinstance(value, (list, tuple)) else ()
    return next((device for device in devices if device is not None), None)


class _Works:
    """Works that have not been seen complete. native.cc has the same functions."""

    def __init__(self):
        self.entries = {}  # by id: the work, its number, whether waiting ends on the host, its ring
        self.ring = None

    def keep(self, work, number, ends_on_host):
        self.entries[id(work)] = (work, number, ends_on_host, self.ring)

    def pending(self):
        try:
            return [entry[0] for entry in self.entries.values()]
        except RuntimeError:  # another thread has just made a call
            return []

    def let_go(self, work, failed):
        entry = self.entries.pop(id(work), None)
        if entry is not None:
            entry[3].finish(entry[1], failed)


class _Observer:
    """The ring of this process, from the moment it knows its rank."""

    def __init__(self, folder):
        self.folder = folder
        # These objects are never replaced, because the wrappers hold them.
        self.groups = {}  # by torch's group object
        self.works = native or _Works()
        self.refused = False
        self.kinds = {}  # by id of a code object: the object, and whether it is the user's
        self.forget()

    def forget(self):
        """Resets the state: a forked process has nothing to do with its parent's rank."""
        self.ring = self.rank = self.held = None
        self.calls = {}  # calls about groups, by operation and stack
        self.groups_made = 0
        self.forget_groups()
        if native is not None:
            native.begin(0, 1)
        else:
            self.works.entries.clear()

    def forget_groups(self):
        self.groups.clear()
        if native is not None:
            native.forget_groups()

    def begin(self, rank, world_size):
        if self.ring is not None or self.refused:
            return
        about = {"rollcall_ring": 1, "torch": torch.__version__, "python": sys.version.split()[0], "script": sys.argv[0]}
        try:
            self.ring = self.works.ring = ring.Ring(self.path("ring"), rank, world_size, about)
        except OSError as problem:  # the job continues without us
            self.refused = True
            print(f"rollcall: rank {rank} is not watched: {problem}", file=sys.stderr)
            return
        self._expect_another_beat()
        threading.Thread(target=self._beat, args=(self.ring,), daemon=True, name="rollcall").start()

    def begin_early(self):
        """Begins before the job is initialized if a launcher has said which rank this process is: where the rank is
        before that is worth knowing as well."""
        rank, size = _number(None, "RANK"), _number(None, "WORLD_SIZE")
        if rank is None or size is None or rank >= size or multiprocessing.parent_process() is not None:
            return
        self.rank = rank
        if ring.process_of(self.path("ring")) is None:  # otherwise the script has started this process itself
            self.begin(rank, size)

    def path(self, what):
        return os.path.join(self.folder, f"rank_{self.rank}.{what}")

    # Calls.

    def new_call(self, group, name, arguments, named, frame):
        """Returns the number of a kind of call that has not been seen before."""
        try:
            about = group.describe(name, arguments, named, frame)
        except Exception:  # whatever is strange about the call, we must not end the job
            about = {"op": name, "stack": []}
        return self.ring.describe_call(about)

    def host_call(self, op, caller):
        """Writes a call about groups. Returns its number, or None if this process has no ring."""
        if self.ring is None:
            return None
        stack = _stack(caller)
        key = (op, str(stack))
        call = self.calls.get(key)
        if call is None:
            call = self.calls[key] = self.ring.describe_call({"op": op, "stack": stack})
        return self.ring.issue(call, 0, 0, ring.IS_ABOUT_GROUPS)

    def host_call_returned(self, number):
        if number is not None and self.ring is not None:
            self.ring.finish(number)

    def add_group(self, group, ranks, own, backend, timeout):
        if self.ring is None:
            return
        self.groups_made += 1  # a job may be destroyed and initialized again
        known = _Group(self.groups_made, ranks, own, backend)
        self.groups[group] = known
        if native is not None:
            native.add_group(group, known, known.number, known.ends_on_host)
        self.ring.describe({"group": known.number, "name": str(_name_of(group)), "ranks": ranks, "backend": backend,
                            "timeout_ms": timeout})

    # The thread that answers.

    def _beat(self, own):
        for beat in itertools.count():
            time.sleep(_BEAT_S)
            own.beat(_place_of(threading.main_thread().ident))
            self._complete()
            question = own.question()
            if question is not None:
                self._say_where(own, question)
            if beat % _BEATS_PER_EXPECTATION == 0:
                self._expect_another_beat()

    def _complete(self):
        """Notes calls that have completed without being waited for. Asking never synchronizes: on GPUs, it queries
        events."""
        for work in self.works.pending():
            try:
                if not work.is_completed():
                    continue
                failed = False
            except RuntimeError:
                failed = True
            self.works.let_go(work, failed)

    def _say_where(self, own, question):
        try:
            part = self.path("stack.part")
            with open(part, "w", encoding="utf-8") as out:
                faulthandler.dump_traceback(out, all_threads=True)
            os.rename(part, self.path("stack"))
            own.answered(question)
        except OSError:
            pass  # no answer means the same

    def _expect_another_beat(self):
        """Arms a thread in C that writes where all threads are if no further beat comes because the interpreter is
        held."""
        if _taken:
            return
        try:
            if self.held is None:
                self.held = os.open(self.path("held"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
            elif os.fstat(self.held).st_size > 0:
                os.ftruncate(self.held, 0)  # that is over
            _real_later(_HELD_S, repeat=False, file=self.held)
        except (OSError, RuntimeError):
            pass


_real_later = faulthandler.dump_traceback_later
_taken = []


def _share_faulthandler():
    """Leaves faulthandler's timer, of which a process has only one, to the program if the program uses it."""

    def dump_traceback_later(*arguments, **named):
        _taken.append(True)
        return _real_later(*arguments, **named)

    faulthandler.dump_traceback_later = functools.update_wrapper(dump_traceback_later, _real_later)


def _measure(value):
    """Returns a value that is equal for equal calls: of a tensor, a list of tensors, or anything else."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.dtype
    return tuple([_measure(each) for each in value]) if isinstance(value, (list, tuple)) else None


def _stack(frame):
    frames = []
    while frame is not None and len(frames) < _FRAMES_MAX:
        code = frame.f_code
        if not code.co_filename.startswith((HERE, "<frozen")):
            frames.append([code.co_filename, frame.f_lineno, code.co_name])
        frame = frame.f_back
    return frames


def _place_of(thread):
    """Returns a number for the lines of a thread's stack, which is equal as long as none of them changes."""
    frame = sys._current_frames().get(thread)
    place = 0
    while frame is not None:
        place = hash((place, id(frame.f_code), frame.f_lineno))
        frame = frame.f_back
    return place & 0xffffffffffffffff


def _name_of(group):
    world = getattr(c10d, "_world", None)
    names = c10d._pg_names if world is None else world.pg_names
    return names.get(group, "")


def _wrap_method(observer, owner, name):
    """Wraps a method of a group. Every call of every watched job pays for this code: a microsecond is a hundred
    bytecodes."""
    original = owner.__dict__[name]
    is_rooted, is_message = name in _ROOTED, name in _MESSAGES
    if native is not None and not is_message:
        setattr(owner, name, native.method(original, name, is_rooted))
        return
    groups, keep, kinds = observer.groups, observer.works.keep, observer.kinds
    tensor, frame_of = torch.Tensor, sys._getframe

    def method(self, *arguments, **named):
        group = groups.get(self)
        if group is None:
            return original(self, *arguments, **named)
        key = [name]
        for argument in arguments:
            kind = type(argument)
            if kind is list:
                if len(argument) == 1 and type(argument[0]) is tensor:
                    key += (argument[0].shape, argument[0].dtype)
                else:
                    key.append(_measure(argument))
            elif kind is tensor:
                key += (argument.shape, argument.dtype)
            elif kind is int:
                key.append(argument)
            elif is_rooted:
                key.append(getattr(argument, "rootRank", None))
        frame, users = frame_of(1), 0
        while frame is not None and users < 2:  # a helper function of the user's may have several callers
            code = frame.f_code
            place = id(code)
            key += (place, frame.f_lasti)
            known = kinds.get(place)
            if known is None:
                known = kinds[place] = (code, is_users(code.co_filename))
            users += known[1]
            frame = frame.f_back
        key = tuple(key)
        call = group.calls.get(key)
        if call is None:
            call = group.calls[key] = observer.new_call(group, name, arguments, named, frame_of(1))
        own = observer.ring
        if is_message:
            number = own.issue(call, group.number, group.next_message(name, arguments), ring.IS_MESSAGE)
        else:
            group.collectives = seq = group.collectives + 1
            number = own.issue(call, group.number, seq, 0)
        try:
            work = original(self, *arguments, **named)
        except BaseException:
            own.finish(number, True)
            raise
        mark = work
        if mark is None and not group.ends_on_host:
            mark = _mark_after(*arguments)
        if mark is None:
            own.finish(number)
        else:
            keep(mark, number, group.ends_on_host)
        return work

    setattr(owner, name, functools.update_wrapper(method, original))


def _wrap_wait(observer):
    original = Work.__dict__["wait"]
    if native is not None:
        Work.wait = native.wait(original)
        return
    entries, let_go = observer.works.entries, observer.works.let_go

    def wait(self, *timeout, **named):
        entry = entries.get(id(self))
        if entry is None:
            return original(self, *timeout, **named)
        try:
            done = original(self, *timeout, **named)
        except BaseException:
            let_go(self, True)
            raise
        if entry[2]:
            let_go(self, False)
        return done

    Work.wait = functools.update_wrapper(wait, original)


class _Passage(StandIn, ProcessGroup):
    """Stands for a group where C++ calls it: passes calls on to Python's methods, which are observed."""

    def __init__(self, inner):
        super().__init__(inner.rank(), inner.size())
        self.inner = inner

    def getBackendName(self):
        return "rollcall"  # DDP's logger takes an object called "gloo" for Gloo's own (logger.cpp)

    name = getBackendName

    def __getattr__(self, name):
        return getattr(self.inner, name)


pass_on(_Passage, [name for name in METHODS if hasattr(ProcessGroup, name)])


def _wrap_callers_in_cpp(observer):
    """Gives passages to DDP's functions in C++."""
    for name in ("Reducer", "_broadcast_coalesced", "_verify_params_across_processes"):
        original = getattr(dist, name, None)
        if original is not None:
            replace_everywhere(dist, {name: _given_passages(observer, original)})


def _given_passages(observer, original):
    def call(*arguments, **named):
        if observer.ring is not None:
            arguments = [_passage(observer, each) for each in arguments]
            named = {name: _passage(observer, each) for name, each in named.items()}
        return original(*arguments, **named)

    return call


_passages = {}


def _passage(observer, value):
    if not isinstance(value, ProcessGroup) or value not in observer.groups:
        return value
    if value not in _passages:
        _passages[value] = _Passage(value)
    return _passages[value]


def _watch_new_groups(observer):
    def made(group, arguments):
        ranks = [int(rank) for rank in arguments["global_ranks_in_group"]] or list(range(arguments["group_size"]))
        timeout = arguments.get("timeout")
        milliseconds = int(timeout.total_seconds() * 1000) if timeout is not None else 0
        own, backend = int(arguments["group_rank"]), str(arguments.get("backend")).lower()
        observer.add_group(group, ranks, own, backend, milliseconds)
        _wrap_class(observer, type(group))
        _register_passage(observer, group)
        return group

    install.replace_new_groups(made)


def _register_passage(observer, group):
    """Registers a passage under the group's name, because functional collectives look groups up by name from C++."""
    if not hasattr(bindings, "_register_process_group") or group not in observer.groups:
        return
    try:
        name = group.group_name
        bindings._unregister_process_group(name)
        bindings._register_process_group(name, _passage(observer, group))
    except (RuntimeError, AttributeError):
        pass


def _hide_passages():
    """Returns the group itself, not its passage, to Python code that asks for a group by name."""
    original = getattr(bindings, "_resolve_process_group", None)
    if original is None:
        return

    def resolve(name):
        group = original(name)
        return group.inner if isinstance(group, _Passage) else group

    replace_everywhere(bindings, {"_resolve_process_group": functools.update_wrapper(resolve, original)})


_wrapped = set()


def _wrap_class(observer, kind):
    """Wraps the methods of a class and of its bases: in torch 1.13, the classes of backends have methods, too."""
    for owner in kind.__mro__:
        if issubclass(owner, ProcessGroup) and owner not in _wrapped and owner is not _Passage:
            _wrapped.add(owner)
            for name in METHODS:
                if name in owner.__dict__:
                    _wrap_method(observer, owner, name)


def _number(value, variable):
    """Returns the number given in a call or, if there is none, by the launcher; None if neither says."""
    if isinstance(value, int) and value >= 0:
        return value
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else None


def _wrap_init(observer):
    signature = inspect.signature(c10d.init_process_group)

    def begin(*positional, **named):
        given = signature.bind(*positional, **named).arguments
        rank, size = _number(given.get("rank"), "RANK"), _number(given.get("world_size"), "WORLD_SIZE")
        if observer.ring is None and rank is not None and size is not None:
            observer.rank = rank
            observer.begin(rank, size)

    _wrap_call_about_groups(observer, "init_process_group", begin)


def _wrap_call_about_groups(observer, name, before=lambda *_, **__: None):
    original = getattr(c10d, name, None)
    if original is None:
        return

    def about_groups(*positional, **named):
        before(*positional, **named)
        number = observer.host_call(name, sys._getframe(1))
        result = original(*positional, **named)
        observer.host_call_returned(number)
        if name == "destroy_process_group" and not dist.is_initialized():
            observer.forget_groups()
            _passages.clear()
        return result

    install.replace(name, about_groups)


def _count_steps(observer):
    """Counts steps: every optimizer class gets a counter around `step` when its first object is made."""

    def counting(step):
        def counted(self, *arguments, **named):
            result = step(self, *arguments, **named)
            steps = self.__dict__["_rollcall_steps"] = self.__dict__.get("_rollcall_steps", 0) + 1
            if observer.ring is not None:
                observer.ring.stepped(steps)
            return result

        counted.of_rollcall = True
        return functools.update_wrapper(counted, step)

    def init(self, *arguments, **named):
        original(self, *arguments, **named)
        kind = type(self)
        if not hasattr(kind.step, "of_rollcall"):
            kind.step = counting(kind.step)

    original = replace_in(torch.optim.Optimizer, "__init__", init)


def _note_the_end(observer):
    def note(kind, error, trace):
        if observer.ring is not None:
            observer.ring.ends(ring.RAISED)
            try:
                with open(observer.path("error"), "w", encoding="utf-8") as out:
                    out.write("".join(traceback.format_exception(kind, error, trace)))
            except OSError:
                pass

    def ended():
        if observer.ring is not None and not os.path.exists(observer.path("error")):
            observer.ring.ends(ring.ENDED)

    install.note_uncaught(note)
    _note_errors_of_spawned(note)
    atexit.register(ended)


def _note_errors_of_spawned(note):
    """torch.multiprocessing.spawn catches what its processes raise, and no hook is called.
    (torch/multiprocessing/spawn.py)"""
    spawn = sys.modules.get("torch.multiprocessing.spawn")
    if not hasattr(spawn, "_wrap"):
        return

    def _wrap(function, *rest):
        def noted(*arguments):
            try:
                return function(*arguments)
            except Exception:
                note(*sys.exc_info())
                raise

        return original(noted, *rest)

    original = replace_in(spawn, "_wrap", _wrap)


def install_observer(folder):
    observer = _Observer(folder)
    if native is not None:
        native.set_up(torch.Tensor, is_users, observer.new_call, _mark_after)
    _wrap_class(observer, ProcessGroup)
    _wrap_wait(observer)
    _wrap_callers_in_cpp(observer)
    _hide_passages()
    _watch_new_groups(observer)
    _wrap_init(observer)
    for name in ("new_group", "split_group", "destroy_process_group"):
        _wrap_call_about_groups(observer, name)
    _count_steps(observer)
    _note_the_end(observer)
    _share_faulthandler()
    os.register_at_fork(after_in_child=observer.forget)
    observer.begin_early()
    return observer
