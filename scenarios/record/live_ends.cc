#include "scenarios/record/live_ends.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace rollcall::scenario {
namespace {

using traces::ScriptEnd;
using traces::ScriptEvent;
using traces::ScriptRank;

// Gloo's and NCCL's words for a peer that has disconnected, or does not arrive (gloo/transport/tcp/pair.cc,
// unbound_buffer.cc; torch's ProcessGroupNCCL.cpp).
constexpr std::array<std::string_view, 7> of_others = {
    "Connection closed by peer", "Connection reset by peer", "Broken pipe",   "Read error",
    "Timed out waiting",         "Application timeout",      "remote process"};

bool is_consequence(const ScriptEnd& end) {
  return end.how == ScriptEnd::How::raised && std::ranges::any_of(of_others, [&](std::string_view words) {
           return end.message.find(words) != std::string::npos;
         });
}

// True if the rank's last event is a blocking one that has not returned.
bool is_in_call(const ScriptRank& rank) {
  if (rank.events.empty()) {
    return false;
  }
  const ScriptEvent& last = rank.events.back();
  return last.kind == ScriptEvent::Kind::wait || last.kind == ScriptEvent::Kind::future ||
         (last.kind == ScriptEvent::Kind::call && last.handle < 0);
}

// Drops the call that it was waiting for, and the wait.
void drop_open_call(ScriptRank& rank) {
  const std::int64_t handle = rank.events.back().handle;
  rank.events.pop_back();
  const auto call = std::ranges::find_if(rank.events, [&](const ScriptEvent& event) {
    return handle >= 0 && event.handle == handle && !event.calls.empty();
  });
  if (call != rank.events.end()) {
    rank.events.erase(call);
  }
}

}  // namespace

void settle_live_ends(traces::ScriptRecord& record) {
  const bool breaks = std::ranges::any_of(
      record.ranks, [](const ScriptRank& rank) { return rank.mode == "live" && is_consequence(rank.end); });
  for (ScriptRank& rank : record.ranks) {
    if (rank.mode != "live") {
      continue;
    }
    const bool stops = rank.end.how == ScriptEnd::How::unknown;
    const bool inside = is_in_call(rank);
    if (is_consequence(rank.end) && inside) {
      rank.end = {};
    } else if (stops && (!inside || breaks)) {
      if (inside) {
        drop_open_call(rank);
      }
      rank.end.how = ScriptEnd::How::killed;
    }
  }
}

}  // namespace rollcall::scenario
