#pragma once

// What rollcall and a rank of a script that runs in the simulator say to each other, apart from the calls, which are
// described as in a record (traces/formats/script_record.h). The other side is simulator.py of
// traces/recorder/rollcall_recorder.

#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/error.h"
#include "sim/base/time.h"
#include "sim/c10d/host_calls.h"
#include "traces/formats/script_record.h"
#include "traces/values/json_value.h"

namespace rollcall::scenario {

constexpr std::size_t line_bytes_max = std::size_t{64} << 20;

// An error on its way to the script.
struct Failure {
  std::string type;
  std::string message;
};

struct FailureNotes {
  bool refused = false;      // the call did not reach any other rank
  std::int64_t ticket = 0;   // of the call that is waited for
  bool last_resort = false;  // no rank can make progress any more
};

// Lines of JSON, without their ends.
std::string failure_line(const Failure& failure, const FailureNotes& notes = {});
std::string death_line(const ProcessKilled& death);

// A rank's call on a store. The call has no rank and no place yet.
struct StoreQuestion {
  StoreCall call;
  traces::ScriptSite site;
};

// Reads {"store":"store_get","keys":[...],...}. Throws BadFile.
StoreQuestion store_question(const traces::Value& message);
nlohmann::json store_answer(const StoreReply& reply);

// Clamps to the time that a run may take.
Duration duration_of(double seconds);

}  // namespace rollcall::scenario
