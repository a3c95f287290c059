"""Answers from rollcall's simulator, over a socket: the true results of the collectives of all ranks.

A message is a line of JSON, followed by as many bytes as it says: the elements of the given tensors, or of the filled
ones. A call is described once, as in the record. There is one question at a time: a waiting rank is answered when the
simulator reaches it. If several threads wait at the same time, one of them asks for whichever of their calls completes
first. If no rank can make progress any more, the answer comes when the real backend would give up; if it never does,
rollcall ends the process. An answer also brings the results of other calls that have completed, because a call does not
have to be waited for: {"bytes":4,"also":[[ticket,bytes],...]}.
"""

import builtins
import json
import os
import signal
import socket
import sys
import threading

import torch

from . import data_dependence, signals, threads, touches
from .call_site import call_site
from .record_file import nothing


class SimulatorError(RuntimeError):
    """An error that the simulated backend reports, of a type that Python itself does not have."""


class _Wait:
    """A thread's wait for a call."""

    def __init__(self):
        self.thread = threading.get_ident()
        self.is_over = False
        self.error = None


class SimulatedAnswers:
    are_immediate = False
    last_resort = None  # the last error that the rank got when no rank could make progress any more

    def __init__(self, address, rank, record):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(address)
        self._lines = self._socket.makefile("rb")
        self._record = record
        self._said = 0  # calls that the simulator knows
        self._tickets = 0
        self._open = {}  # by ticket: calls that have not been answered
        self._sources = {}
        self._waits = {}  # by ticket
        self.is_waiting = False  # in a call, until other ranks have come
        self._before_saying = nothing
        self._create_locks()
        self._say({"rank": rank})

    def _create_locks(self):
        self._lock = threading.RLock()
        self._turn = threading.Condition(self._lock)
        self._is_asking = False  # one thread is asking, for all of them

    def leave_to_parent(self, refuse):
        """In a forked process: its words and its parent's would mix. Other threads of the parent may have held the
        locks."""
        self._before_saying = refuse
        self._create_locks()

    def initialized(self, backend, timeout, is_eager):
        """Returns when every rank of the job has called init_process_group."""
        said = {} if timeout is None else {"timeout": timeout.total_seconds()}
        if is_eager:
            said["eager"] = True
        self._ask({"init": backend, "torch": torch.__version__,
                   "debug": os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF"),
                   "site": call_site(sys._getframe(1)).describe(), **said}, is_call=False)

    def start(self, call, blocks):
        with self._lock:
            ticket = self._issue(call, blocks)
            if not blocks:
                self._ask_for([ticket])
        if blocks:
            self._finish(ticket)

    def start_batch(self, calls):
        with signals.put_off(), self._lock:
            self._describe()
            tickets = [self._new_ticket(call) for call in calls]
            payloads = [_bytes_of(call.given) for call in calls]
            self._say({"batch": [call.number for call in calls], "tickets": tickets,
                       "bytes": [len(payload) for payload in payloads]}, b"".join(payloads))
            self._ask_for(tickets)

    def _ask_for(self, tickets):
        """Raises the backend's error if it refuses the calls, before any rank waits for them."""
        try:
            self._answer()
        except BaseException:
            for ticket in tickets:
                self._open.pop(ticket, None)
            raise

    def finish(self, call):
        with self._lock:
            tickets = self._tickets_of([call])
        for ticket in tickets:
            self._finish(ticket)

    def are_lost(self, calls):
        """Returns whether any of these messages may be lost if the script lets go of its handle now."""
        with signals.put_off(), self._lock:
            tickets = self._tickets_of(calls)
            for ticket in tickets:
                del self._open[ticket]
            if not tickets:
                return False
            return self._ask({"drop": tickets}, is_call=False, waits=False)["lost"]

    def source_of(self, call):
        return self._sources.get(id(call), call.peer)

    def host_call(self):
        """Makes the call about a group that was written down last."""
        with signals.put_off(), self._lock:
            self._describe()
            self._ask({"host": self._record.last_issued})

    def ask_store(self, question):
        """Asks the store. Store calls are not in the record, so their errors are not recorded as a call's exception."""
        self._record.note_dropped()
        return self._ask(question, is_call=False)

    def sleep(self, seconds):
        """Advances the rank's clock; other ranks may give up waiting for it."""
        self._record.note_dropped()
        self._ask({"sleep": seconds}, is_call=False, waits=False)

    def _ask(self, question, is_call=True, waits=True):
        with signals.put_off(), self._lock:
            self._say(question)
            return self._answer(is_call, waits)

    def _describe(self):
        while self._said < len(self._record.described):
            self._say(self._record.described[self._said])
            self._said += 1

    def _new_ticket(self, call):
        self._tickets += 1
        self._open[self._tickets] = call
        return self._tickets

    def _tickets_of(self, calls):
        return [ticket for ticket, each in self._open.items() if any(each is call for call in calls)]

    def _issue(self, call, blocks):
        self._describe()
        ticket = self._new_ticket(call)
        payload = _bytes_of(call.given)
        self._say({"issue": call.number, "ticket": ticket, "bytes": len(payload), "blocks": int(blocks)}, payload)
        return ticket

    def _finish(self, ticket):
        wait = _Wait()
        with self._lock:
            if ticket not in self._open:
                return  # another thread's answer has already brought it
            self._waits[ticket] = wait
        while not wait.is_over:
            with self._turn:
                while self._is_asking and not wait.is_over:
                    self._turn.wait()
                if wait.is_over:
                    break
                self._is_asking = True
            try:
                threads.let_go_on(self._waiting_threads)
                with self._lock:
                    if not wait.is_over:
                        self._ask_for_any()
            finally:
                with self._turn:
                    self._is_asking = False
                    self._turn.notify_all()
        if wait.error is not None:
            raise wait.error

    def _waiting_threads(self):
        with self._lock:
            return {wait.thread for wait in self._waits.values()}

    def _ask_for_any(self):
        self._say({"finish": sorted(self._waits)})
        answer = self._read()
        call, wait = self._open.pop(answer["ticket"]), self._waits.pop(answer["ticket"])
        wait.is_over = True
        try:
            self._take(answer, call.filled, handle=call.handle)
            self._has_come(call, answer.get("source"))
        except BaseException as error:
            wait.error = error  # its thread raises it

    def _has_come(self, call, source):
        if source is not None:
            self._sources[id(call)] = source
        if call.unpack is not None:
            call.unpack()
        data_dependence.received(call.filled)

    def _say(self, message, payload=b""):
        self._before_saying()
        try:
            self._socket.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n" + payload)
        except OSError:
            _wait_to_be_ended()

    def _answer(self, is_call=True, waits=True):
        return self._take(self._read(waits), [], is_call)

    def _read(self, waits=True):
        self.is_waiting = waits
        try:
            line = self._lines.readline()
        except OSError:
            line = b""
        self.is_waiting = False
        if not line:
            _wait_to_be_ended()
        answer = json.loads(line)
        if "killed" in answer:  # as the real backend does to a process that receives more than it expects
            if answer["message"]:
                os.write(2, answer["message"].encode() + b"\n")
            os.kill(os.getpid(), getattr(signal, answer["killed"]))
            threading.Event().wait()
        return answer

    def _take(self, answer, filled, is_call=True, handle=None):
        if "error" in answer:
            self._raise(answer, is_call, handle)
        payload = self._lines.read(answer["bytes"])
        if payload:
            _fill(filled, payload)
        for ticket, size, *source in answer.get("also", ()):
            payload = self._lines.read(size)
            call = self._open.pop(ticket)
            if payload:
                _fill(call.filled, payload)
            self._has_come(call, source[0] if source else None)
            if ticket in self._waits:
                self._waits.pop(ticket).is_over = True
        return answer

    def _raise(self, answer, is_call, handle):
        is_last_resort = answer.get("last_resort", False)
        if is_call:
            self._record.say(["x", answer["error"], answer["message"][:2000], answer["refused"], is_last_resort,
                              -1 if handle is None else handle])
        if is_last_resort:
            self.last_resort = answer["message"]
        raise _exception_type(answer["error"])(answer["message"])


