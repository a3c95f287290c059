#pragma once

// A diagnosis for a program: the object of json_report.h, with what recordings leave undecided.
//
//   { "schema_version": 1, "verdict": "stuck_host", "kind": "stuck_host", "confidence": "high",
//     "culprits": [5], "at": { "op": "_all_gather_base", "group": "11", "group_desc": "mesh_tp",
//     "group_ranks": [4, 5], "collective_seq_id": 45, "waiting": [4], "missing": [5], ... },
//     "victims": [ { "ranks": "4", "op": {...}, "waits_for": "5" } ], "evidence": [...],
//     "would_settle": [...], "alternatives": [...], ... }
//
// The numbers are the recorder's: collective_seq_id, or p2p_seq_id for messages.

#include <string>
#include <vector>

#include "sim/report/diagnosis.h"

namespace rollcall::viz {

// Remarks about the input that the reader should know: "trace_7: byte 120: ...".
using Remarks = std::vector<std::string>;

std::string json_diagnosis(const Diagnosis& diagnosis, const Remarks& remarks);

}  // namespace rollcall::viz
