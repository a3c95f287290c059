"""Pretends GPUs in the processes that the script starts with multiprocessing. Forked ones inherit the pretending; those
that are spawned, or forked by a fork server, begin with a new Python, which is told here.

Other programs that the script starts are left alone.
"""

import importlib.abc
import importlib.util
import multiprocessing.util
import os
import sys

from . import hidden_gpus

_PARENT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def install(count):
    """Makes the Pythons that multiprocessing starts from now on pretend `count` GPUs."""
    original = multiprocessing.util.spawnv_passfds
    first = f"import sys; sys.path.append({_PARENT!r}); from rollcall_recorder.started import pretend; pretend({count}); "

    def spawnv_passfds(path, args, passfds):
        args = list(args)
        for flag in ("-c", b"-c"):
            if flag in args[:-1]:
                code = args.index(flag) + 1
                args[code] = (first if isinstance(args[code], str) else first.encode()) + args[code]
        return original(path, args, passfds)

    multiprocessing.util.spawnv_passfds = spawnv_passfds


def pretend(count):
    """Pretends GPUs once the process has imported torch: many never do."""
    sys.meta_path.insert(0, _AfterTorch(count))


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Finds torch as Python would, and pretends GPUs as soon as it is imported."""

    def __init__(self, count):
        self._count = count

    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                with hidden_gpus.hidden():
                    execute(module)
                    module.cuda.is_available()
                from . import pretended_cuda

                pretended_cuda.install(self._count)

            spec.loader.exec_module = exec_module
        return spec
