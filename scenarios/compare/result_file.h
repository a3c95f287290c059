#pragma once

// *.result.json: what real ranks did, stored to be compared later and elsewhere, for example in
// CI. It has digests of results, not results; the versions and the machine that produced them; and whether its
// times mean anything.

#include <stdexcept>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/compare/facts.h"

namespace rollcall::compare {

// The file is not a result file. The message names the file and what is wrong.
struct InvalidResult : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// This machine: its system, and what rollcall doctor says about its libraries, drivers, and GPUs.
nlohmann::ordered_json machine();

// JSON, with a final newline. `deadline`: that of the run.
std::string write_result(const Facts& facts, const std::string& deadline);

// Throws InvalidResult.
Facts read_result(const std::string& path);

}  // namespace rollcall::compare
