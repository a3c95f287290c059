"""Notes which parameters the script's optimizers have stepped. This finds ranks that trained without communicating,
which make no wrong call to torch.distributed.

The record gets {"step": 1} at the first step of the rank, and at its end {"updated": {"parameters": 124, "steps": 40,
"digest": "9f...", "site": {...}}}: the number of parameters, and a digest of their values.
"""

import contextlib
import hashlib
import importlib
import sys

import torch

from .call_site import call_site
from .simulator import flat_bytes


class Training:
    def __init__(self, record):
        self._record = record
        self._optimizers = {}  # by id; kept alive, so that no other object gets the id
        self._steps = 0
        self._site = None

    def stepped(self, optimizer):
        self._steps += 1
        if self._site is None:
            self._site = call_site(sys._getframe(1)).describe()
            self._record.say({"step": 1})
        self._optimizers.setdefault(id(optimizer), optimizer)

    def end(self):
        parameters = self._parameters()
        if parameters:
            self._record.say({"updated": {"parameters": len(parameters), "steps": self._steps,
                                          "digest": _digest_of(parameters), "site": self._site}})

    def _parameters(self):
        """Returns each parameter once, in the order of the optimizers' groups."""
        known = {}
        for optimizer in self._optimizers.values():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    known.setdefault(id(parameter), parameter)
        return list(known.values())


def _digest_of(parameters):
    """Returns a digest that is equal for equal values."""
    digest = hashlib.sha256()
    for parameter in parameters:
        digest.update(repr((tuple(parameter.shape), str(parameter.dtype))).encode())
        digest.update(_bytes_of(parameter))
    return digest.hexdigest()[:32]


def _bytes_of(parameter):
    """Returns a parameter's bytes; empty if it has no values here, as on device meta."""
    try:
        value = parameter.detach()
        return flat_bytes(value.to_local() if hasattr(value, "to_local") else value).numpy().tobytes()
    except (NotImplementedError, RuntimeError, TypeError):
        return b""


@contextlib.contextmanager
def watched(record, kernels=None):
    """Watches the training of this rank inside the context. `kernels`: what its GPU computes, if that is recorded."""
    training = Training(record)
    _call_after_steps(training.stepped)
    if kernels is not None:
        _call_after_steps(kernels.stepped)
    try:
        yield
    finally:
        if kernels is not None:
            kernels.end()
        training.end()


def _call_after_steps(note):
    module = importlib.import_module("torch.optim.optimizer")  # whose name 1.13 hides
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(lambda optimizer, arguments, named: note(optimizer))
    else:  # before 2.0, every step ends with this call for the profiler (torch/optim/optimizer.py)
        before = torch.optim.Optimizer._optimizer_step_code

        def both(optimizer):
            before(optimizer)
            note(optimizer)

        torch.optim.Optimizer._optimizer_step_code = both
