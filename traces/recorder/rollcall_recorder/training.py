"""Notes which parameters the script's optimizers have stepped. This finds ranks that trained without communicating,
and replicas of DDP that drifted apart: neither makes a wrong call to torch.distributed.

The record gets {"step": 1} at the first step of the rank, and at its end {"updated": {"parameters": 124, "steps": 40,
"began": "1c...", "digest": "9f...", "site": {...}, "replicas": [...]}}: the number of parameters, digests of their values
before the first step and at the end, and for each DDP model {"ranks": [0, 1], "parameters": 124, "digest": "9f...",
"site": {...}}.
"""

import contextlib
import hashlib
import importlib
import sys

import torch
import torch.distributed as dist

from .call_site import call_site
from .replacing import replace_in
from .simulator import flat_bytes


class Training:
    def __init__(self, record):
        self._record = record
        self._optimizers = {}  # by id; kept alive, so that no other object gets the id
        self._steps = 0
        self._site = None
        self._began = ""  # digest of what the first optimizer steps, before it does
        self._versions = {}  # of parameters after their last step, by id
        self._replicas = []

    def begins(self, optimizer):
        if not self._began:
            self._began = _digest_of(_parameters_of([optimizer]))

    def wrapped(self, model):
        ignored = getattr(model, "parameters_to_ignore", ())
        parameters = [parameter for name, parameter in model.module.named_parameters() if name not in ignored]
        ranks = dist.get_process_group_ranks(model.process_group)  # it may be destroyed by the end, and the model as well
        model._rollcall_hooks = []
        self._replicas.append((parameters, ranks, model._rollcall_hooks, call_site(sys._getframe(1)).describe()))

    def stepped(self, optimizer):
        self._steps += 1
        if self._site is None:
            self._site = call_site(sys._getframe(1)).describe()
            self._record.say({"step": 1})
        self._optimizers.setdefault(id(optimizer), optimizer)
        for parameter in _parameters_of([optimizer]):
            self._versions[id(parameter)] = parameter._version

    def end(self):
        parameters = _parameters_of(self._optimizers.values())
        if parameters:
            self._record.say({"updated": {"parameters": len(parameters), "steps": self._steps, "began": self._began,
                                          "digest": _digest_of(parameters), "site": self._site,
                                          "replicas": list(self._replicas_at_end())}})

    def _replicas_at_end(self):
        for parameters, ranks, hooks, site in self._replicas:
            stepped = [each for each in parameters if each.requires_grad and id(each) in self._versions]
            means_to_differ = any("local" in name.lower() for name in hooks)  # between two averages of local SGD
            # If something has changed them since, ranks may differ: the best ones are often loaded on one rank only.
            is_as_stepped = all(each._version == self._versions[id(each)] for each in stepped)
            if stepped and is_as_stepped and not means_to_differ:
                yield {"ranks": ranks, "parameters": len(stepped), "digest": _digest_of(stepped), "site": site}


def _parameters_of(optimizers):
    """Returns each parameter once, in the order of the optimizers' groups."""
    return list({id(parameter): parameter for optimizer in optimizers for group in optimizer.param_groups
                 for parameter in group["params"]}.values())


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
    _call_before_steps(training.begins)
    _note_replicas(training.wrapped)
    if kernels is not None:
        _call_after_steps(kernels.stepped)
    try:
        yield
    finally:
        if kernels is not None:
            kernels.end()
        training.end()


def _note_replicas(note):
    def __init__(self, *arguments, **named):
        construct(self, *arguments, **named)
        note(self)

    def register_comm_hook(self, state, hook):
        register(self, state, hook)
        self._rollcall_hooks += [type(state).__name__, getattr(hook, "__name__", "")]

    model = torch.nn.parallel.DistributedDataParallel
    construct = replace_in(model, "__init__", __init__)
    register = replace_in(model, "register_comm_hook", register_comm_hook)


def _call_before_steps(note):
    register = getattr(importlib.import_module("torch.optim.optimizer"), "register_optimizer_step_pre_hook", None)
    if register is not None:  # since 2.0
        register(lambda optimizer, arguments, named: note(optimizer))


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
