"""One rank of a recorded run: its record, who answers its calls, and what the patches need to know."""

import os
import zlib

from . import claims
from .call_site import call_site
from .store import store_of
from .touches import Touches


_LOCAL = 1_000_000  # numbers of groups that only their members make begin here


class Rank:
    def __init__(self, rank, world_size, record, answers, keeps_values=False):
        self.rank, self.world_size = rank, world_size
        self.record, self.answers = record, answers
        self.local_rank = int(os.environ.get("LOCAL_RANK", rank))
        self.is_initialized = False
        self.next_group = 0  # the record's number of the group made last
        self.local_groups = {}  # how many of these members
        self.backend = None  # what the script asked for, for the default group
        self.world = 0  # that of the default group
        self.worlds = 0  # how often the job was initialized
        self.process_size = world_size  # ranks of the world that this process is started for
        self.forget = None  # takes a default group down that its process has left behind
        self.batch = None  # the calls of the batch_isend_irecv under way
        self.touches = Touches(record, claims.is_in_use)
        claims.look = self.touches.look
        self.kernels = None  # what its GPU computes, where that is recorded
        self._callers, self._says_threads = set(), False  # the threads that have called
        self._keeps_values = keeps_values
        self._process = os.getpid()

    def default_store(self):
        return store_of(self)

    def begins_world(self, init, caller):
        """The job is initialized, perhaps not for the first time: then its world is a group like others. Whether it is
        another one."""
        self.worlds += 1
        self.record.say({"init": {**init, "site": call_site(caller).describe()}})
        if self.worlds > 1:
            self.world = self._another_world(list(range(self.process_size)), caller)
        return self.worlds > 1

    def _another_world(self, members, caller):
        """Its number: it is a group like others."""
        self.next_group += 1
        self.host_call("new_group", self.next_group, caller, members)
        return self.next_group

    def begins_process(self, size):
        """The script starts `size` ranks, of which this is one."""
        self.process_size = size

    def skips_process(self, size, caller):
        """The same, without this one: the world that they make is a group that this rank is not in."""
        self.worlds += 1
        members = list(range(size))
        self.answers.new_group(self._another_world(members, caller), members, None)

    def ends_process(self):
        """The next one begins without a default group."""
        self.process_size = self.world_size
        if self.is_initialized:
            self.forget()
            self.is_initialized = False

    def is_called_by(self, thread):
        """Which of several threads calls first depends on what they wait for, and a rank that runs alone waits for nothing."""
        self._callers.add(thread)
        if len(self._callers) == 2 and not self._says_threads:
            self._says_threads = True
            self.record.say({"threads": True})

    def refuse_in_child(self):
        """A forked child shares the record and the answers of its parent, and must not touch them."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"rollcall: a process that rank {self.rank} forked calls torch.distributed; only the rank's own calls "
                "can be recorded")

    def start(self, call, blocks):
        if self.kernels is not None:
            self.kernels.communicates([*call.given, *call.filled])
        if self.batch is not None and call.op in ("send", "recv"):
            self.batch.append(call)
            return
        self.answers.start(call, blocks)
        if not blocks and call.is_scripts:
            self.touches.begin(call)

    def begin_batch(self):
        self.batch = []

    def end_batch(self):
        calls = self.end_live_batch()
        if calls:
            self.answers.start_batch(calls)
            for call in calls:
                if call.is_scripts:
                    self.touches.begin(call)

    def end_live_batch(self):
        """The calls of the batch, written down."""
        calls, self.batch = self.batch, None
        if calls:
            handle = self.record.new_handle()
            for call in calls:
                call.handle = handle
            self.record.issued_together([call.number for call in calls], handle)
        return calls

    def values_of(self, call, limit):
        if not self._keeps_values or sum(tensor.numel() for tensor in call.given) > limit:
            return None
        if any(tensor.is_meta or tensor.dtype.is_complex or tensor.is_cuda for tensor in call.given):
            return None
        return [value for tensor in call.given for value in tensor.detach().reshape(-1).tolist()]

    def number_of_group(self, members, is_local):
        """Of the group about to be made. All ranks count alike, but for groups that only their members make."""
        if not is_local:
            return self.next_group + 1
        key = tuple(range(self.world_size) if members is None else members)
        self.local_groups[key] = again = self.local_groups.get(key, 0) + 1
        return _LOCAL + zlib.crc32(f"{list(key)} {again}".encode())

    def host_call(self, op, number, caller, members=None, timeout_s=None, is_local=False):
        """A call about a group."""
        site = call_site(caller)
        key = (op, number, site.key())
        described = {"op": op, "group": number, "site": site.describe()}
        if op == "new_group":
            described["ranks"] = members if members is not None else list(range(self.world_size))
        if is_local:
            described["local"] = True
        if timeout_s is not None:
            described["timeout"] = timeout_s
        self.record.issued(self.record.call_number(key, lambda: described))
