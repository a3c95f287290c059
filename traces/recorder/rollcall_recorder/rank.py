"""One rank of a recorded run: its record, the component that answers its calls, and the state that the patches need."""

import os
import zlib

from . import device_claims
from .call_site import call_site
from .record_file import Held
from .touches import Touches


_LOCAL = 1_000_000  # first number of groups that only their members create


class Rank:
    def __init__(self, rank, world_size, record, answers, keeps_values=False):
        self.rank, self.world_size = rank, world_size
        self.record, self.answers = record, answers
        self.local_rank = int(os.environ.get("LOCAL_RANK", rank))
        self.is_initialized = False
        self.next_group = 0  # the record's number of the group made last
        self._local_groups = {}  # how many groups with these members
        self.backend = None  # the backend that the script asked for, for the default group
        self.devices = ("cpu", "cuda")  # whose tensors the default group takes
        self.world = 0  # the number of the default group
        self.worlds = 0  # how often the job was initialized
        self.process_size = world_size  # size of the world that this process was started for
        self.forget = None  # destroys a default group that its process has left behind
        self.batch = self.batch_held = None  # the calls of the current batch_isend_irecv
        self.touches = Touches(record)
        device_claims.look = self.touches.look
        self.kernels = None  # what its GPU computes, if that is recorded
        self._callers = set()  # the threads that have made calls
        self._keeps_values = keeps_values
        self.is_forked = False  # in a process that the rank has forked
        os.register_at_fork(after_in_child=self._becomes_forked)

    def begins_world(self, init, caller):
        """Notes that the job is initialized, perhaps not for the first time: then its world is a group like others.
        Returns whether it is another world."""
        self.worlds += 1
        self.record.say({"init": {**init, "site": call_site(caller).describe()}})
        if self.worlds > 1:
            self.world = self._another_world(list(range(self.process_size)), caller)
        return self.worlds > 1

    def _another_world(self, members, caller):
        """Creates another world, and returns its number: it is a group like others."""
        self.next_group += 1
        self.host_call("new_group", self.next_group, caller, members)
        return self.next_group

    def skips_process(self, size, caller):
        """Notes that the script starts ranks without this one: their world is a group that this rank is not in."""
        self.worlds += 1
        self._another_world(list(range(size)), caller)
        self.answers.host_call()

    def ends_process(self):
        """Destroys the default group, because the next process begins without one."""
        self.process_size = self.world_size
        if self.is_initialized:
            self.forget()
            self.is_initialized = False

    def is_called_by(self, thread):
        """Notes which threads make calls. Which of several threads calls first depends on what they wait for, and a
        rank that runs alone waits for nothing."""
        if thread not in self._callers:
            self._callers.add(thread)
            if len(self._callers) == 2:
                self.record.say({"threads": True})

    def _becomes_forked(self):
        """In a process that the rank has forked, a worker of a DataLoader say: the record and the answers are its
        parent's."""
        self.is_forked = True
        self.record.leave_to_parent()
        if self.answers is not None:
            self.answers.leave_to_parent(self.refuse_in_child)

    def refuse_in_child(self):
        """Raises an error in a forked process."""
        if self.is_forked:
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
        self.batch, self.batch_held = [], Held(self.record)

    def end_batch(self):
        """Writes the calls of the batch down, and has them answered."""
        calls, self.batch = self.batch, None
        self.batch_held = None
        if not calls:
            return
        handle = self.record.new_handle()
        for call in calls:
            call.handle = handle
        self.record.issued_together([call.number for call in calls], handle)
        if self.answers is not None:
            self.answers.start_batch(calls)
            for call in calls:
                if call.is_scripts:
                    self.touches.begin(call)

    def values_of(self, call, limit):
        if not self._keeps_values or sum(tensor.numel() for tensor in call.given) > limit:
            return None
        if any(tensor.is_meta or tensor.dtype.is_complex or tensor.is_cuda for tensor in call.given):
            return None
        return [value for tensor in call.given for value in tensor.detach().reshape(-1).tolist()]

    def number_of_group(self, members, is_local):
        """Returns the number of the group about to be created. All ranks number groups alike, except groups that
        only their members create."""
        if not is_local:
            return self.next_group + 1
        return self._local_number(list(range(self.world_size) if members is None else members))

    def number_of_parts(self, parent, parts):
        """Returns the number of the groups about to be split off `parent`, the same one for all parts. Only the
        parent's members know of it."""
        if parent.number == self.world:
            self.next_group += 1
            return self.next_group
        return self._local_number((parent.number, tuple(tuple(part) for part in parts)))

    def _local_number(self, made_of):
        key = str(made_of)
        self._local_groups[key] = again = self._local_groups.get(key, 0) + 1
        return _LOCAL + zlib.crc32(f"{key} {again}".encode())

    def host_call(self, op, number, caller, members=None, timeout_s=None, is_local=False, parent=None, parts=None,
                  is_on_gloo=False):
        """Writes down a call about a group. `parts`: the ranks of the new groups inside `parent`, if it splits one."""
        site = call_site(caller)
        key = (op, number, site.key())
        described = {"op": op, "group": number, "site": site.describe()}
        if op in ("new_group", "split_group"):
            described["ranks"] = members if members is not None else list(range(self.world_size))
        if parts is not None:
            described.update(parent=parent, parts=[list(part) for part in parts])
        if is_local:
            described["local"] = True
        if is_on_gloo:
            described["on_gloo"] = True
        if timeout_s is not None:
            described["timeout"] = timeout_s
        self.record.issued(self.record.call_number(key, lambda: described))
