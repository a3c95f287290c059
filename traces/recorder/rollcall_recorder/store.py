"""The job's store. If all ranks run in the simulator, they share one store, as with TCPStore; a rank that runs alone
has a store that reports when it needs another rank's key.

torch itself and the script see the store through prefix stores, whose calls arrive at the methods of dist.Store that
C++ calls by these names (torch/csrc/distributed/c10d/init.cpp, PythonStore).
"""

import sys

import torch.distributed as dist

from .call_site import call_site


_kept = []  # C++ keeps the base object of a store alive, but not the attributes that Python adds to it
STORE_ERROR = getattr(dist, "DistStoreError", RuntimeError)


def kind_of_store(rank):
    return SimulatedStore if hasattr(rank.answers, "ask_store") else LonelyStore


class _Store(dist.Store):
    """What both stores have in common: `prefix` begins the names of their keys, and C++ calls some methods by these
    names."""

    def __init__(self, rank, prefix):
        super().__init__()
        _kept.append(self)
        self._rank, self._prefix = rank, prefix

    def deleteKey(self, key):
        return self.delete_key(key)

    def getNumKeys(self):
        return self.num_keys()

    def has_extended_api(self):
        return False

    hasExtendedApi = has_extended_api


class LonelyStore(_Store):
    """Holds the keys that this rank sets. A rank that waits for another rank's key depends on what the others do."""

    _parts = {}  # by prefix

    def __init__(self, rank, prefix=""):
        super().__init__(rank, prefix)
        self._values = self._parts.setdefault(prefix, {}) if prefix else {}

    def begins_with(self, timeout):
        self.set_timeout(timeout)

    def set(self, key, value):
        self._values[key] = _bytes_of(value)

    def get(self, key):
        self.wait([key])
        return self._values[key]

    def add(self, key, amount):
        total = int(self._values.get(key, b"0")) + int(amount)
        self._values[key] = str(total).encode()
        return total

    def wait(self, keys, timeout=None):
        missing = [key for key in keys if key not in self._values]
        if missing:
            self._rank.record.say({"data_dependent": call_site(sys._getframe(1)).describe()})
            raise RuntimeError(f"rollcall: another rank sets the store's key {missing[0]}: record with --simulate")

    def check(self, keys):
        return all(key in self._values for key in keys)

    def compare_set(self, key, expected, desired):
        if self._values.get(key, b"") == _bytes_of(expected):
            self._values[key] = _bytes_of(desired)
        return self._values.get(key, _bytes_of(expected))

    def delete_key(self, key):
        return self._values.pop(key, None) is not None

    def num_keys(self):
        return len(self._values)


class SimulatedStore(_Store):
    def __init__(self, rank, prefix=""):
        super().__init__(rank, prefix)
        self._answers = rank.answers
        self._usual_timeout = self.timeout  # with this timeout, a rank waits until no rank can make progress any more

    def begins_with(self, timeout):
        """Sets the timeout that the store is created with."""
        self.set_timeout(timeout)
        self._usual_timeout = self.timeout

    def set(self, key, value):
        self._ask("set", [key], value=value)

    def get(self, key):
        return self._bytes(self._ask("get", [key], timeout=self._own_timeout()))

    def add(self, key, amount):
        return self._ask("add", [key], amount=int(amount))["number"]

    def wait(self, keys, timeout=None):
        self._ask("wait", list(keys), timeout=self._own_timeout() if timeout is None else timeout)

    def check(self, keys):
        return self._ask("check", list(keys))["number"] != 0

    def compare_set(self, key, expected, desired):
        return self._bytes(self._ask("compare_set", [key], expected=expected, value=desired))

    def delete_key(self, key):
        return self._ask("delete", [key])["number"] != 0

    def num_keys(self):
        return self._ask("num_keys", [])["number"]

    def wait_for(self, key, late):
        """Waits for a key. `late`: the error to raise if no rank sets it."""
        self._ask("wait", [key], timeout=self._own_timeout(), late=late)

    def _own_timeout(self):
        return None if self.timeout == self._usual_timeout else self.timeout

    @staticmethod
    def _bytes(answer):
        return bytes.fromhex(answer["value"])

    def _ask(self, kind, keys, value=b"", expected=b"", amount=0, timeout=None, late=None):
        question = {"store": "store_" + kind, "keys": [self._prefix + key for key in keys], "prefix": self._prefix,
                    "value": _bytes_of(value).hex(), "expected": _bytes_of(expected).hex(), "amount": amount,
                    "site": call_site(sys._getframe(2)).describe()}
        if timeout is not None:
            question["timeout"] = timeout.total_seconds()
        try:
            return self._answers.ask_store(question)
        except RuntimeError as error:
            if str(error) != "Socket Timeout" and not str(error).startswith("wait timeout after "):
                raise  # these two are what the simulated release says
            if late is None and STORE_ERROR is RuntimeError:
                raise RuntimeError("Socket Timeout") from None
        if late is None:
            waited = round((timeout or self.timeout).total_seconds() * 1000)
            listed = ", ".join("/" + key for key in keys)
            late = STORE_ERROR(f"wait timeout after {waited}ms, keys: {listed}")  # TCPStore.cpp of torch 2
        if self._answers.last_resort is not None:
            self._answers.last_resort = str(late)
        raise late


def _bytes_of(value):
    return value.encode() if isinstance(value, str) else bytes(value)
