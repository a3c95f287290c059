#include "traces/formats/kineto.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "traces/formats/call_recorder.h"
#include "traces/formats/host_operators.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

// Scripts that merge the traces of several ranks shift pids by this much per rank (rank * 10^8).
constexpr std::int64_t merged_pid_min = 100'000'000;

// The data that belongs to one External id, or to one event without an External id.
struct Activity {
  const Value* arguments = nullptr;
  double issued_us = 0;  // on the host, where known
  double kernel_us = 0;  // of all its kernels together
  bool has_host_side = false;
  std::size_t place = 0;  // in the file: breaks ties
};

// A torch build without Kineto writes the events as a bare list.
std::pair<const Value*, std::uint32_t> events_of(const Value& file) {
  return file.is(Value::Kind::list) ? items_of(&file) : items_of(find(file, "traceEvents"));
}

class KinetoReader {
 public:
  explicit KinetoReader(const Value& file) : file_(file) {}

  RankRecording read() {
    const Value* info = find(file_, "distributedInfo");
    rank_ = info == nullptr ? -1 : static_cast<Rank>(number_or(find(*info, "rank"), -1));
    if (info != nullptr) {
      read_groups(*info);
    }
    const auto [events, size] = events_of(file_);
    for (std::uint32_t i = 0; i < size; ++i) {
      if (events[i].is(Value::Kind::dict) && text_or_empty(find(events[i], "ph")) == "X") {
        read_event(events[i], i);
      }
    }
    const std::vector<Activity> activities = in_order();
    const bool has_arguments = std::any_of(activities.begin(), activities.end(),
                                           [](const Activity& a) { return a.arguments != nullptr; });
    for (const Activity& activity : activities) {
      add(activity);
    }
    if (!has_arguments) {
      read_host_operators(events, size);
    }
    RankRecording result = calls_.finish(true);
    if (rank_ >= 0 && rank_ < ranks_max) {
      result.rank = rank_;
    }
    return result;
  }

 private:
  void read_groups(const Value& info) {
    const auto [groups, size] = items_of(find(info, "pg_config"));
    for (std::uint32_t i = 0; i < size; ++i) {
      if (groups[i].is(Value::Kind::dict)) {
        calls_.group(text_or_empty(find(groups[i], "pg_name")), text_or_empty(find(groups[i], "pg_desc")),
                     members_of(find(groups[i], "ranks")));
      }
    }
  }

  void read_event(const Value& event, std::size_t place) {
    if (number_or(find(event, "pid"), 0) >= merged_pid_min) {
      throw BadFile(0, "a merged trace of several ranks; pass the files of the ranks instead");
    }
    const Value* arguments = find(event, "args");
    const bool is_host_side = text_or_empty(find(event, "name")) == "record_param_comms";
    const bool has_arguments = arguments != nullptr && arguments->is(Value::Kind::dict);
    const bool is_call = has_arguments && find(*arguments, "Collective name") != nullptr;
    if (!is_host_side && !is_call) {
      return;
    }
    const std::int64_t id = has_arguments ? number_or(find(*arguments, "External id"), -1) : -1;
    Activity& activity = id >= 0 ? by_id_[id] : loose_.emplace_back();
    const double start = real_or(find(event, "ts"), 0);
    if (activity.arguments == nullptr && activity.issued_us == 0) {
      activity.place = place;
    }
    if (is_call && (activity.arguments == nullptr || !is_host_side)) {
      activity.arguments = arguments;
    }
    if (is_host_side) {
      activity.has_host_side = true;
      activity.issued_us = start;
    } else {
      activity.kernel_us += real_or(find(event, "dur"), 0);
      activity.issued_us = activity.has_host_side ? activity.issued_us : start;
    }
  }

  void read_host_operators(const Value* events, std::uint32_t size) {
    std::vector<const Value*> operators;
    std::vector<const Value*> ranges;
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::string_view name = text_or_empty(find(events[i], "name"));
      if (text_or_empty(find(events[i], "ph")) == "X" && (is_host_operator(name) || is_backend_range(name))) {
        (is_host_operator(name) ? operators : ranges).push_back(&events[i]);
      }
    }
    std::vector<const Value*>& chosen = operators.empty() ? ranges : operators;
    std::stable_sort(chosen.begin(), chosen.end(), [](const Value* a, const Value* b) {
      return real_or(find(*a, "ts"), 0) < real_or(find(*b, "ts"), 0);
    });
    for (const Value* event : chosen) {
      add_host_operator(*event, operators.empty());
    }
  }

  // A backend's range lasts as long as the call.
  void add_host_operator(const Value& event, bool is_range) {
    HostOperator host{text_or_empty(find(event, "name"))};
    if (const Value* arguments = find(event, "args"); arguments != nullptr) {
      host.values = find(*arguments, "Concrete Inputs");
      host.shapes = find(*arguments, "Input Dims");
      host.types = find(*arguments, "Input type");
    }
    RecordedCall call = call_of(host);
    call.group = calls_.only_group();
    call.created_ns = nanoseconds(real_or(find(event, "ts"), 0));
    call.duration_ms = is_range ? real_or(find(event, "dur"), -1000) / 1000 : -1;
    calls_.add(call, rank_);
  }

  static std::int64_t nanoseconds(double us) {
    return std::isfinite(us) && std::abs(us) < 1e15 ? static_cast<std::int64_t>(us * 1000) : 0;
  }

  std::vector<Activity> in_order() const {
    std::vector<Activity> activities = loose_;
    for (const auto& [id, activity] : by_id_) {
      activities.push_back(activity);
    }
    std::sort(activities.begin(), activities.end(), [](const Activity& a, const Activity& b) {
      return std::tie(a.issued_us, a.place) < std::tie(b.issued_us, b.place);
    });
    return activities;
  }

  void add(const Activity& activity) {
    if (activity.arguments == nullptr) {
      return;
    }
    const Value& arguments = *activity.arguments;
    RecordedCall call;
    call.name = text_or_empty(find(arguments, "Collective name"));
    call.group = calls_.group(text_or_empty(find(arguments, "Process Group Name")),
                              text_or_empty(find(arguments, "Process Group Description")),
                              members_of(find(arguments, "Process Group Ranks")));
    call.seq = count_or(find(arguments, "Seq"), -1);
    call.numel_in = count_or(find(arguments, "In msg nelems"), -1);
    call.numel_out = count_or(find(arguments, "Out msg nelems"), -1);
    call.dtype = text_or_empty(find(arguments, "dtype"));
    const bool sends = call.name.find("send") != std::string_view::npos;
    call.peer = static_cast<Rank>(number_or(find(arguments, sends ? "Dst Rank" : "Src Rank"), -1));
    call.created_ns = nanoseconds(activity.issued_us);
    call.duration_ms = activity.kernel_us > 0 ? activity.kernel_us / 1000 : -1;
    calls_.add(call, rank_);
  }

  const Value& file_;
  CallRecorder calls_;
  Rank rank_ = -1;
  std::map<std::int64_t, Activity> by_id_;
  std::vector<Activity> loose_;
};

}  // namespace

bool looks_like_kineto(const Value& value) {
  const auto [events, size] = items_of(&value);
  return find(value, "traceEvents") != nullptr ||
         (size > 0 && find(events[0], "ph") != nullptr && find(events[0], "ts") != nullptr);
}

RankRecording decode_kineto(const Value& value) { return KinetoReader(value).read(); }

}  // namespace rollcall::traces
