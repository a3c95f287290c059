#include "viz/traces/kineto_trace.h"

// The format that Holistic Trace Analysis needs (hta/common/trace_parser.py and the breakdown analyses), as observed
// by running it:
//
//   "rank": 3 with a space         otherwise every file is taken for rank 0's
//   kernels: cat "kernel"          with args.stream above 0
//   communication: ^nccl...        computing is every other kernel
//   neither correlation nor        one of the two without the other makes it fail
//     launch events
//   ProfilerStep#n                 on the host's row: iterations, which its comparison of two traces needs
//   an open B is ignored           torch's own tools ignore it as well: Kineto never writes one

#include <algorithm>
#include <array>
#include <optional>
#include <ostream>
#include <set>

#include <fmt/format.h>

#include "sim/c10d/op.h"
#include "viz/rows/span_text.h"
#include "viz/traces/trace_text.h"

namespace rollcall::viz {

namespace {

constexpr int device_process = 0;       // Kineto: the device's index
constexpr int compute_stream = 7;       // PyTorch's default stream, as CUPTI numbers it
constexpr int first_comms_stream = 20;  // about where c10d's streams begin
constexpr int host_process = 1;         // any pid but the device's
constexpr int host_thread = 1001;

// The last part of the names of NCCL's kernels, by NcclFunction. The calls that NCCL implements as sends and receives
// run in one kernel.
constexpr std::array<std::string_view, 7> kernel_names = {
    "SendRecv", "AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter", "SendRecv"};

std::string_view kernel_name(std::string_view op) {
  const std::optional<OpKind> kind = parse_op_kind(op);
  return kernel_names[static_cast<std::size_t>(kind ? row_of(*kind).nccl : NcclFunction::none)];
}

class RankFile {
 public:
  RankFile(const Report& report, const TracePlan& plan, const std::vector<TraceGroup>& groups, Rank rank,
           const TraceOptions& options, std::ostream& out)
      : report_(report),
        plan_(plan),
        groups_(groups),
        rank_(rank),
        options_(options),
        text_(out, options.whole_microseconds) {}

  void write(const std::vector<std::uint32_t>& spans, const std::vector<StepMark>& steps) {
    text_.append("{\"schemaVersion\": 1, \"deviceProperties\": [],\n\"distributedInfo\": ");
    text_.append(distributed_info(report_, rank_));
    text_.append(",\n\"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": 0,\n\"traceEvents\": [");
    metadata(spans, !steps.empty() || std::ranges::any_of(spans, [this](std::uint32_t index) {
               return span_at(index).kind == Span::Kind::host;
             }));
    const Time end = end_of(spans);
    std::size_t next = 0;
    for (const std::uint32_t index : spans) {
      const Span& span = span_at(index);
      next = host_steps(steps, next, span.start, end);
      if (span.kind == Span::Kind::host) {
        host_call(span);
      } else if (span.kind == Span::Kind::compute) {
        compute(span, index);
      } else {
        communication(span, index);
      }
    }
    host_steps(steps, next, end, end);
    marks(spans);
    text_.add(FMT_COMPILE("\n],\n\"traceName\": \"{}\"}}\n"), KinetoTraces::file_name(rank_));
  }

 private:
  const Span& span_at(std::uint32_t index) const { return report_.timeline.spans()[index]; }

  // The program's rows are on the default stream, every other row on a stream of c10d's.
  int stream_of(std::uint32_t index, bool is_communication) const {
    if (!is_communication) {
      return compute_stream;
    }
    const LaneId lane = plan_.lanes.lane_of[index];
    return first_comms_stream + static_cast<int>(lane - program_lane);
  }

  void metadata(const std::vector<std::uint32_t>& spans, bool has_host) {
    process(device_process, fmt::format("rank {}", rank_), rank_);
    if (has_host) {
      process(host_process, fmt::format("rank {} host", rank_), rank_);
      thread(host_process, host_thread, "program");
    }
    std::set<int> streams;
    for (const std::uint32_t index : spans) {
      const Span& span = span_at(index);
      if (span.kind != Span::Kind::host) {
        streams.insert(stream_of(index, span.moves_data()));
      }
    }
    for (const int stream : streams) {
      thread(device_process, stream, fmt::format("stream {}", stream));
    }
  }

  // When the rank's last span ends; one that never returned lasts as long as the trace.
  Time end_of(const std::vector<std::uint32_t>& spans) const {
    Time end = 0;
    for (const std::uint32_t index : spans) {
      const Span& span = span_at(index);
      end = std::max(end, span.end == Span::open ? plan_.end : span.end);
    }
    return end;
  }

  // Writes the steps from number `next` on that begin by `time`; returns the number of the next one. A step lasts
  // until the next one begins, as torch.profiler's do, and the last step until `end`.
  std::size_t host_steps(const std::vector<StepMark>& steps, std::size_t next, Time time, Time end) {
    for (; next < steps.size() && steps[next].time <= time; ++next) {
      const StepMark& step = steps[next];
      const Time until = next + 1 < steps.size() ? steps[next + 1].time : std::max(end, step.time);
      if (step.time > options_.until || until < options_.from) {
        continue;
      }
      text_.begin_event(
          FMT_COMPILE(
              R"({{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "pid": {}, "tid": {})"),
          step.number, host_process, host_thread);
      text_.add_start(step.time);
      text_.add_duration(step.time, until);
      text_.append("}");
    }
    return next;
  }

