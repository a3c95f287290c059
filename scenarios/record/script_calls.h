#pragma once

// The calls of one rank of a script, made in the simulator.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/c10d/work.h"
#include "sim/tensor/tensor.h"
#include "traces/formats/script_record.h"

namespace rollcall::scenario {

// A line of the script, for as long as `site` lives.
Site line_of(const traces::ScriptSite& site);

// Are its tensors on the device that the running rank has by default?
bool is_at_home(const traces::ScriptCall& call);

// Belongs to the running rank. Errors are those of the simulated backend, thrown as rollcall::Error.
class ScriptCalls {
 public:
  // A call under way: what the script gets when it is over.
  struct Pending {
    Work work;
    TensorList given;
    TensorList filled;  // the same tensors, where the call has no others
    bool is_receive_from_anybody = false;
  };

  // `payload`: the elements of the tensors given, one after the other.
  Pending issue(const traces::ScriptCall& call, std::string_view payload);
  std::vector<Pending> issue_batch(const std::vector<const traces::ScriptCall*>& calls,
                                   const std::vector<std::string>& payloads);
  // A call about a group. Blocks.
  void manage(const traces::ScriptCall& call);

  // Waits for it. The elements of the tensors filled.
  static std::string finish(const Pending& pending);

 private:
  ProcessGroup group(std::int64_t number) const;

  std::map<std::int64_t, ProcessGroup> groups_;  // by the script's number; the world is not there
};

}  // namespace rollcall::scenario
