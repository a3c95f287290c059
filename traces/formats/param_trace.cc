#include "traces/formats/param_trace.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/core.h>

#include "traces/formats/call_recorder.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

class CommsReader {
 public:
  explicit CommsReader(Rank rank) : rank_(rank) {}

  RankRecording read(const Value& entries) {
    for (const Value& entry : items_of(&entries)) {
      if (entry.is(Value::Kind::dict)) {
        add(entry);
      }
    }
    return calls_.finish(false);
  }

 private:
  void add(const Value& entry) {
    RecordedCall call;
    call.name = text_or_empty(find(entry, "comms"));
    if (call.name.empty()) {
      return;
    }
    const std::int64_t id = number_or(find(entry, "pg_id"), 0);
    const std::vector<Rank> members = ranks_of(entry, members_[id]);
    call.group = calls_.group(fmt::format("{}", id), "", members);
    call.numel_in = count_or(find(entry, "in_msg_size"), -1);
    call.numel_out = count_or(find(entry, "out_msg_size"), -1);
    call.dtype = text_or_empty(find(entry, "dtype"));
    call.created_ns = count_or(find(entry, "startTime_ns"), 0);
    const bool sends = call.name.find("send") != std::string_view::npos;
    call.peer = inside(members, number_or(find(entry, sends ? "dst_rank" : "src_rank"), -1));
    calls_.add(call, rank_);
  }

  // The ranks that the call names, else those that an earlier call of its group named, else all
  // ranks.
  static std::vector<Rank> ranks_of(const Value& entry, std::vector<Rank>& known) {
    std::vector<Rank> members = members_of(find(entry, "global_ranks"));
    if (!members.empty()) {
      known = members;
    } else if (!known.empty()) {
      members = known;
    } else if (const std::int64_t size = number_or(find(entry, "world_size"), 0);
               size > 0 && size < ranks_max) {
      members.resize(static_cast<std::size_t>(size));
      std::iota(members.begin(), members.end(), 0);
    }
    return members;
  }

  // Returns a global rank's position in the group, or -1.
  static Rank inside(const std::vector<Rank>& members, std::int64_t rank) {
    const auto place = std::lower_bound(members.begin(), members.end(), rank);
    return place != members.end() && *place == rank ? static_cast<Rank>(place - members.begin()) : -1;
  }

  CallRecorder calls_;
  Rank rank_;
  std::map<std::int64_t, std::vector<Rank>> members_;
};

}  // namespace

bool looks_like_param_trace(const Value& value) {
  return std::ranges::any_of(items_of(&value), [](const Value& entry) {
    return entry.is(Value::Kind::dict) && find(entry, "comms") != nullptr;
  });
}

RankRecording decode_param_trace(const Value& value, Rank rank) { return CommsReader(rank).read(value); }

}  // namespace rollcall::traces
