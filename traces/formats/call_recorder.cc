#include "traces/formats/call_recorder.h"

#include <algorithm>

#include "traces/formats/call_names.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

using check::DumpCall;
using check::DumpGroup;
using check::DumpRecord;

CallRecorder::CallRecorder() {
  result_.dump.has_states = false;
  result_.dump.without_gaps = true;
}

std::uint32_t CallRecorder::group(std::string_view name, std::string_view description,
                                  std::vector<Rank> members) {
  const std::vector<DumpGroup>& known = result_.tables.groups.things();
  const auto same = std::find_if(known.begin(), known.end(), [&](const DumpGroup& group) {
    return group.name == name && (members.empty() || group.members == members);
  });
  if (same != known.end()) {
    return static_cast<std::uint32_t>(same - known.begin());
  }
  return result_.tables.number_of(DumpGroup{std::string(name), std::string(description), std::move(members)});
}

void CallRecorder::add_groups(const Value* table) {
  for (const Value& each : items_of(table)) {
    if (each.is(Value::Kind::dict)) {
      group(text_or_empty(find(each, "pg_name")), text_or_empty(find(each, "pg_desc")),
            members_of(find(each, "ranks")));
    }
  }
}

std::uint32_t CallRecorder::only_group() {
  if (result_.tables.groups.things().size() != 1) {
    result_.dump.knows_groups = false;
  }
  return result_.dump.knows_groups ? 0 : group("0", "default_pg", {});
}

void CallRecorder::add(const RecordedCall& call, Rank own_rank) {
  const std::string op = recorder_name(call.name);
  if (op.empty()) {
    return;
  }
  DumpCall recorded;
  recorded.op = op;
  const bool is_message = op == "send" || op == "recv";
  if (is_message) {
    add_message(call, recorded, own_rank);
    if (!recorded.is_message()) {
      return;
    }
  }
  const std::int64_t numel_out = is_message ? call.numel_in : call.numel_out;
  recorded.inputs =
      call.numel_in < 0 ? decltype(recorded.inputs)() : decltype(recorded.inputs){{call.numel_in}};
  recorded.outputs = numel_out < 0 ? decltype(recorded.outputs)() : decltype(recorded.outputs){{numel_out}};
  if (!call.dtype.empty() && op != "barrier") {
    recorded.input_dtypes = recorded.output_dtypes = {std::string(call.dtype)};
  }
  DumpRecord record;
  counts_.resize(result_.tables.groups.things().size());
  std::int64_t& count = counts_[call.group];
  count = is_message ? count : call.seq >= 0 ? call.seq : count + 1;
  record.collective_seq = count;
  record.created_ns = call.created_ns;
  record.duration_ms = duration_or_none(call.duration_ms);
  record.group = call.group;
  record.call = result_.tables.number_of(recorded);
  record.is_p2p = is_message;
  record.p2p_seq = is_message ? 1 : 0;
  result_.dump.records.push_back(record);
}

// A send records how much goes out, a receive how much comes in: one number serves for both.
void CallRecorder::add_message(const RecordedCall& call, DumpCall& recorded, Rank own_rank) const {
  const std::vector<Rank>& members = result_.tables.groups.things()[call.group].members;
  const auto place = std::lower_bound(members.begin(), members.end(), own_rank);
  const bool is_member = place != members.end() && *place == own_rank;
  const Rank own = is_member ? static_cast<Rank>(place - members.begin()) : own_rank;
  if (call.peer >= 0 && own >= 0) {
    recorded.source = recorded.op == "send" ? own : call.peer;
    recorded.destination = recorded.op == "send" ? call.peer : own;
  }
}

RankRecording CallRecorder::finish(bool is_window) {
  result_.dump.is_window = is_window;
  result_.dump.from_start = !is_window && !result_.dump.records.empty();
  for (std::uint32_t i = 0; i < result_.tables.groups.things().size(); ++i) {
    result_.dump.groups.push_back(i);
  }
  return std::move(result_);
}

}  // namespace rollcall::traces
