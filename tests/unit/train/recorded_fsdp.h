#pragma once

// What real PyTorch did with small models (tests/data/torch_2_14/record_fsdp.py): every file has a case, and each
// rank's calls and values. These functions do the same in the simulator and compare.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/report/report.h"
#include "sim/tensor/tensor.h"
#include "sim/train/module.h"

namespace rollcall::test {

// One rank: its calls in the format of the files ("all_gather_into_tensor 0,1 10>20 float32"), and its values.
struct RankTrace {
  std::vector<std::string> calls;
  std::vector<std::pair<std::string, std::string>> values;  // as JSON
};

struct TracedRun {
  std::vector<RankTrace> traces;
  Report report;
};

// Returns the files whose names begin with `begin`.
std::vector<std::filesystem::path> recorded_cases(const std::string& begin);
nlohmann::json read_json(const std::filesystem::path& path);

// Runs a case's program; `body` runs one rank.
TracedRun run_traced(const nlohmann::json& spec, const std::string& backend,
                     const std::function<void(Rank rank, RankTrace& trace)>& body);
// Checks that every rank did the same as the recorded one.
void check_like_recorded(const nlohmann::json& recorded, const TracedRun& run);

// record_fsdp.py's Unit: its parameters are base, base + 1, ...
std::vector<Parameter> unit_parameters(const nlohmann::json& spec, double base);
// Returns the dtype that a case names there, if any.
std::optional<Dtype> dtype_in(const nlohmann::json& object, const char* key);
// Returns the word of a step, which is a word or a list that begins with one.
std::string verb_of(const nlohmann::json& step);

}  // namespace rollcall::test
