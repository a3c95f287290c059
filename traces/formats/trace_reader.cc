#include "traces/formats/trace_reader.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>

#include <fmt/core.h>

#include "traces/formats/trace_events.h"
#include "traces/values/file_bytes.h"
#include "traces/values/json_value.h"
#include "traces/values/unpack.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t sniffed_bytes = std::size_t{1} << 18;
constexpr std::size_t arena_bytes_max = std::size_t{3} << 30;  // of one file: three times its unpacked size
constexpr std::size_t spans_max = 2'000'000;
constexpr Rank trace_ranks_max = 1'000'000;

// Null if there is none, or it is another value.
const Value* dict_in(const Value& file, std::string_view key) {
  const Value* dict = find(file, key);
  return dict != nullptr && dict->is(Value::Kind::dict) ? dict : nullptr;
}

// Returns "all_reduce" for "wait all_reduce #3".
std::string_view plain_name(std::string_view name) {
  if (name.starts_with("wait ")) {
    name.remove_prefix(5);
  }
  return name.substr(0, name.find(" #"));
}

// The group's description if it says something; "default_pg" is torch's word for the world.
std::string_view group_of(const TraceCall& traced) {
  const std::string_view description = traced.group_description;
  if (description == "default_pg" || (description.empty() && (traced.group.empty() || traced.group == "0"))) {
    return "world";
  }
  return description.empty() || description == "undefined" ? traced.group : description;
}

// One slice, before the start of the trace is known.
struct Slice {
  Span span;
  double start_us = 0;
  double duration_us = -1;  // below 0: the call never returned
};

class TraceReader {
 public:
  void read(const std::string& path) {
    path_ = path;
    const Value root = parse(path);
    const Value* list = find(root, "traceEvents");
    if (list == nullptr || !list->is(Value::Kind::list)) {
      fail("no \"traceEvents\"");
    }
    read_about(root);
    const std::span<const Value> events = items_of(list);
    const bool has_kernels = std::ranges::any_of(events, is_communication_kernel, trace_event_of);
    for (const Value& event : events) {
      read_event(trace_event_of(event), has_kernels);
    }
  }

