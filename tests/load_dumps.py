"""Loads the dumps of a folder as PyTorch's analyzer does, and checks what the analyzer relies on."""

import ast
import os
import pickle
import sys

KEYS = ["frames", "record_id", "pg_id", "process_group", "thread_name", "thread_id", "collective_seq_id", "p2p_seq_id",
        "op_id", "profiling_name", "time_created_ns", "input_sizes", "input_dtypes", "output_sizes", "output_dtypes",
        "state", "time_discovered_started_ns", "time_discovered_completed_ns", "retired", "timeout_ms", "is_p2p"]

for name in sorted(os.listdir(sys.argv[1])):
    with open(os.path.join(sys.argv[1], name), "rb") as file:
        dump = pickle.load(file)
    assert list(dump) == ["version", "pg_config", "comm_lib_version", "pg_status", "entries"], list(dump)
    rank = int(name.rsplit("_", 1)[1])
    of_gloo = any(entry["profiling_name"].startswith("gloo:") for entry in dump["entries"])
    for key, group in dump["pg_config"].items():  # Gloo lists the last created group, without a name
        assert group["name"] == key and (key == "" if of_gloo else key.isdigit())
        assert of_gloo or rank in ast.literal_eval(group["ranks"])
    for index, entry in enumerate(dump["entries"]):
        assert list(entry) == KEYS, list(entry)
        assert entry["record_id"] == index
        assert isinstance(entry["process_group"], tuple)
        assert of_gloo or entry["process_group"][0] in dump["pg_config"]
        assert str(entry["pg_id"]) in dump["pg_status"]
        assert entry["profiling_name"].startswith(("nccl:", "gloo:"))
        assert entry["state"] in (("scheduled",) if of_gloo else ("scheduled", "started", "completed"))
    print(name, len(dump["entries"]))
