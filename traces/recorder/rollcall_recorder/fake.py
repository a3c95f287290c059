"""Results for a rank that runs alone: those that it would get if every other rank had done exactly the same."""

import torch

from . import data_dependence, touches


class FakeAnswers:
    are_immediate = True
    is_waiting = False
    last_resort = None

    @touches.of_recorder()
    def start(self, call, blocks):
        with torch.no_grad():
            answer = getattr(self, "_" + call.op, None)
            if answer is not None:
                answer(call)
            if call.unpack is not None:
                call.unpack()
        data_dependence.received(call.filled)

    def start_batch(self, calls):
        for call in calls:
            self.start(call, blocks=False)

    def finish(self, *_):
        """Does nothing, like the others: there is nobody to tell, and nobody to wait for."""

    initialized = host_call = leave_to_parent = finish

    def are_lost(self, calls):
        return True

    def source_of(self, call):
        return 0

    def _all_reduce(self, call):
        for tensor in call.filled:
            self._reduce_equal(tensor, call)

    _all_reduce_coalesced = _reduce = _all_reduce

    @staticmethod
    def _reduce_equal(tensor, call):
        size, is_number = call.group.size(), tensor.dtype != torch.bool
        if call.reduce == "SUM" and is_number:
            tensor.mul_(size)  # integers wrap around
        elif call.reduce == "PRODUCT" and is_number:
            tensor.pow_(size)
        elif call.reduce == "BXOR" and size % 2 == 0:
            tensor.zero_()

    def _all_gather(self, call):
        for index, tensor in enumerate(call.filled):
            _copy(tensor, call.given[index * len(call.given) // len(call.filled)])

    _gather = _all_gather_coalesced = _all_gather

    def _all_gather_into_tensor(self, call):
        for output, given in zip(call.filled, call.given):
            output.view(-1).copy_(given.reshape(-1).repeat(output.numel() // max(1, given.numel())))

    def _scatter(self, call):
        if call.given:
            _copy(call.filled[0], call.given[call.group.rank()])

    def _reduce_scatter(self, call):
        _copy(call.filled[0], call.given[call.group.rank()])
        self._reduce_equal(call.filled[0], call)

    def _reduce_scatter_tensor(self, call):
        for output, given in zip(call.filled, call.given):
            count = output.numel()
            begin = call.group.rank() * count
            output.view(-1).copy_(given.reshape(-1)[begin : begin + count])
            self._reduce_equal(output, call)

    def _all_to_all(self, call):
        own = call.given[call.group.rank()]
        for output in call.filled:
            _copy(output, own)

    def _all_to_all_single(self, call):
        output, given = call.filled[0].view(-1), call.given[0].reshape(-1)
        count = min(output.numel(), given.numel())
        output[:count].copy_(given[:count])


def _copy(target, source):
    """Copies as much as fits: the simulation reports sizes that differ."""
    count = min(target.numel(), source.numel())
    target.reshape(-1)[:count] = source.reshape(-1)[:count].to(target.dtype)
