#pragma once

// The calls of a run as tests/data/torch_2_14/record.py writes down those of real PyTorch: one line per call, with
// c10d's name of it, its group, peer, sizes and dtype. And the files that it made.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/c10d/backend.h"
#include "sim/engine/simulate.h"

namespace rollcall::golden {

using Lines = std::vector<std::string>;  // each an object of JSON

struct RecordedCalls {
  std::shared_ptr<const nlohmann::json> params;
  Rank world_size = 1;
  std::vector<Lines> ranks;
  std::shared_ptr<const nlohmann::json> notes;  // by rank: "error", and what the case noted
};

// tests/data/torch_2_14/<folder>/<name>.json, or those of another release, and the names of all of a folder.
RecordedCalls read_recorded_calls(const std::string& folder, const std::string& name,
                                  TorchRelease torch = newest_torch);
std::vector<std::string> recorded_call_cases(const std::string& folder, TorchRelease torch = newest_torch);

// What the ranks of a simulated run called. `mark` adds a line of its own for the running rank.
class CallLines {
 public:
  explicit CallLines(Rank world_size) : ranks_(static_cast<std::size_t>(world_size)) {}

  // For sim::Options, rank by rank from 0.
  std::unique_ptr<Backend> around(Backend& inner);
  void mark(const std::string& text);
  const std::vector<Lines>& ranks() const { return ranks_; }

  // Runs the program on gloo, as the recorded one, and returns the report.
  Report run(const std::function<void(Rank)>& program, TorchRelease torch = newest_torch);

 private:
  std::vector<Lines> ranks_;
  std::size_t next_ = 0;  // whose backend is decorated next
};

// One per line, for messages of tests.
std::string to_text(const Lines& lines);

}  // namespace rollcall::golden
