"""On PYTHONPATH of a job that is recorded or watched while it runs: waits for torch to be imported, and then has
torch.distributed recorded or observed."""

import importlib.abc
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds torch as Python would, and installs the recorder once torch is fully imported, which includes
    torch.distributed."""

    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _install(module)

        spec.loader.exec_module = exec_module
        return spec


def _install(torch):
    importlib.import_module("torch.distributed")
    if not torch.distributed.is_available():
        return
    sys.path.append(os.path.dirname(os.path.dirname(_HERE)))
    if os.environ.get("ROLLCALL_RINGS"):
        from rollcall_recorder.observer import install_observer

        install_observer(os.environ["ROLLCALL_RINGS"])
    else:
        from rollcall_recorder.live import install_live

        install_live(os.environ["ROLLCALL_RECORDS"])


if os.environ.get("ROLLCALL_RECORDS") or os.environ.get("ROLLCALL_RINGS"):
    sys.meta_path.insert(0, _Finder())

# Imports the module of this name that Python would have found without us.
sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != _HERE]
_own = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError as error:
    if _own is not None:
        sys.modules["sitecustomize"] = _own  # the import system removes it and puts it back
    if error.name != "sitecustomize":
        raise
