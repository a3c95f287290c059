"""The ring of one rank: its last calls in a file that is mapped into memory, which outlives the process.

    page 0      16 words of 8 bytes: the header
    records     CAPACITY records of 8 words
    table       lines of JSON, each written once: the job, groups, and kinds of calls

A word is written at once, and nothing is ever locked or sent: a call costs two writes to memory. A reader may find a
half-written record while the rank runs; its number, which is written with it, says which call it belongs to. All numbers
have this machine's byte order (little-endian). traces/formats/ring.cc reads the file.
"""

import ctypes
import itertools
import json
import mmap
import os
import struct
import sys
import sysconfig
import time

native = None
if sys.version_info >= (3, 9) and not sysconfig.get_config_var("Py_GIL_DISABLED") and not os.environ.get("ROLLCALL_NO_NATIVE"):
    try:
        from . import native
    except ImportError:  # another processor, or a package without it: the slower Python version is used
        pass

_VERSION = 1
_PAGE = 4096
CAPACITY = 4096  # a power of two
_RECORD = struct.Struct("<8Q")
_MASK = CAPACITY - 1
_PACK, _NOW = _RECORD.pack_into, time.time_ns
_TABLE = 1 << 20

# Words of the header.
_TABLE_USED, _ISSUED, _HEARTBEAT, _END, _FINISHED, _ASKED, _ANSWERED, _PLACE, _STEPS = 6, 7, 8, 9, 10, 11, 12, 14, 15

RUNNING, ENDED, RAISED = 0, 1, 2
IS_MESSAGE, IS_ABOUT_GROUPS, HAS_FAILED = 1, 2, 4


def process_of(path):
    """Returns the id of the process that writes the ring, or None if no running process does."""
    try:
        with open(path, "rb") as file:
            process = struct.unpack_from("<I", file.read(28), 24)[0]
        os.kill(process, 0)
        return process
    except (OSError, struct.error):
        return None


class Ring:
    def __init__(self, path, rank, world_size, about):
        part = f"{path}.{os.getpid()}"
        size = _PAGE + CAPACITY * _RECORD.size + _TABLE
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)  # a full disk raises an error here instead of a signal later
            self._memory = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        self._words = memoryview(self._memory).cast("Q")
        self._table = _PAGE + CAPACITY * _RECORD.size
        self._numbers = itertools.count(1)
        self._described = 0
        struct.pack_into("<8sIIIIIIQQ", self._memory, 0, b"rollcall", _VERSION, _RECORD.size, rank, world_size, os.getpid(),
                         CAPACITY, self._table, _TABLE)
        self.beat()
        self.describe(about)
        if native is not None:
            native.begin(ctypes.addressof(ctypes.c_char.from_buffer(self._memory)), CAPACITY)
            self.issue, self.finish = native.issue, native.finish
        os.rename(part, path)  # no reader sees half a header

    def describe(self, value):
        """Adds a line to the table. Returns False if the table is full; then calls refer to entries that do not
        exist."""
        line = (json.dumps(value, separators=(",", ":")) + "\n").encode()
        used = self._words[_TABLE_USED]
        if used + len(line) > _TABLE:
            return False
        begin = self._table + used
        self._memory[begin:begin + len(line)] = line
        self._words[_TABLE_USED] = used + len(line)
        return True

    def describe_call(self, value):
        """Returns the number that records have for the call, or 0 if there is no room to describe it."""
        if not self.describe({"call": self._described + 1, **value}):
            return 0
        self._described += 1
        return self._described

    def issue(self, call, group, seq, flags):
        """Writes a new record, and returns its number."""
        number = next(self._numbers)
        _PACK(self._memory, _PAGE + (number & _MASK) * 64, number, _NOW(), 0, 0, call | group << 32, seq, flags, 0)
        self._words[_ISSUED] = number
        return number

    def finish(self, number, failed=False):
        place = _PAGE // 8 + (number & _MASK) * 8
        words = self._words
        if words[place] == number and words[place + 2] == 0:
            if failed:
                words[place + 6] |= HAS_FAILED
            words[place + 2] = _NOW()
            words[_FINISHED] += 1

    def beat(self, place=0):
        """Says that the observer is alive. `place`: a number for where the program is."""
        self._words[_HEARTBEAT] = time.time_ns()
        self._words[_PLACE] = place

    def stepped(self, steps):
        """Notes that an optimizer has made this many steps; of several optimizers, the one with the most steps
        counts."""
        if steps > self._words[_STEPS]:
            self._words[_STEPS] = steps

    def ends(self, how):
        self._words[_END] = how

    def question(self):
        """Returns the supervisor's question where the rank is, or None if there is no new one."""
        asked = self._words[_ASKED]
        return asked if asked != self._words[_ANSWERED] else None

    def answered(self, question):
        self._words[_ANSWERED] = question
