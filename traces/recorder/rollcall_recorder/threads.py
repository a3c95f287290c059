"""Threads of a rank that make calls at the same time. The simulator knows a rank with one clock, so the thread that
asks it for an answer first lets the other threads get as far as they can on their own."""

import os
import threading
from time import monotonic, sleep  # the real ones: ranks sleep in simulated time

OURS = "rollcall"  # the name of the recorder's own threads
# Modules whose threads never run the script's functions, so they make no calls: they move data between queues, pipes
# and files. (Threads of concurrent.futures.thread and threading.Timer do run the script's functions.)
_NEVER_CALL = frozenset(("tqdm._monitor", "torch.utils.data._utils.pin_memory", "multiprocessing.queues",
                         "multiprocessing.resource_sharer", "concurrent.futures.process", "logging.handlers",
                         "tensorboard.summary.writer.event_file_writer"))
_TIMES, _BETWEEN = 3, 0.001  # a thread that is idle this many times has gotten as far as it can
_LONGEST = 1.0  # seconds; a thread that computes for longer is not waited for


def others():
    """Returns the threads of this process that may make calls as well."""
    me = threading.current_thread()
    return [thread for thread in threading.enumerate()
            if thread is not me and thread.name != OURS and _home(thread) not in _NEVER_CALL]


def let_go_on(blocked):
    """Returns when every other thread has ended or is blocked: on a lock, in a read, or in one of our calls, as the
    threads in `blocked` are, by identifier."""
    end = monotonic() + _LONGEST
    before, times = None, 0
    while times < _TIMES and monotonic() < end:
        states = [_state(thread) for thread in others() if thread.ident not in blocked()]
        if not states:
            return
        stands_still = states == before and not any(runs for runs, _ in states)
        before, times = states, times + 1 if stands_still else 0
        sleep(_BETWEEN)


def _home(thread):
    target = getattr(thread, "_target", None)
    return type(thread).__module__ if target is None else getattr(target, "__module__", None)


def _state(thread):
    """Returns whether the thread runs, and how much it has computed."""
    number = os.getpid() if thread is threading.main_thread() else thread.native_id
    try:
        with open(f"/proc/self/task/{number}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
        with open(f"/proc/self/task/{number}/schedstat", "rb") as schedule:
            return fields[0] == b"R", schedule.read()
    except OSError:
        return False, b""  # it has ended
