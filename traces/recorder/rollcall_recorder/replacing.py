"""Replaces functions of torch and of Python by our own."""

import functools
import sys


def replace_in(owner, name, function):
    """Replaces a function of a class or a module by one that looks like it, and returns the original."""
    original = getattr(owner, name)
    setattr(owner, name, functools.update_wrapper(function, original))
    return original


def replace_everywhere(module, functions):
    """Replaces functions of a module, by name, in the module itself and in all modules of torch that imported them
    from it."""
    originals = {name: getattr(module, name) for name in functions}
    for name in functions:
        setattr(module, name, functions[name])
    for other in list(sys.modules.values()):
        known = getattr(other, "__dict__", {})
        if known.get("__name__", "").split(".")[0] == "torch":
            for name in [name for name, original in originals.items() if known.get(name) is original]:
                setattr(other, name, functions[name])
