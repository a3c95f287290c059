"""The variables of launchers other than torchrun: SLURM's srun, and mpirun of Open MPI, MPICH and MVAPICH2.

Only scripts that mention them get them; otherwise libraries would take the run for a cluster's job. A script that can
also learn its rank from torchrun, or start its ranks itself, takes that way: there is no SLURM here to answer `scontrol`.
If it asks for a variable without looking whether there is one, it gets it all the same.
"""

import os
import re

_NAMES = {
    "SLURM_": {"SLURM_PROCID": "RANK", "SLURM_LOCALID": "LOCAL_RANK", "SLURM_NTASKS": "WORLD_SIZE", "SLURM_NPROCS": "WORLD_SIZE",
               "SLURM_NODEID": "GROUP_RANK", "SLURM_NTASKS_PER_NODE": "LOCAL_WORLD_SIZE",
               "SLURM_TASKS_PER_NODE": "LOCAL_WORLD_SIZE", "SLURM_GPUS_ON_NODE": "LOCAL_WORLD_SIZE"},
    "OMPI_": {"OMPI_COMM_WORLD_RANK": "RANK", "OMPI_COMM_WORLD_LOCAL_RANK": "LOCAL_RANK", "OMPI_COMM_WORLD_SIZE": "WORLD_SIZE",
              "OMPI_COMM_WORLD_LOCAL_SIZE": "LOCAL_WORLD_SIZE"},
    "PMI_": {"PMI_RANK": "RANK", "PMI_SIZE": "WORLD_SIZE"},
    "MV2_": {"MV2_COMM_WORLD_RANK": "RANK", "MV2_COMM_WORLD_LOCAL_RANK": "LOCAL_RANK", "MV2_COMM_WORLD_SIZE": "WORLD_SIZE"},
}
_OTHER_WAY = re.compile(r"""["'](LOCAL_)?RANK["']|\bspawn\(""")


class _Environment(type(os.environ)):
    """Has `unasked`, but only for those who ask without looking."""

    def __contains__(self, name):
        return self.encodekey(name) in self._data

    def get(self, name, default=None):
        return self[name] if name in self else default

    def __delitem__(self, name):  # also for pop
        super().__delitem__(name) if name in self else self.unasked.pop(name)

    def __getitem__(self, name):
        return super().__getitem__(name) if name in self or name not in self.unasked else self.unasked[name]


def set_variables(script, place):
    """`place`: torchrun's variables of this rank."""
    try:
        with open(script, encoding="utf-8", errors="replace") as file:
            source = file.read()
    except OSError:
        return  # running the script will report it
    found = {name: str(place[ours]) for prefix, names in _NAMES.items() if prefix in source for name, ours in names.items()}
    if "SLURM_" in source:
        hosts = str(-(-place["WORLD_SIZE"] // max(1, place["LOCAL_WORLD_SIZE"])))
        found.update(SLURM_JOB_ID="1", SLURM_NNODES=hosts, SLURM_JOB_NUM_NODES=hosts, SLURM_NODELIST="localhost",
                     SLURM_JOB_NODELIST="localhost", SLURM_LAUNCH_NODE_IPADDR="127.0.0.1")
    if found and _OTHER_WAY.search(source):
        os.environ.__class__ = _Environment
        os.environ.unasked = found
    else:
        os.environ.update(found)
