"""The record of one rank: a file of JSON values, one per line, written at once so that a killed process leaves its record.

An object is a description, written once: the header, a numbered call (kind, group, sizes, line), a group, or how the rank
ended. An event is a short array:

    ["c", call]              a blocking call; it has returned when another line follows
    ["c", call, handle]      a call that returned at once
    ["w", handle]            the rank waits for it
    ["o", handle]            a thread begins to wait for it; lines of other threads may come before the wait's end ("w")
    ["d", handle]            the script let go of a message's handle on Gloo, and the message may be lost with it
    ["f", handle]            the gradient reducer will wait for it before backward() returns
    ["b", [call, ...], handle]   calls of one batch_isend_irecv
    ["x", type, message, refused, last resort, handle]    the blocking call or wait just recorded raised; refused: before
                             any other rank could notice the call; last resort: when no rank could make progress any
                             more; handle: of a thread's wait ("o")
    ["k", kernel]            the rank's GPU computes; "s", "e", "v", and "y" describe its streams (kernels.py)
    ["r"]                    the blocking call has returned (live runs only, where the next line may be far off)

If the script uses a tensor of a call before it waits for the call: {"touch": handle, "of": "given" or "filled",
"access": "write" or "read", "site": {...}}.

Calls that the script makes while it handles an exception, in an except clause, a finally block or an __exit__, follow
{"handles": {"type": ..., "message": ..., "site": {...}}}, and those after them follow {"handles": null}.

If the rank ends because all ranks have to run again, on GPUs from the beginning: {"begins_again": true}.

Training leaves {"step": 1} at the rank's first optimizer step, and {"updated": {...}} at its end (training.py).

In live runs, a call whose tensors are small has their values as its last element.
"""

import collections
import json
import os
import sys
import threading

from .call_site import describe_error


def nothing():
    pass


class RecordFile:
    def __init__(self, path):
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._calls = {}
        self.described = []  # by number
        self.last_issued = -1
        self._kernels = {}
        self._handles = 0
        self._handled = id(None)  # the exception of the last event; to keep it would keep what its frames refer to
        self.before_event = nothing  # called when the rank is about to make a call or to wait
        self.dropped = collections.deque()  # messages whose handles the script has let go of since the last event
        self.are_lost = lambda calls: True
        self._lock = threading.Lock()

    def leave_to_parent(self):
        """In a forked process: drops what is written from now on, even the end of a script."""
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(null, self._descriptor, inheritable=False)
        os.close(null)
        self._lock = threading.Lock()  # another thread of the parent may have held it
        self.dropped.clear()

    def say(self, value):
        """Appends one line in a single write, so that lines of several threads do not mix."""
        os.write(self._descriptor, (json.dumps(value, separators=(",", ":")) + "\n").encode())

    def call_number(self, key, describe):
        """Returns the number of the call that `key` identifies. `describe` is called once, for a new call."""
        number = self._calls.get(key)
        if number is None:
            with self._lock:
                number = self._calls.get(key)  # another thread may have been faster
                if number is None:
                    number = len(self.described)
                    self.described.append({"call": number, **describe()})
                    self.say(self.described[number])
                    self._calls[key] = number
        return number

    def new_handle(self):
        with self._lock:
            self._handles += 1
            return self._handles - 1

    def kernel(self, description):
        """Writes that the rank's GPU computes."""
        key = tuple(description.values())
        number = self._kernels.get(key)
        if number is None:
            number = self._kernels[key] = len(self._kernels)
            self.say({"kernel": number, **description})
        os.write(self._descriptor, b'["k",%d]\n' % number)

    def note_dropped(self):
        """Writes which messages the script has dropped. Called before time passes, and not at once: the garbage
        collector frees objects anywhere, and after the last event it does not matter."""
        while self.dropped:
            calls = self.dropped.popleft()
            if self.are_lost(calls):
                os.write(self._descriptor, b'["d",%d]\n' % calls[0].handle)

    def _note_handled(self):
        error = sys.exc_info()[1]
        if id(error) == self._handled:
            return
        self._handled = id(error)
        described = {} if error is None else describe_error(error)
        self.say({"handles": described if "site" in described else None})

    def _begin_event(self):
        self._note_handled()
        self.note_dropped()
        self.before_event()

    def issued(self, number, handle=None, values=None):
        """Writes a call. A blocking call has no handle."""
        self._begin_event()
        self.last_issued = number
        event = ["c", number] if handle is None else ["c", number, handle]
        self.say(event if values is None else ["c", number, handle, values])

    def issued_together(self, numbers, handle):
        self._begin_event()
        self.say(["b", numbers, handle])

    def waits(self, handle):
        self._begin_event()
        os.write(self._descriptor, b'["w",%d]\n' % handle)

    def begins_to_wait(self, handle):
        """Writes that a thread waits for the call, which may never end, while other threads go on."""
        self._begin_event()
        os.write(self._descriptor, b'["o",%d]\n' % handle)

    def future_taken(self, handle):
        self._begin_event()
        os.write(self._descriptor, b'["f",%d]\n' % handle)

    def returned(self):
        os.write(self._descriptor, b'["r"]\n')


class Held:
    """What the Works of a message, or of a batch of them, hold together. Gloo takes a message back with its Work, so it
    matters when the script lets go of it."""

    __slots__ = ("calls", "is_waited", "_record")

    def __init__(self, record):
        self._record, self.calls, self.is_waited = record, [], False

    def __del__(self):
        if self.calls and self.calls[0].handle is not None and not self.is_waited:
            self._record.dropped.append(self.calls)
