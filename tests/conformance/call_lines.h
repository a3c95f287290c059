#pragma once

// The calls of a run in the format of tests/data/torch_2_14/record.py, which records those of real PyTorch: one line
// per call, with its c10d name, group, peer, sizes and dtype. Also reads the files of that script.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/c10d/backend.h"
#include "sim/engine/simulate.h"

namespace rollcall::golden {

using Lines = std::vector<std::string>;  // each is a JSON object

struct RecordedCalls {
  std::shared_ptr<const nlohmann::json> params;
  Rank world_size = 1;
  std::vector<Lines> ranks;
  std::shared_ptr<const nlohmann::json> notes;  // by rank: "error", and the case's notes
};

// Reads tests/data/torch_2_14/<folder>/<name>.json, or the file of another release; the second function lists a
// folder's cases.
RecordedCalls read_recorded_calls(const std::string& folder, const std::string& name,
                                  TorchRelease torch = newest_torch);
std::vector<std::string> recorded_call_cases(const std::string& folder, TorchRelease torch = newest_torch);

// The calls of the ranks of a simulated run. `mark` adds a separate line for the running rank.
class CallLines {
 public:
  explicit CallLines(Rank world_size) : ranks_(static_cast<std::size_t>(world_size)) {}

  // For sim::Options; called once per rank, from rank 0 on.
  std::unique_ptr<Backend> around(Backend& inner);
  void mark(const std::string& text);
  const std::vector<Lines>& ranks() const { return ranks_; }

  // Runs the program on gloo, like the recorded one, and returns the report.
  Report run(const std::function<void(Rank)>& program, TorchRelease torch = newest_torch);

 private:
  std::vector<Lines> ranks_;
  std::size_t next_ = 0;  // the rank whose backend is decorated next
};

// One per line, for test messages.
std::string to_text(const Lines& lines);

}  // namespace rollcall::golden
