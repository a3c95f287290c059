#pragma once

// Makes the calls of one rank of a script in the simulator.

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

// A line of the script, valid as long as `site` lives.
Site line_of(const traces::ScriptSite& site);

// True if its tensors are on the running rank's default device.
bool is_at_home(const traces::ScriptCall& call);

// Belongs to the running rank. Errors are those of the simulated backend, thrown as rollcall::Error.
class ScriptCalls {
 public:
  // A call in progress: what the script gets when it has completed.
  struct Pending {
    Work work;
    TensorList given;
    TensorList filled;  // the same tensors, if the call has no others
    bool is_receive_from_anybody = false;
  };

  // `payload`: the elements of the given tensors, one after the other.
  Pending issue(const traces::ScriptCall& call, std::string_view payload);
  std::vector<Pending> issue_batch(const std::vector<const traces::ScriptCall*>& calls,
                                   const std::vector<std::string>& payloads);
  // A call about a group. Blocks.
  void manage(const traces::ScriptCall& call);

  // Waits for it, and returns the elements of the filled tensors.
  static std::string finish(const Pending& pending);

 private:
  ProcessGroup group(std::int64_t number) const;
  void split(const traces::ScriptCall& call);

  std::map<std::int64_t, ProcessGroup> groups_;  // by the script's number; the world is not there
};

}  // namespace rollcall::scenario
