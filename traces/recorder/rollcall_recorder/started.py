"""Pretends GPUs in the processes that the script starts with multiprocessing. Forked ones inherit the pretending; those
that are spawned, or forked by a fork server, begin with a new Python, which is told here.

Other programs that the script starts are left alone.
"""

import functools
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

    def import_torch(execute, module):
        with hidden_gpus.hidden():
            execute(module)
            module.cuda.is_available()
        from . import pretended_cuda

        pretended_cuda.install(count)

    sys.meta_path.insert(0, AtImport("torch", import_torch))


class AtImport(importlib.abc.MetaPathFinder):
    """Finds a module as Python would, and calls `import_it(execute, module)` to import it."""

    def __init__(self, name, import_it):
        self._name, self._import_it = name, import_it

    def find_spec(self, name, path, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)  # an import may fail, and be tried again
        if spec is not None:
            spec.loader.exec_module = functools.partial(self._import_it, spec.loader.exec_module)
        return spec
