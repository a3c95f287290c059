"""Threads of a rank that call at the same time. The simulator knows one rank with one clock, so the thread that asks it for an
answer first lets the others come as far as they can alone."""

import os
import threading
from time import monotonic, sleep  # the real ones: ranks sleep in simulated time

OURS = "rollcall"  # the name of the recorder's own threads
_NEVER_CALL = ("tqdm._monitor", "torch.utils.data._utils.pin_memory")  # modules whose threads do not communicate
_TIMES, _BETWEEN = 3, 0.001  # a thread that stands still as often has come as far as it can
_LONGEST = 1.0  # one that computes for longer is not waited for


def others():
    """The threads of this process that may call as well."""
    me = threading.current_thread()
    return [thread for thread in threading.enumerate()
            if thread is not me and thread.name != OURS and _home(thread) not in _NEVER_CALL]


def let_go_on(blocked):
    """Returns when every other thread has ended or stands still: on a lock, in a read, or in one of our calls, as those of
    `blocked` do, by identifier."""
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
    """Whether it runs, and how much it has computed."""
    number = os.getpid() if thread is threading.main_thread() else thread.native_id
    try:
        with open(f"/proc/self/task/{number}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
        with open(f"/proc/self/task/{number}/schedstat", "rb") as schedule:
            return fields[0] == b"R", schedule.read()
    except OSError:
        return False, b""  # it has ended
