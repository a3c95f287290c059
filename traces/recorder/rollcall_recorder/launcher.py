"""Forks the ranks, forwards their output, and makes sure that all of them end."""

import ast
import ctypes
import importlib
import json
import os
import re
import select
import selectors
import signal
import socket
import sys
import time
import warnings

from . import child

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36  # orphaned processes become children of this process
_STACKS_S = 1.0  # how long a rank may take to say where it is


class _Process:
    """A rank, seen from outside."""

    def __init__(self, rank, pid, output, control):
        self.rank, self.pid, self.output, self.control = rank, pid, output, control
        self.rest = b""
        self.is_alive = True
        self.written = 0  # bytes of its record, and since when
        self.written_at = time.monotonic()


class Launcher:
    def __init__(self, arguments):
        self._arguments = arguments
        self._processes = []
        self._waiting = _sampled(arguments.world_size, arguments.sample) or list(range(arguments.world_size))
        self._others = sorted(set(range(arguments.world_size)) - set(self._waiting))
        self._selector = selectors.DefaultSelector()
        self._stopped = False

    def run(self):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        together = self._arguments.mode == "simulator"
        room = self._arguments.world_size if together else max(1, self._arguments.jobs)
        self._stopped = not os.read(sys.stdin.fileno(), 1)
        self._selector.register(sys.stdin, selectors.EVENT_READ, None)
        while self._waiting or self._alive():
            while self._waiting and not self._stopped and len(self._alive()) < room:
                self._start(self._waiting.pop(0))
            if self._stopped:
                self._end(self._alive())
                break
            self._listen()
            if self._others and not self._waiting and not self._alive():
                self._go_on_unless_alike()
        self._end_orphans()

    def _go_on_unless_alike(self):
        """Called when the sampled ranks have ended. If they made the same calls, the others are assumed to make
        them, too."""
        self._waiting, self._others = self._others, []
        sampled = [process.rank for process in self._processes]
        if len({_calls_of(child.record_path(self._arguments.records, rank)) for rank in sampled}) == 1:
            self._waiting = []

    def _alive(self):
        return [process for process in self._processes if process.is_alive]

    def _start(self, rank):
        read, write = os.pipe()
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            os.close(read)
            ours.close()
            for process in self._processes:
                process.control.close()
            child.run(self._arguments, rank, write, theirs)
        os.setpgid(pid, pid)
        os.close(write)
        theirs.close()
        process = _Process(rank, pid, read, ours)
        self._processes.append(process)
        self._selector.register(read, selectors.EVENT_READ, process)

    def _listen(self):
        # A rank whose output has ended is about to end, or has left its work to a child process.
        ends = any(process.output is None for process in self._alive())
        for key, _ in self._selector.select(timeout=0.02 if ends else 0.2):
            if key.data is None:
                self._stopped = True
            else:
                self._pass_on(key.data)
        for process in self._alive():
            self._reap(process, os.WNOHANG)
        if self._arguments.mode == "fake":  # otherwise the simulator knows which ranks are silent
            self._end([process for process in self._alive() if self._is_silent(process)])

    def _is_silent(self, process):
        """True if the rank has neither made a call nor ended for too long."""
        path = child.record_path(self._arguments.records, process.rank)
        size = os.path.getsize(path) if os.path.exists(path) else 0
        if size != process.written:
            process.written, process.written_at = size, time.monotonic()
        return time.monotonic() - process.written_at > self._arguments.patience / 1000

    def _pass_on(self, process):
        data = os.read(process.output, 65536)
        *lines, process.rest = (process.rest + data).split(b"\n")
        if not data and process.rest:
            lines.append(process.rest)
        for line in lines:
            sys.stderr.buffer.write(b"[rank %d] %s\n" % (process.rank, line))
        sys.stderr.buffer.flush()
        if not data:
            self._selector.unregister(process.output)
            os.close(process.output)
            process.output = None

    def _reap(self, process, options, stopped=False):
        pid, status = os.waitpid(process.pid, options)
        if pid == 0:
            return
        process.is_alive = False
        self._kill_group(process)
        self._drain(process)
        if stopped:
            return  # we killed it, which says nothing about the script
        how = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"exit": os.WEXITSTATUS(status)}
        path = child.record_path(self._arguments.records, process.rank)
        with open(path, "a", encoding="utf-8") as record:
            record.write(json.dumps({"process": how}) + "\n")

    def _drain(self, process):
        """Forwards the rest of its output. A child process that has left the group may keep the pipe open forever."""
        until = time.monotonic() + _STACKS_S
        while process.output is not None and time.monotonic() < until:
            if select.select([process.output], [], [], 0.1)[0]:
                self._pass_on(process)

    @staticmethod
    def _end_orphans():
        """Kills the processes that ranks have left behind, wherever they are."""
        while True:
            orphans = _children()
            if not orphans:
                return
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    @staticmethod
    def _kill_group(process):
        """Kills the rank and every process that it has started."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # no process of the group is left

    def _end(self, processes):
        """Asks the processes to report where they are, and ends them."""
        for process in processes:
            try:
                process.control.sendall(b"s")
            except OSError:
                pass  # it ends on its own
        until = time.monotonic() + _STACKS_S
        # None is killed before all have answered: a rank that loses its peers raises, and is no longer where it was.
        have_gone = [self._has_gone(process, until) for process in processes]
        for process, has_gone in zip(processes, have_gone):
            if not has_gone:
                self._kill_group(process)
            self._reap(process, 0, stopped=not has_gone)

    @staticmethod
    def _has_gone(process, until):
        """Waits for the process's answer; returns True if it ended on its own, which closes the connection without
        an answer."""
        process.control.settimeout(max(0.01, until - time.monotonic()))
        try:
            return process.control.recv(1) == b""
        except socket.timeout:
            return False  # it is busy in C++: its record has its last call
        except OSError:
            return True


# Words in a script that make torch 2 import its compiler: DDP's constructor does, for example.
_NEED_COMPILER = re.compile(r"\b(cuda|accelerator|compile|DistributedDataParallel|fully_shard|FullyShardedDataParallel|"
                            r"device_mesh|DeviceMesh|DTensor|pipelining|transformers|accelerate|lightning|ignite)\b")


def _sampled(world_size, count):
    """Returns the first rank, the last, and ranks at equal distances between them; empty if these would be all
    ranks."""
    if not 2 <= count < world_size:
        return []
    return sorted({index * (world_size - 1) // (count - 1) for index in range(count)})


def _calls_of(path):
    """Returns the part of a record that has to be alike: not the rank, its parameters' values, or its peak memory."""
    try:
        with open(path, encoding="utf-8") as record:
            lines = record.readlines()[1:]
    except OSError:
        return path  # equal to no other record
    return "".join(line for line in lines if not line.startswith(('{"updated"', '{"memory"')))