def _exception_type(name):
    """Returns Python's type, or torch.distributed's: older releases raise a RuntimeError where newer ones have a
    type."""
    if name.startswith("torch.distributed."):
        return getattr(torch.distributed, name.rpartition(".")[2], RuntimeError)
    return getattr(builtins, name, SimulatorError)


def _wait_to_be_ended():
    """Waits: the simulation is over, and the launcher is about to ask where the process is."""
    threading.Event().wait()


@touches.of_recorder()
def _bytes_of(tensors):
    if any(tensor.is_meta for tensor in tensors):
        return b""
    return b"".join(flat_bytes(tensor).numpy().tobytes() for tensor in tensors)


def flat_bytes(tensor):
    """Returns the tensor's elements as a flat tensor of bytes."""
    if tensor.is_meta:
        raise NotImplementedError("rollcall: a tensor on device meta has no values to communicate")
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8) if flat.numel() else torch.empty(0, dtype=torch.uint8)


@touches.of_recorder()
def _fill(tensors, payload):
    data = torch.frombuffer(bytearray(payload), dtype=torch.uint8)
    at = 0
    with torch.no_grad():
        for tensor in tensors:
            if tensor.is_meta:
                return
            count = tensor.numel() * tensor.element_size()
            part = data[at : at + count].clone().view(tensor.dtype)
            tensor.copy_(part.view(tensor.shape))
            at += count
