"""Hides the GPUs of this machine from torch, which then gives the same answers as on a machine without one."""

import contextlib
import glob
import os

_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def machine_has_gpus():
    return bool(glob.glob("/dev/nvidia[0-9]*")) or os.path.exists("/dev/kfd")


@contextlib.contextmanager
def hidden():
    """Torch, when it is imported in this context and asked for GPUs, finds none. It remembers the answer for the life of
    the process and of those that it forks (c10/cuda/CUDAFunctions.cpp, device_count), while the variables are as the
    user has set them again, for the script and for what it starts."""
    given = {name: os.environ.get(name) for name in _VARIABLES}
    for name in given:
        os.putenv(name, "")  # not in os.environ
    try:
        yield
    finally:
        for name, value in given.items():
            if value is None:
                os.unsetenv(name)
            else:
                os.putenv(name, value)
