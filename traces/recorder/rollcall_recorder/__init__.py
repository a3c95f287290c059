"""Records what the ranks of a PyTorch script ask of torch.distributed.

The script is run as it is, one process per rank, by `rollcall record`. A process group of our own (process_group)
takes every call, writes it down (record_file) with the line it came from (call_site), and lets somebody answer:

    fake       nobody else is there: answers are what they would be if every rank had done the same
    simulator  rollcall runs the collectives of all ranks in its simulator and gives the true results
    live       the backend that the script asked for

Works with torch 1.13 and later; names that changed since are looked up where they are used.
"""

__version__ = "0.1.0"