  void process(int pid, const std::string& name, int place) {
    text_.begin_event(FMT_COMPILE(R"({{"ph": "M", "name": "process_name", "pid": {}, "tid": 1, "ts": 0, )"
                                  R"("args": {{"name": "{}"}}}})"),
                      pid, name);
    text_.begin_event(
        FMT_COMPILE(R"({{"ph": "M", "name": "process_sort_index", "pid": {}, "tid": 1, "ts": 0, )"
                    R"("args": {{"sort_index": {}}}}})"),
        pid, place);
  }

  void thread(int pid, int tid, const std::string& name) {
    text_.begin_event(FMT_COMPILE(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "ts": 0, )"
                                  R"("args": {{"name": "{}"}}}})"),
                      pid, tid, name);
    text_.begin_event(
        FMT_COMPILE(R"({{"ph": "M", "name": "thread_sort_index", "pid": {}, "tid": {}, "ts": 0, )"
                    R"("args": {{"sort_index": {}}}}})"),
        pid, tid, tid);
  }

  void host_call(const Span& span) {
    begin_slice("user_annotation", escaped(call_text(span, report_.timeline)), host_process, host_thread,
                span);
    text_.append("}");
  }

  void compute(const Span& span, std::uint32_t index) {
    const int stream = stream_of(index, false);
    begin_slice("kernel", escaped(report_.timeline.name(span.name)), device_process, stream, span);
    text_.add(FMT_COMPILE(R"(, "args": {{"stream": {}, "device": 0}}}})"), stream);
  }

  void communication(const Span& span, std::uint32_t index) {
    const std::string& op = report_.timeline.name(span.name);
    const int stream = stream_of(index, true);
    begin_slice("kernel", fmt::format("ncclDevKernel_{}_{}", kernel_name(op), to_string(span.dtype)),
                device_process, stream, span);
    const TraceGroup& group = groups_[span.group];
    const std::string group_name = escaped(report_.timeline.name(span.group));
    text_.add(FMT_COMPILE(R"(, "args": {{"stream": {}, "device": 0, "Collective name": "{}", )"
                          R"("In msg nelems": {}, "Out msg nelems": {}, "Group size": {}, "dtype": "{}")"),
              stream, escaped(kineto_name(op)), span.numel, numel_out(op, span.numel, group.size), group.size,
              scalar_type_name(span.dtype));
    text_.add(FMT_COMPILE(R"(, "Process Group Name": "{}", "Process Group Description": "{}")"), group_name,
              group_name == "world" ? "default_pg" : group_name);
    if (!group.ranks.empty()) {
      text_.add(FMT_COMPILE(R"(, "Process Group Ranks": "{}")"), group.ranks);
    }
    if (span.peer >= 0) {
      const bool sends = op == "send";
      text_.add(FMT_COMPILE(R"(, "Src Rank": {}, "Dst Rank": {})"), sends ? span.rank : span.peer,
                sends ? span.peer : span.rank);
    }
    text_.add(FMT_COMPILE(R"(, "Seq": {}}}}})"), span.seq);
  }

  void begin_slice(std::string_view cat, const std::string& name, int pid, int tid, const Span& span) {
    const bool is_open = span.end == Span::open;
    text_.begin_event(FMT_COMPILE(R"({{"ph": "{}", "cat": "{}", "name": "{}", "pid": {}, "tid": {})"),
                      is_open ? 'B' : 'X', cat, name, pid, tid);
    text_.add_start(span.start);
    if (!is_open) {
      text_.add_duration(span.start, span.end);
    }
  }

  void marks(const std::vector<std::uint32_t>& spans) {
    for (const std::uint32_t index : spans) {
      const Span& span = span_at(index);
      if (span.end == Span::open) {
        const bool is_host = span.kind == Span::Kind::host;
        text_.begin_event(FMT_COMPILE(R"({{"ph": "i", "s": "t", "name": "{}", "pid": {}, "tid": {})"),
                          verdict_mark(report_), is_host ? host_process : device_process,
                          is_host ? host_thread : stream_of(index, true));
        text_.add_start(plan_.end);
        text_.append("}");
      }
    }
  }

  const Report& report_;
  const TracePlan& plan_;
  const std::vector<TraceGroup>& groups_;
  Rank rank_;
  const TraceOptions& options_;
  TraceText text_;
};

}  // namespace

KinetoTraces::KinetoTraces(const Report& report, const TraceOptions& options)
    : report_(report), options_(options), plan_(plan_trace(report, options)), groups_(trace_groups(report)) {
  for (const std::uint32_t index : plan_.lanes.order) {
    spans_[report.timeline.spans()[index].rank].push_back(index);
  }
  for (const StepMark& step : report.timeline.steps()) {
    steps_[step.rank].push_back(step);
  }
}

std::string KinetoTraces::file_name(Rank rank) { return fmt::format("rank{}.json", rank); }

void KinetoTraces::write(Rank rank, std::ostream& out) const {
  const auto of_rank = [rank](const auto& lists) {
    const auto list = lists.find(rank);
    return list != lists.end() ? list->second : typename std::decay_t<decltype(lists)>::mapped_type();
  };
  RankFile(report_, plan_, groups_, rank, options_, out).write(of_rank(spans_), of_rank(steps_));
}

}  // namespace rollcall::viz
