#pragma once

// GoldenCase: one file of tests/data/golden. It says what a small torch.distributed program did on real PyTorch (gloo,
// CPU): the parameters that select the program and are passed to it, and for each rank its outcome, output, values and
// collectives. tests/data/golden/README.md describes the format.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/time.h"
#include "sim/c10d/op.h"
#include "sim/tensor/dtype.h"

namespace rollcall::golden {

// One collective of a scripted joinable: ["all_reduce", 4, "float32", "MAX"], ["broadcast", 1, "int32", 1].
struct Step {
  std::string kind;
  std::int64_t numel = 1;
  Dtype dtype = Dtype::float32;
  ReduceOp reduce = ReduceOp::sum;
  Rank root = 0;
};
using Steps = std::vector<Step>;

// The "params" of a file. Every reader throws std::runtime_error with the parameter's name when it is missing or has
// another type: a file that no program understands must not pass.
class Params {
 public:
  explicit Params(const nlohmann::json& params);

  bool has(const std::string& name) const;
  bool flag(const std::string& name, bool fallback) const;
  std::int64_t integer(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::vector<std::int64_t> integers(const std::string& name) const;
  // A list of lists: inputs per epoch, then per rank.
  std::vector<std::vector<std::int64_t>> table(const std::string& name) const;
  // The same, also for a file with only one epoch's list of inputs per rank.
  std::vector<std::vector<std::int64_t>> epochs(const std::string& name) const;
  double number(const std::string& name, double fallback) const;
  // Returns the object `name`, or an empty one.
  Params nested(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name, std::vector<std::string> fallback) const;
  // Empty if the parameter is missing: the joinable lacks that part.
  Steps steps(const std::string& name) const;
  // Returns the rank's entry of a list of lists of steps.
  Steps steps_of(const std::string& name, Rank rank) const;
  // Returns the rank's entry of a list of lists of objects.
  std::vector<Params> script_of(const std::string& name, Rank rank) const;

 private:
  std::shared_ptr<const nlohmann::json> params_;  // immutable; shared so that copies are cheap
};

struct GoldenCase {
  std::string name;
  std::string family;
  Rank world_size = 0;
  TorchRelease torch = TorchRelease::v1_13;
  bool detail = false;               // TORCH_DISTRIBUTED_DEBUG=DETAIL
  bool debug = false;                // INFO or DETAIL
  Duration timeout = 0;              // of the process group; 0 if the file has the harness's own 60 s
  bool finished_ranks_exit = false;  // the process of a finished rank ends instead of lingering
  Params params;
  std::vector<std::string> unstable_fields;        // ".ranks[].exception.msg": differed between real runs
  std::shared_ptr<const nlohmann::json> document;  // the whole file

  // Returns the catalog's name of the program: the file's name without _detail, _timeout and _exit, which only say how
  // it is run. "join_called_after_exit" keeps its suffix, which there says what the program does.
  std::string program_name() const;
};

// Returns the same program for another number of ranks: the values per rank in its parameters repeat.
GoldenCase at_world_size(const GoldenCase& golden, Rank ranks);

// Throws std::runtime_error("path: message") for a file that is not a golden case.
GoldenCase read_golden_case(const std::filesystem::path& path);

// Returns every golden file below `folder`, sorted by file name. Throws if there is none, because a test without data
// always passes.
std::vector<std::filesystem::path> golden_files(const std::filesystem::path& folder);

// Returns tests/data/golden of this checkout, which is from 1.13, or the folder in the environment variable
// ROLLCALL_GOLDEN.
std::filesystem::path golden_folder();
// Returns one folder for each release, or only that of the variable.
std::vector<std::filesystem::path> golden_folders();

}  // namespace rollcall::golden
