"""Supports scripts that start their ranks themselves: torch.multiprocessing.spawn, or a Process per rank.

Every rank of a recording is already a process in which the whole script runs. So of the processes that the script
starts for its ranks, each of ours runs its own in place and ignores the others. A script may do so more than once, with
at most as many ranks as are recorded.
"""

import multiprocessing.process
import sys

from .install import ScriptError


def install(rank):
    _replace_spawn(rank)
    _replace_process(rank)


def _replace_spawn(rank):
    import torch.multiprocessing as mp

    started = []

    def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
        if nprocs > rank.world_size or (nprocs < rank.world_size and not started):
            raise ScriptError(
                f"the script spawns {nprocs} ranks, but it is recorded with {rank.world_size}: "
                f"use --world-size {nprocs}")
        started.append(nprocs)
        if rank.rank < nprocs:
            rank.process_size = nprocs
            fn(rank.rank, *args)
            rank.ends_process()
        else:
            rank.skips_process(nprocs, sys._getframe(1))
        return None if join else _Joined()

    def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
        return start_processes(fn, args, nprocs, join)

    # In the package, the name of the module is that of its function.
    for module in (mp, sys.modules["torch.multiprocessing.spawn"]):
        module.spawn, module.start_processes = spawn, start_processes


class _Joined:
    """The context of processes that have all ended."""

    def join(self, timeout=None):
        return True

    def pids(self):
        return []


def _replace_process(rank):
    """Runs the k-th Process that the script itself starts as rank k, if the first one is started before the job is
    initialized."""
    base = multiprocessing.process.BaseProcess
    original_start, exitcode = base.start, base.exitcode
    started = []
    inside = []  # the process of this rank, while it runs

    def is_rank(process):
        return getattr(process, "_rollcall_rank", None) is not None

    def start(self):
        is_of_torch = sys._getframe(1).f_globals.get("__name__", "").startswith("torch.")
        if inside or is_of_torch or (rank.is_initialized and not started):
            return original_start(self)
        self._rollcall_rank = len(started)
        started.append(self)
        if self._rollcall_rank == rank.rank:
            inside.append(self)
            self.run()
            inside.clear()
        return None

    def for_others(original, answer):
        def method(self, *arguments, **named):
            return answer if is_rank(self) else original(self, *arguments, **named)

        return method

    base.start = start
    for name, answer in (("join", None), ("is_alive", False), ("terminate", None), ("kill", None), ("close", None)):
        setattr(base, name, for_others(getattr(base, name), answer))
    base.exitcode = property(lambda self: 0 if is_rank(self) else exitcode.__get__(self))
