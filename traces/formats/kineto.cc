#include "traces/formats/kineto.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "traces/formats/call_recorder.h"
#include "traces/formats/host_operators.h"
#include "traces/formats/trace_events.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

// Scripts that merge the traces of several ranks shift pids by this much per rank (rank * 10^8).
constexpr std::int64_t merged_pid_min = 100'000'000;

// The data that belongs to one External id, or to one event without an External id.
struct Activity {
  Value arguments;       // none: it has none
  double issued_us = 0;  // on the host, where known
  double kernel_us = 0;  // of all its kernels together
  bool has_host_side = false;
  std::size_t place = 0;  // in the file: breaks ties
};

class KinetoReader {
 public:
  explicit KinetoReader(const Value& file) : file_(file) {}

  RankRecording read() {
    const Value* info = find(file_, "distributedInfo");
    rank_ = info == nullptr ? -1 : static_cast<Rank>(number_or(find(*info, "rank"), -1));
    if (info != nullptr) {
      calls_.add_groups(find(*info, "pg_config"));
    }
    // A torch build without Kineto writes the events as a bare list.
    const std::span<const Value> events =
        items_of(file_.is(Value::Kind::list) ? &file_ : find(file_, "traceEvents"));
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (const TraceEvent event = trace_event_of(events[i]); event.phase == "X") {
        read_event(event, i);
      }
    }
    bool has_arguments = false;
    for (const Activity& activity : in_order()) {
      has_arguments = has_arguments || has_call(activity);
      add(activity);
    }
    if (!has_arguments) {
      add_host_operators();
    }
    RankRecording result = calls_.finish(true);
    if (rank_ >= 0 && rank_ < ranks_max) {
      result.rank = rank_;
    }
    return result;
  }

 private:
  void read_event(const TraceEvent& event, std::size_t place) {
    if (event.process >= merged_pid_min) {
      throw BadFile(0, "a merged trace of several ranks; pass the files of the ranks instead");
    }
    if (is_host_operator(event.name) || is_backend_range(event.name)) {
      (is_host_operator(event.name) ? operators_ : ranges_).push_back(event);
    }
    const bool is_host_side = event.name == "record_param_comms";
    if (!is_host_side && !event.is_call) {
      return;
    }
    const std::int64_t id = number_or(find(event.arguments, "External id"), -1);
    Activity& activity = id >= 0 ? by_id_[id] : loose_.emplace_back();
    if (!has_call(activity) && activity.issued_us == 0) {
      activity.place = place;
    }
    if (event.is_call && (!has_call(activity) || !is_host_side)) {
      activity.arguments = event.arguments;
    }
    if (is_host_side) {
      activity.has_host_side = true;
      activity.issued_us = event.start_us;
    } else {
      activity.kernel_us += std::max(event.duration_us, 0.0);
      activity.issued_us = activity.has_host_side ? activity.issued_us : event.start_us;
    }
  }

  void add_host_operators() {
    std::vector<TraceEvent>& chosen = operators_.empty() ? ranges_ : operators_;
    std::ranges::stable_sort(chosen, {}, &TraceEvent::start_us);
    for (const TraceEvent& event : chosen) {
      RecordedCall call = call_of({event.name, find(event.arguments, "Concrete Inputs"),
                                   find(event.arguments, "Input Dims"), find(event.arguments, "Input type")});
      call.group = calls_.only_group();
      call.created_ns = nanoseconds(event.start_us);
      // A backend's range lasts as long as the call.
      call.duration_ms = operators_.empty() && event.duration_us >= 0 ? event.duration_us / 1000 : -1;
      calls_.add(call, rank_);
    }
  }

  static std::int64_t nanoseconds(double us) {
    return std::isfinite(us) && std::abs(us) < 1e15 ? static_cast<std::int64_t>(us * 1000) : 0;
  }

  std::vector<Activity> in_order() const {
    std::vector<Activity> activities = loose_;
    for (const auto& [id, activity] : by_id_) {
      activities.push_back(activity);
    }
    std::ranges::sort(activities, {},
                      [](const Activity& each) { return std::pair(each.issued_us, each.place); });
    return activities;
  }

  static bool has_call(const Activity& activity) { return !activity.arguments.is(Value::Kind::none); }

  void add(const Activity& activity) {
    if (!has_call(activity)) {
      return;
    }
    auto [call, group, description, members] = trace_call_of(activity.arguments);
    call.group = calls_.group(group, description, members_of(members));
    call.created_ns = nanoseconds(activity.issued_us);
    call.duration_ms = activity.kernel_us > 0 ? activity.kernel_us / 1000 : -1;
    calls_.add(call, rank_);
  }

  const Value& file_;
  CallRecorder calls_;
  Rank rank_ = -1;
  std::map<std::int64_t, Activity> by_id_;
  std::vector<Activity> loose_;
  std::vector<TraceEvent> operators_;
  std::vector<TraceEvent> ranges_;
};

}  // namespace

bool looks_like_kineto(const Value& value) {
  const std::span<const Value> events = items_of(&value);
  return find(value, "traceEvents") != nullptr ||
         (!events.empty() && find(events[0], "ph") != nullptr && find(events[0], "ts") != nullptr);
}

RankRecording decode_kineto(const Value& value) { return KinetoReader(value).read(); }

}  // namespace rollcall::traces
