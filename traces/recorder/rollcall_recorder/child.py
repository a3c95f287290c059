"""The life of one rank: patches, the script, and how it ended."""

import gc
import os
import runpy
import socket
import sys
import threading
import traceback

import torch

from . import data_dependence, install, spawn, training
from .call_site import call_site, is_users, stack_of
from .fake import FakeAnswers
from .rank import Rank
from .record_file import RecordFile
from .simulator import SimulatedAnswers

_FAILED = 1


def record_path(folder, rank):
    return os.path.join(folder, f"rank{rank}.jsonl")


def run(arguments, rank, output, control):
    """Never returns."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    record = RecordFile(record_path(arguments.records, rank))
    record.say({"rollcall_record": 1, "rank": rank, "world_size": arguments.world_size, "mode": arguments.mode,
                "torch": torch.__version__, "python": sys.version.split()[0], "script": arguments.script,
                "arguments": arguments.arguments, "folder": os.getcwd(),
                "debug": os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF")})
    _set_environment(arguments, rank)
    _answer_to(control, record)
    gc.enable()
    with training.watched(record):
        code = _run_script(arguments, rank, record)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # atexit handlers of torch and of the parent have nothing to do here


def _set_environment(arguments, rank):
    """As torchrun does."""
    size = str(arguments.world_size)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), GROUP_RANK="0", ROLE_RANK=str(rank), WORLD_SIZE=size,
                      LOCAL_WORLD_SIZE=size, ROLE_WORLD_SIZE=size, MASTER_ADDR="localhost", MASTER_PORT="29500")


def _answer_to(control, record):
    """A separate thread reports where the script is, even while the script is blocked."""
    script = threading.get_ident()

    def serve():
        while control.recv(1):
            record.say({"stack": stack_of(script), "site": call_site(sys._current_frames().get(script)).describe()})
            control.sendall(b".")

    threading.Thread(target=serve, daemon=True).start()


def _run_script(arguments, rank, record):
    simulated = arguments.mode == "simulator"
    answers = SimulatedAnswers(arguments.hub, rank, record) if simulated else FakeAnswers()
    place = Rank(rank, arguments.world_size, record, answers)
    install.install(place)
    spawn.install(place)
    if not simulated:
        data_dependence.watch(lambda site: record.say({"data_dependent": site.describe()}))
    sys.argv = [arguments.script, *arguments.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(arguments.script))
    try:
        runpy.run_path(arguments.script, run_name="__main__")
    except SystemExit as ended:
        return _exited(ended, record)
    except BaseException as error:
        return _raised(error, record)
    record.say({"end": "finished"})
    return 0


def _exited(ended, record):
    if ended.code is None or ended.code == 0:
        record.say({"end": "finished"})
        return 0
    code = ended.code if isinstance(ended.code, int) else _FAILED
    record.say({"end": "raised", "type": "SystemExit", "message": str(ended.code), **_place(ended)})
    if not isinstance(ended.code, int):
        print(ended.code, file=sys.stderr)
    return code


def _raised(error, record):
    record.say({"end": "raised", "type": type(error).__name__, "message": str(error)[:2000], **_place(error)})
    if isinstance(error, install.ScriptError):
        print(f"rollcall: {error}", file=sys.stderr)
    else:
        _print_traceback(error)
    return _FAILED


def _print_traceback(error):
    """Without our own frames above the script's."""
    shown = error.__traceback__
    while shown is not None and not is_users(shown.tb_frame.f_code.co_filename):
        shown = shown.tb_next
    traceback.print_exception(type(error), error, shown or error.__traceback__)


def _place(error):
    """The innermost line of the user's that the error came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    if not frames:
        return {}
    return {"site": {"file": frames[-1].filename, "line": frames[-1].lineno, "function": frames[-1].name}}
