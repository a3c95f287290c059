#include "traces/formats/trace_events.h"

#include "traces/values/value_access.h"

namespace rollcall::traces {

TraceEvent trace_event_of(const Value& value) {
  TraceEvent event;
  event.phase = text_or_empty(find(value, "ph"));
  event.category = text_or_empty(find(value, "cat"));
  event.name = text_or_empty(find(value, "name"));
  event.process = number_or(find(value, "pid"), -1);
  event.start_us = real_or(find(value, "ts"), 0);
  event.duration_us = real_or(find(value, "dur"), -1);
  if (const Value* arguments = find(value, "args"); arguments != nullptr) {
    event.arguments = arguments->is(Value::Kind::dict) ? *arguments : Value();
    event.is_call = find(*arguments, "Collective name") != nullptr;
  }
  return event;
}

TraceCall trace_call_of(const Value& arguments) {
  TraceCall traced;
  RecordedCall& call = traced.call;
  call.name = text_or_empty(find(arguments, "Collective name"));
  call.seq = count_or(find(arguments, "Seq"), -1);
  call.numel_in = count_or(find(arguments, "In msg nelems"), -1);
  call.numel_out = count_or(find(arguments, "Out msg nelems"), -1);
  call.dtype = text_or_empty(find(arguments, "dtype"));
  const bool sends = call.name.find("send") != std::string_view::npos;
  const std::int64_t peer = number_or(find(arguments, sends ? "Dst Rank" : "Src Rank"), -1);
  call.peer = peer >= 0 && peer < ranks_max ? static_cast<Rank>(peer) : -1;
  traced.group = text_or_empty(find(arguments, "Process Group Name"));
  traced.group_description = text_or_empty(find(arguments, "Process Group Description"));
  traced.members = find(arguments, "Process Group Ranks");
  return traced;
}

}  // namespace rollcall::traces
