"""The script's handlers of signals. Python runs a handler, which may raise an error, between two of its own instructions, so
never inside a call of torch's C++. Recorded calls are Python and would end halfway: handlers are put off until they are over.
"""

import signal
import threading

from .replacing import replace_in

_depth = 0  # of recorded calls that the main thread is in; no other thread runs handlers
_late = []  # what to run afterwards


def install():
    """Handlers that are set from now on can be put off."""

    def set_handler(number, handler):
        return _of_script(set_original(number, _Handler(handler) if callable(handler) else handler))

    def get_handler(number):
        return _of_script(get_original(number))

    set_original = replace_in(signal, "signal", set_handler)
    get_original = replace_in(signal, "getsignal", get_handler)


class put_off:
    """Handlers run at the end of this context. A class, because a generator would be seen in tracebacks."""

    __slots__ = ("_counts",)

    def __enter__(self):
        global _depth
        self._counts = threading.current_thread() is threading.main_thread()
        _depth += self._counts

    def __exit__(self, *_):
        global _depth
        if not self._counts:
            return
        _depth -= 1
        while _depth == 0 and _late:
            handler, number, frame = _late.pop(0)
            handler(number, frame)


class _Handler:
    def __init__(self, of_script):
        self.of_script = of_script

    def __call__(self, number, frame):
        if _depth > 0:
            _late.append((self.of_script, number, frame))
        else:
            self.of_script(number, frame)


def _of_script(handler):
    return handler.of_script if isinstance(handler, _Handler) else handler