_MODULES_MAX = 200


def import_for(script):
    """Imports the modules of torch that the script imports in any case, once here instead of once per rank."""
    needs_compiler = False
    for source in _sources_of(script):
        needs_compiler = needs_compiler or _NEED_COMPILER.search(source) is not None
        for name in _imports_of(source):
            if name.startswith("torch."):
                _import_quietly(name)
    if needs_compiler:
        _import_quietly("torch._dynamo")


def _sources_of(script):
    """Yields the script's text and, recursively, those of the modules next to it that it imports."""
    folder, seen = os.path.dirname(os.path.abspath(script)), set()
    waiting = [script]
    while waiting and len(seen) < _MODULES_MAX:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                source = file.read()
        except OSError:
            continue  # every rank will say so
        yield source
        for name in _imports_of(source):
            beside = os.path.join(folder, *name.split("."))
            waiting += [path for path in (beside + ".py", os.path.join(beside, "__init__.py")) if os.path.isfile(path)]


def _imports_of(source):
    """Yields the modules that import statements outside of functions name."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError):
        return  # every rank will say so
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.level == 0:
            yield statement.module


def _import_quietly(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(name)
        except Exception:  # the script raises the same error, with its line
            pass


def _children():
    """Returns the processes whose parent is this one."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                    parent = stat.read().rpartition(")")[2].split()[1]
            except OSError:
                continue  # it has just ended
            if int(parent) == os.getpid():
                found.append(int(name))
    return found
