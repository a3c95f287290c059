#pragma once

// Runs a golden case in the simulator and writes the result in the format of the golden files, so that two documents
// can be compared.

#include <memory>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/report/report.h"
#include "tests/conformance/golden_case.h"
#include "tests/conformance/op_tape.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

struct GoldenRun {
  std::shared_ptr<const nlohmann::json> document;  // {"outcome": ..., "ranks": [...]}
  Report report;
};

GoldenRun run_golden(const GoldenCase& golden, const Program& program);

// Runs it and records a tape instead.
Report run_golden_on_tape(const GoldenCase& golden, const Program& program, conformance::OpTape& tape);

}  // namespace rollcall::golden
