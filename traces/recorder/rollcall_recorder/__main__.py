"""Runs a script as every rank of a job and records its calls. Started by `rollcall record`.

    python3 rollcall_recorder --mode fake|simulator --world-size N --records FOLDER [--hub SOCKET] SCRIPT ARGS...

torch is imported once, and the ranks are forked from here. Their output goes to standard error, each line with its
rank. A byte on standard output says that torch is installed; the ranks begin when a byte arrives on standard input.
When standard input ends, the ranks that are still running report where they are and are killed.
"""

import argparse
import contextlib
import gc
import importlib.util
import os
import sys

NO_TORCH = 77


def arguments_of(given):
    parser = argparse.ArgumentParser(prog="rollcall_recorder")
    parser.add_argument("--mode", choices=("fake", "simulator"), required=True)
    parser.add_argument("--world-size", type=int, required=True)
    parser.add_argument("--records", required=True)
    parser.add_argument("--hub")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-pretend", dest="pretend", action="store_false", help="no GPU where there is none")
    parser.add_argument("--begin-on-gpus", action="store_true", help="as if the script had asked for a GPU already")
    parser.add_argument("--quiet", action="store_true", help="do not say that GPUs are pretended")
    parser.add_argument("--ranks-see", type=int, default=0, metavar="N", help="GPUs per host, one for each of its ranks")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="run the others only where N ranks are not alike")
    parser.add_argument("--kernels", action="store_true", help="record what GPUs would compute, and the memory that it takes")
    parser.add_argument("--kernels-from", metavar="TRACE", help="a trace of torch.profiler with measured times of theirs")
    parser.add_argument("--patience", type=int, default=600_000, help="milliseconds")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args(given)


def _has_torch(hides_gpus):
    """Imports torch. Returns false if it cannot be imported, or has no torch.distributed."""
    from rollcall_recorder import hidden_gpus

    try:
        with hidden_gpus.hidden() if hides_gpus else contextlib.nullcontext():
            import torch
            import torch.distributed

            if hides_gpus:
                torch.cuda.is_available()
    except ImportError:
        return False
    return torch.distributed.is_available()


def main(given=None):
    arguments = arguments_of(given)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as torchrun does
    if importlib.util.find_spec("torch") is None:
        return NO_TORCH
    os.write(sys.stdout.fileno(), b"t")
    gc.disable()  # imported modules are never freed
    if not _has_torch(arguments.pretend):
        return NO_TORCH
    from rollcall_recorder.launcher import Launcher, import_for

    import_for(arguments.script)
    arguments.ranks_see = arguments.ranks_see or arguments.world_size
    if arguments.pretend:
        from rollcall_recorder import pretended_cuda

        pretended_cuda.install(arguments.ranks_see)
    arguments.measured = None
    if arguments.kernels_from:
        from rollcall_recorder.measured import MeasuredKernels

        arguments.measured = MeasuredKernels(arguments.kernels_from)
    gc.freeze()  # the ranks share all of it
    Launcher(arguments).run()
    return 0


if __name__ == "__main__":
    sys.path[0] = os.path.dirname(sys.path[0])  # the package's parent, so that our modules have full names
    code = main()
    sys.stderr.flush()
    os._exit(code)  # tearing torch down takes a third of a second
