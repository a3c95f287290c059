#pragma once

// GoldenCase: one file of tests/data/golden. It says what a small torch.distributed program did on
// real PyTorch (gloo, CPU): the parameters that select and feed the program, and per rank its outcome,
// output, values and collectives. The format: tests/data/golden/README.md.

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

// The "params" of a file. Every reader throws std::runtime_error naming the parameter when it is
// missing or of another type: a file that no program understands must not pass.
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
  // The same, or the only epoch's list of inputs per rank.
  std::vector<std::vector<std::int64_t>> epochs(const std::string& name) const;
  double number(const std::string& name, double fallback) const;
  // The object `name`, or an empty one.
  Params nested(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name, std::vector<std::string> fallback) const;
  // Empty when the parameter is missing: a joinable without that part.
  Steps steps(const std::string& name) const;
  // The rank's entry of a list of lists of steps.
  Steps steps_of(const std::string& name, Rank rank) const;
  // The rank's entry of a list of lists of objects.
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
  Duration timeout = 0;              // of the process group; 0 where the file keeps the harness's own 60 s
  bool finished_ranks_exit = false;  // a rank that is through leaves, instead of lingering
  Params params;
  std::vector<std::string> unstable_fields;        // ".ranks[].exception.msg": differed between real runs
  std::shared_ptr<const nlohmann::json> document;  // the whole file

  // The catalogue's name for the program: the file's name without the _detail, _timeout and _exit that
  // only say how it is run. "join_called_after_exit" keeps its end: there it says what is done.
  std::string program_name() const;
};

// The same program at another number of ranks: what its parameters say per rank goes round.
GoldenCase at_world_size(const GoldenCase& golden, Rank ranks);

// Throws std::runtime_error("path: message") for a file that is no golden case.
GoldenCase read_golden_case(const std::filesystem::path& path);

// Every golden file below `folder`, by file name. Throws when there is none: a test over no data
// always passes.
std::vector<std::filesystem::path> golden_files(const std::filesystem::path& folder);

// tests/data/golden of this checkout, which 1.13 left, or the folder in the environment variable ROLLCALL_GOLDEN.
std::filesystem::path golden_folder();
// One for each release, or that of the variable.
std::vector<std::filesystem::path> golden_folders();

}  // namespace rollcall::golden
