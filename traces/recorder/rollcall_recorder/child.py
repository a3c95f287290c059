"""The life of one rank: patches, the script, and how it ended."""

import gc
import os
import runpy
import sys
import threading
import time
import traceback
import warnings

import torch

from . import (data_dependence, device_claims, hidden_gpus, install, kernels, other_launchers, signals, spawn, started, threads,
               training)
from .call_site import HERE, call_site, describe_error, is_users, stack_of, stack_of_error
from .fake import FakeAnswers
from .rank import Rank
from .record_file import RecordFile
from .simulator import SimulatedAnswers

_FAILED = 1


def record_path(folder, rank):
    return os.path.join(folder, f"rank{rank}.jsonl")


def run(arguments, rank, output, control):
    """Never returns."""
    console = os.dup(2)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    record = RecordFile(record_path(arguments.records, rank))
    record.say({"rollcall_record": 1, "rank": rank, "world_size": arguments.world_size, "mode": arguments.mode,
                "torch": torch.__version__, "python": sys.version.split()[0], "script": arguments.script,
                "arguments": arguments.arguments, "folder": os.getcwd(), "ranks_per_host": arguments.ranks_see,
                "debug": os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF")})
    _set_environment(arguments, rank)
    simulated = arguments.mode == "simulator"
    answers = SimulatedAnswers(arguments.hub, rank, record) if simulated else FakeAnswers()
    _answer_to(control, record, answers)
    if device_claims.gpus() is not None:
        started.install(arguments.ranks_see)
        device_claims.gpus().was_asked_for = arguments.begin_on_gpus
        own = os.getpid()
        device_claims.gpus().begin_again = lambda: _begin_again(arguments, console, record, own)
        if not arguments.quiet:
            device_claims.gpus().announce = lambda: _announce(arguments, console)
    if rank > 0:  # torch gives every rank the same warnings
        warnings.filterwarnings("ignore", module=r"torch(\.|$)")
    gc.enable()
    computes = kernels.Kernels(record, arguments.measured) if arguments.kernels else None
    with training.watched(record, computes):
        code = _run_script(arguments, rank, record, answers, computes)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # skips the atexit handlers of torch and of the parent process


def _set_environment(arguments, rank):
    """As torchrun does, with one rank per GPU."""
    size, room = arguments.world_size, arguments.ranks_see
    host = rank // room
    place = {"RANK": rank, "LOCAL_RANK": rank % room, "GROUP_RANK": host, "ROLE_RANK": rank, "WORLD_SIZE": size,
             "LOCAL_WORLD_SIZE": min(room, size - host * room), "ROLE_WORLD_SIZE": size, "MASTER_PORT": 29500}
    other_launchers.set_variables(arguments.script, place)
    os.environ.update({name: str(value) for name, value in place.items()}, MASTER_ADDR="localhost")


def _announce(arguments, console):
    """Announces the pretended GPUs: the first rank that asks for a GPU prints the line."""
    count = arguments.ranks_see
    devices = "1 device" if count == 1 else f"{count} devices"
    why = "leaving the GPUs here alone" if hidden_gpus.machine_has_gpus() else "no GPU here"
    _print_once("pretended", f"{why}: pretending that there is CUDA, {devices}", arguments, console)


def _begin_again(arguments, console, record, process):
    """Ends the rank: all ranks have to run again, with a job that begins on NCCL. Never returns, except in processes
    that the rank has forked."""
    if os.getpid() != process:
        return
    record.say({"begins_again": True})
    if not arguments.quiet:
        why = "the job began before the script asked for a GPU, so its ranks run again on NCCL"
        _print_once("again", why, arguments, console)
    os._exit(0)


def _print_once(name, text, arguments, console):
    """Prints a line once for all ranks."""
    try:
        os.close(os.open(os.path.join(arguments.records, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return
    os.write(console, f"rollcall: {text}\n".encode())


def _answer_to(control, record, answers):
    """Reports where the script is, and whether it waits for other ranks there, from a separate thread, even while the
    script is blocked."""
    script = threading.get_ident()

    def serve():
        while control.recv(1):
            waits = {"waits": True} if answers.is_waiting else {}
            record.say({"stack": stack_of(script), "site": call_site(sys._current_frames().get(script)).describe(), **waits})
            control.sendall(b".")

    threading.Thread(target=serve, daemon=True, name=threads.OURS).start()


def _run_script(arguments, rank, record, answers, computes):
    place = Rank(rank, arguments.world_size, record, answers)
    record.are_lost = answers.are_lost
    install.install(place)
    signals.install()
    spawn.install(place)
    if computes is not None:
        place.kernels = computes
        computes.install()
    if arguments.mode == "simulator":
        _sleep_in(place)
    else:
        data_dependence.watch(lambda site: record.say({"data_dependent": site.describe()}))
    threading.excepthook = lambda failed: _print_traceback(failed.exc_value)
    sys.argv = [arguments.script, *arguments.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(arguments.script))
    try:
        runpy.run_path(arguments.script, run_name="__main__")
    except SystemExit as ended:
        return _exited(ended, record)
    except BaseException as error:
        if answers.last_resort is not None and answers.last_resort in str(error):
            return _gave_up(error, record)
        return _raised(error, record)
    record.say({"end": "finished"})
    return 0


def _sleep_in(place):
    """Lets time pass in the simulator as well, but not before the job is initialized, in other threads, or in processes
    that the rank forks: there the rank has no clock."""
    sleep, script = time.sleep, threading.get_ident()

    def sleep_everywhere(seconds):
        if place.is_initialized and threading.get_ident() == script and not place.is_forked and seconds > 0:
            place.answers.sleep(seconds)
        sleep(seconds)

    time.sleep = sleep_everywhere


def _exited(ended, record):
    if ended.code is None or ended.code == 0:
        record.say({"end": "finished"})
        return 0
    code = ended.code if isinstance(ended.code, int) else _FAILED
    record.say({"end": "raised", **describe_error(ended), "message": str(ended.code)})
    if not isinstance(ended.code, int):
        print(ended.code, file=sys.stderr)
    return code


def _gave_up(error, record):
    """The rank waited for something that cannot come. The backend's final error adds nothing, so the rank is
    recorded as still waiting there."""
    described = describe_error(error)
    record.say({"stack": stack_of_error(error), **({"site": described["site"]} if "site" in described else {})})
    return _FAILED


def _raised(error, record):
    record.say({"end": "raised", **describe_error(error)})
    if isinstance(error, install.ScriptError):
        print(f"rollcall: {error}", file=sys.stderr)
    else:
        _print_traceback(error)
    return _FAILED


def _print_traceback(error):
    """Prints the traceback without our own frames."""
    shown = error.__traceback__
    while shown is not None and not is_users(shown.tb_frame.f_code.co_filename):
        shown = shown.tb_next
    told = traceback.TracebackException(type(error), error, shown or error.__traceback__)
    each = told
    while each is not None:
        each.stack[:] = [frame for frame in each.stack if not frame.filename.startswith(HERE)]
        each = each.__cause__ or each.__context__
    print("".join(told.format()), end="", file=sys.stderr)
