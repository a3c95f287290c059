"""Records the torch.distributed calls that the ranks of a PyTorch script make.

`rollcall record` runs the unmodified script, one process per rank. Our own process group (process_group) takes every
call, writes it down (record_file) with the line it came from (call_site), and has it answered by one of these:

    fake       no other rank is running: results are what they would be if every rank had passed the same data
    simulator  rollcall runs the collectives of all ranks in its simulator and returns the true results
    live       the backend that the script asked for

Works with torch 1.13 and later; names that changed since are looked up where they are used.
"""

__version__ = "0.1.0"
