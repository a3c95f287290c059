#!/usr/bin/python3
"""Writes tests/data/torch_estimator.json: PyTorch's own estimates for the rows in tests/data/nccl_tables*.

Run it with the PyTorch in question; no GPU is needed. The estimator's questions about the machine are answered from
each table: GPUs in one NVLink domain, their generation, whether they have NVLink. It gets the size that nccl-tests
prints, for which its formula is meant (NCCL's tuner); its own callers pass the input's size.

    tests/latency/torch_estimator.py < /dev/null > tests/data/torch_estimator.json
"""

import glob
import json
import os
import sys
from unittest import mock

import torch
from torch._inductor import comm_analysis as estimator

GENERATIONS = {
    "a100": estimator.NVIDIA_GPU_TYPE.AMPERE,
    "l40s": estimator.NVIDIA_GPU_TYPE.AMPERE,  # because of compute capability 8.9
    "rtx4090": estimator.NVIDIA_GPU_TYPE.AMPERE,
    "h": estimator.NVIDIA_GPU_TYPE.HOPPER,  # h100, h200, h20
    "gh": estimator.NVIDIA_GPU_TYPE.HOPPER,
    "b": estimator.NVIDIA_GPU_TYPE.BLACKWELL,
    "gb": estimator.NVIDIA_GPU_TYPE.BLACKWELL,
}
COLLECTIVES = {
    "all_reduce": estimator.NCCL_COLL.ALL_REDUCE,
    "all_gather": estimator.NCCL_COLL.ALL_GATHER,
    "reduce_scatter": estimator.NCCL_COLL.REDUCE_SCATTER,
}
GPUS_OF_A_RACK = 72


def generation(name):
    prefixes = [prefix for prefix in GENERATIONS if name.startswith(prefix)]
    return GENERATIONS[max(prefixes, key=len)]


def gpus_in_a_domain(name, table):
    is_rack = name.startswith("gb") and "different NVLink domains" not in table["system"]
    return GPUS_OF_A_RACK if is_rack else table["ranks_per_node"]


def estimates(path):
    with open(path) as file:
        table = json.load(file)
    name = os.path.basename(path).removesuffix(".json").removeprefix("suspect_")
    has_nvlink = not any(word in name for word in ("pcie", "l40s", "rtx4090"))
    if table["collective"] not in COLLECTIVES:
        return None
    with mock.patch.object(estimator, "get_gpu_type", lambda: generation(name)), mock.patch.object(
        estimator, "_has_nvlink", lambda: has_nvlink
    ), mock.patch.object(torch.cuda, "is_available", lambda: True), mock.patch.object(
        torch.cuda, "device_count", lambda: gpus_in_a_domain(name, table)
    ):
        return {
            str(row["bytes"]): round(
                1000
                * estimator.estimate_nccl_collective_runtime_impl(
                    row["bytes"], table["ranks"], COLLECTIVES[table["collective"]]
                ),
                3,
            )
            for row in table["rows"]
        }


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../data")
    tables = {}
    for path in sorted(glob.glob(os.path.join(folder, "nccl_tables*/*.json"))):
        rows = estimates(path)
        if rows:
            tables[os.path.basename(path).removesuffix(".json")] = rows
    head = {"torch": torch.__version__, "what": "torch._inductor.comm_analysis, microseconds by bytes"}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(rows)}" for name, rows in tables.items())
    print(json.dumps(head)[:-1] + ',\n"tables": {\n' + lines + "\n}}")


main()
