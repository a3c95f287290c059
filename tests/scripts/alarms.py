"""An alarm goes off while rank 0 waits in a call, and its handler raises an error. Real ranks of PyTorch 1.13, 2.6 and 2.14 on
Gloo print the same: Python runs the handler when the call is over."""

import signal
import threading

import torch
import torch.distributed as dist


def is_late(number, frame):
    raise TimeoutError("too slow")


dist.init_process_group("gloo")
signal.signal(signal.SIGALRM, is_late)
tensor, raised = torch.ones(2), 0
for step in range(3):
    if dist.get_rank() == 1:
        threading.Event().wait(0.3)  # in real time, unlike time.sleep
    elif dist.get_rank() == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        dist.all_reduce(tensor)
    except TimeoutError:
        raised += 1
print(tensor.tolist(), raised, signal.getsignal(signal.SIGALRM) is is_late, flush=True)
