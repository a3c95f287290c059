"""A Python that has imported torch, and forks for every program: warm_server.py SOCKET

Importing torch takes a second or two, running a drawn program a tenth of that. `warm_python` is the other side. A
program has its caller's arguments, environment, folder and standard streams. It is killed when its caller goes away.
"""

import array
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
import traceback
import warnings

os.environ["OMP_NUM_THREADS"] = "1"  # read once, when torch is imported
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    import torch.distributed
    import torch.distributed.algorithms.join
    import torch.distributed.optim
    import torch.nn.parallel

    try:
        import torch._dynamo  # DDP's constructor imports it
    except ImportError:
        pass  # torch 1.13 does not have it for every Python

STREAMS = 3


def received(connection):
    """(arguments, environment, folder), and the caller's standard streams"""
    head, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(STREAMS * array.array("i").itemsize))
    streams = array.array("i")
    for _, _, data in ancillary:
        streams.frombytes(data)
    (size,) = struct.unpack("!I", head)
    text = b""
    while len(text) < size:
        part = connection.recv(size - len(text))
        if not part:
            raise ConnectionError("the caller has gone")
        text += part
    return json.loads(text), list(streams)


def run(asked, streams):
    """In a process of its own. Does not return."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        if stream >= STREAMS:
            os.close(stream)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    program, *arguments = asked["arguments"]
    sys.argv = [program, *arguments]
    if os.path.isfile(program):
        sys.path[0] = os.path.dirname(os.path.abspath(program))
    code = 0
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class Server:
    def __init__(self, path):
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(100)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._begin)

    def serve(self):
        while True:
            for key, _ in self._selector.select():
                if self._selector.get_map().get(key.fd) is key:  # not ended in this very round
                    key.data()

    def _begin(self):
        connection, _ = self._listener.accept()
        try:
            asked, streams = received(connection)
        except (ConnectionError, struct.error):
            connection.close()
            return
        pid = os.fork()
        if pid == 0:
            self._listener.close()
            self._selector.close()
            run(asked, streams)
        for stream in streams:
            os.close(stream)
        ends = os.pidfd_open(pid)
        self._selector.register(ends, selectors.EVENT_READ, lambda: self._end(pid, ends, connection))
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._kill(pid, connection))

    def _kill(self, pid, connection):
        """The caller has gone."""
        self._selector.unregister(connection)
        os.kill(pid, signal.SIGKILL)

    def _end(self, pid, ends, connection):
        _, status = os.waitpid(pid, 0)
        self._selector.unregister(ends)
        os.close(ends)
        if connection in self._selector.get_map():
            self._selector.unregister(connection)
        try:
            connection.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
        except OSError:
            pass  # nobody waits for it
        connection.close()


if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # what torch has allocated stays shared: a collection in a child would look at, and so copy, all of it
    Server(sys.argv[1]).serve()