  Report take() {
    double begin = std::numeric_limits<double>::max();
    for (const Slice& slice : slices_) {
      begin = std::min(begin, slice.start_us);
    }
    for (Slice& slice : slices_) {
      slice.span.start = std::llround((slice.start_us - begin) * 1000);
      slice.span.end =
          slice.duration_us < 0 ? Span::open : slice.span.start + std::llround(slice.duration_us * 1000);
      report_.simulated_time = std::max({report_.simulated_time, slice.span.start, slice.span.end});
      report_.ops += slice.span.kind == Span::Kind::compute ? 0 : 1;
      report_.timeline.add(slice.span);
    }
    report_.measured = true;
    report_.verdict = Completed{};
    report_.world_size = std::max<Rank>(report_.world_size, highest_ + 1);
    for (const auto& [name, ranks] : groups_) {
      report_.groups.push_back({name, ranks});
    }
    return std::move(report_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InvalidTrace(fmt::format("'{}': {}", path_, what));
  }

  Value parse(const std::string& path) {
    try {
      arena_.reset();
      return read_json(bytes_.read(path), arena_);
    } catch (const BadFile& error) {
      fail(error.text());
    }
  }

  void read_about(const Value& root) {
    rank_.reset();
    if (const Value* info = dict_in(root, "distributedInfo")) {
      if (const std::int64_t rank = number_or(find(*info, "rank"), -1); rank >= 0 && rank < trace_ranks_max) {
        rank_ = static_cast<Rank>(rank);
        if (!seen_.insert(*rank_).second) {
          fail(fmt::format("a second file of rank {}", *rank_));
        }
      }
      report_.backend = text_or_empty(find(*info, "backend"));
      const std::int64_t size = number_or(find(*info, "world_size"), 0);
      report_.world_size =
          static_cast<Rank>(std::clamp<std::int64_t>(size, report_.world_size, trace_ranks_max));
    }
    if (const Value* metadata = dict_in(root, "metadata")) {
      report_.scenario = text_or_empty(find(*metadata, "scenario"));
      report_.replay = text_or_empty(find(*metadata, "replay"));
    }
  }

  static bool is_communication_kernel(const TraceEvent& event) {
    return event.category == "kernel" && event.is_call;
  }

  void read_event(const TraceEvent& event, bool has_kernels) {
    if (event.phase != "X" && event.phase != "B") {
      return;
    }
    const std::string_view category = event.category;
    const bool is_host = category == "host";
    const bool is_own = is_host || category == "collective" || category == "message" || category == "compute";
    // Kineto puts a collective's arguments on the kernel and, if shapes are recorded, on the host's operator as well.
    if (!is_own && category != "kernel" && !(event.is_call && !has_kernels)) {
      return;
    }
    Slice slice;
    slice.start_us = event.start_us;
    slice.duration_us = event.phase == "B" ? -1 : std::max(event.duration_us, 0.0);
    slice.span.rank = rank_ ? *rank_ : rank_from(event);
    highest_ = std::max(highest_, slice.span.rank);
    if (is_host) {
      fill_host_call(slice.span, event);
    } else {
      event.is_call ? fill_call(slice.span, event) : fill_compute(slice.span, event);
    }
    slice.span.site = text_in(event, "site");
    if (slices_.size() == spans_max) {
      fail(
          fmt::format("more than {} slices; narrow it down with --trace-ranks or --trace-window", spans_max));
    }
    slices_.push_back(slice);
  }

  // An argument that only our own traces have: viz/traces/chrome_trace writes them.
  std::uint32_t text_in(const TraceEvent& event, std::string_view argument) {
    return report_.timeline.intern(text_or_empty(find(event.arguments, argument)));
  }

  Rank rank_from(const TraceEvent& event) const {
    if (event.process < 0 || event.process >= trace_ranks_max) {
      fail("a process that is not a rank; pass one file per rank, as torch.profiler writes them");
    }
    return static_cast<Rank>(event.process);
  }

  void fill_compute(Span& span, const TraceEvent& event) {
    span.kind = Span::Kind::compute;
    span.name = report_.timeline.intern(event.name.empty() ? "compute" : event.name);
  }

  void fill_host_call(Span& span, const TraceEvent& event) {
    span.kind = Span::Kind::host;
    span.name = report_.timeline.intern(plain_name(event.name));
    span.group = report_.timeline.intern(group_of(trace_call_of(event.arguments)));
    span.arguments = text_in(event, "arguments");
    span.label = text_in(event, "label");
  }

  void fill_call(Span& span, const TraceEvent& event) {
    const TraceCall traced = trace_call_of(event.arguments);
    const RecordedCall& call = traced.call;
    const bool is_named = !event.name.starts_with("nccl") && event.name != "record_param_comms";
    const std::string_view op = is_named ? plain_name(event.name) : call.name;
    const bool is_message = op == "send" || op == "recv";
    span.kind = is_message ? Span::Kind::message : Span::Kind::collective;
    span.name = report_.timeline.intern(op);
    const std::string_view group = group_of(traced);
    span.group = report_.timeline.intern(group);
    groups_[std::string(group)].insert(span.rank);
    std::int64_t& next = next_seq_[{span.rank, span.group}];
    span.seq = call.seq < 0 ? next : call.seq;
    next = span.seq + 1;
    span.numel = std::max<std::int64_t>(call.numel_in, 0);
    span.dtype = parse_scalar_type(call.dtype).value_or(Dtype::float32);
    const auto kind = parse_op_kind(op);
    if (!(kind && has_tensor(*kind)) && !call.dtype.empty() && span.numel > 0) {
      span.arguments = report_.timeline.intern(fmt::format("{} x {}", call.dtype, span.numel));
    }
    span.label = text_in(event, "label");
    if (is_message) {
      span.peer = call.peer < trace_ranks_max ? call.peer : -1;
      highest_ = std::max(highest_, span.peer);
    }
  }

  FileBytes bytes_;
  Arena arena_{arena_bytes_max};
  std::string path_;
  std::optional<Rank> rank_;  // of the current file; empty if it holds all ranks
  std::set<Rank> seen_;       // ranks that have a file of their own
  std::vector<Slice> slices_;
  std::map<std::pair<Rank, std::uint32_t>, std::int64_t> next_seq_;  // where events have no number
  std::map<std::string, RankSet> groups_;
  Rank highest_ = 0;
  Report report_;
};

// Returns the files as given, and for each folder the traces in it, in order of their names.
std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      if (entry.is_regular_file() && looks_like_trace(entry.path().string())) {
        files.push_back(entry.path().string());
      }
    }
    if (error) {
      throw InvalidTrace(fmt::format("cannot list '{}': {}", path, error.message()));
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::string beginning_of(const std::string& path) {
  std::error_code missing;
  if (!fs::is_regular_file(path, missing)) {
    return {};  // reading from a pipe would consume its bytes
  }
  // Most files are small, and fresh memory is dear. Those of /proc say that they are empty.
  const std::uintmax_t size = std::max<std::uintmax_t>(fs::file_size(path, missing), 4096);
  std::string start(static_cast<std::size_t>(std::min<std::uintmax_t>(size, sniffed_bytes)), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  return is_packed(start) ? beginning_of_packed(start, sniffed_bytes) : start;
}

bool looks_like_trace(const std::string& path) {
  return beginning_of(path).find("\"traceEvents\"") != std::string::npos;
}

Report read_trace(const std::vector<std::string>& paths) {
  TraceReader reader;
  for (const std::string& file : files_of(paths)) {
    reader.read(file);
  }
  return reader.take();
}

}  // namespace rollcall::traces
