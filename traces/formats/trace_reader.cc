#include "traces/formats/trace_reader.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/values/file_bytes.h"
#include "traces/values/unpack.h"
#include "traces/values/value.h"

namespace rollcall::traces {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t sniffed_bytes = std::size_t{1} << 18;
constexpr std::size_t bytes_max = std::size_t{300}
                                  << 20;  // of one unpacked file; its tree takes ten times that
constexpr std::size_t spans_max = 2'000'000;
constexpr Rank trace_ranks_max = 1'000'000;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::int64_t number_of(const Json& object, const char* key, std::int64_t otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

double real_of(const Json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

// Returns "all_reduce" for "wait all_reduce #3".
std::string plain_name(std::string name) {
  if (name.starts_with("wait ")) {
    name.erase(0, 5);
  }
  const std::size_t number = name.find(" #");
  return name.substr(0, number);
}

// The group's description if it says something; "default_pg" is torch's word for the world.
std::string group_of(const Json& arguments) {
  const std::string description = text_of(arguments, "Process Group Description");
  const std::string name = text_of(arguments, "Process Group Name");
  if (description == "default_pg" || (description.empty() && (name.empty() || name == "0"))) {
    return "world";
  }
  return description.empty() || description == "undefined" ? name : description;
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
    const Json root = parse(path);
    const auto events = root.find("traceEvents");
    if (!root.is_object() || events == root.end() || !events->is_array()) {
      fail("no \"traceEvents\"");
    }
    read_about(root);
    const bool has_kernels = std::ranges::any_of(*events, is_communication_kernel);
    for (const Json& event : *events) {
      if (event.is_object()) {
        read_event(event, has_kernels);
      }
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

  Json parse(const std::string& path) {
    try {
      const std::string_view text = bytes_.read(path);
      if (text.size() > bytes_max) {
        fail(fmt::format(
            "{} MB, but a page holds at most {}; narrow it down with --trace-ranks or --trace-window",
            text.size() >> 20, bytes_max >> 20));
      }
      return Json::parse(text);
    } catch (const BadFile& error) {
      fail(error.what());
    } catch (const Json::exception& error) {
      fail(error.what());
    }
  }

  void read_about(const Json& root) {
    rank_.reset();
    const auto info = root.find("distributedInfo");
    if (info != root.end() && info->is_object()) {
      if (const std::int64_t rank = number_of(*info, "rank", -1); rank >= 0 && rank < trace_ranks_max) {
        rank_ = static_cast<Rank>(rank);
        if (!seen_.insert(*rank_).second) {
          fail(fmt::format("a second file of rank {}", *rank_));
        }
      }
      report_.backend = text_of(*info, "backend");
      const std::int64_t size = number_of(*info, "world_size", 0);
      report_.world_size =
          static_cast<Rank>(std::clamp<std::int64_t>(size, report_.world_size, trace_ranks_max));
    }
    const auto metadata = root.find("metadata");
    if (metadata != root.end() && metadata->is_object()) {
      report_.scenario = text_of(*metadata, "scenario");
      report_.replay = text_of(*metadata, "replay");
    }
  }

  static bool is_communication_kernel(const Json& event) {
    return event.is_object() && text_of(event, "cat") == "kernel" && event.contains("args") &&
           event["args"].is_object() && event["args"].contains("Collective name");
  }

  void read_event(const Json& event, bool has_kernels) {
    const std::string phase = text_of(event, "ph");
    if (phase != "X" && phase != "B") {
      return;
    }
    const std::string category = text_of(event, "cat");
    static const Json nothing = Json::object();
    const auto found = event.find("args");
    const Json& arguments = found != event.end() && found->is_object() ? *found : nothing;
    const bool is_call = arguments.contains("Collective name");
    const bool is_host = category == "host";
    const bool is_own = is_host || category == "collective" || category == "message" || category == "compute";
    const bool is_kernel = category == "kernel";
    // Kineto puts a collective's arguments on the kernel and, if shapes are recorded, on the host's operator as well.
    if (!is_own && !is_kernel && !(is_call && !has_kernels)) {
      return;
    }
    Slice slice;
    slice.start_us = real_of(event, "ts", 0);
    slice.duration_us = phase == "B" ? -1 : std::max(real_of(event, "dur", 0), 0.0);
    slice.span.rank = rank_.value_or(rank_from(event));
    highest_ = std::max(highest_, slice.span.rank);
    const std::string name = text_of(event, "name");
    if (is_host) {
      fill_host_call(slice.span, name, arguments);
    } else {
      is_call ? fill_call(slice.span, name, arguments) : fill_compute(slice.span, name);
    }
    slice.span.site = report_.timeline.intern(text_of(arguments, "site"));
    if (slices_.size() == spans_max) {
      fail(
          fmt::format("more than {} slices; narrow it down with --trace-ranks or --trace-window", spans_max));
    }
    slices_.push_back(slice);
  }

  Rank rank_from(const Json& event) const {
    const std::int64_t pid = number_of(event, "pid", -1);
    if (pid < 0 || pid >= trace_ranks_max) {
      fail("a process that is not a rank; pass one file per rank, as torch.profiler writes them");
    }
    return static_cast<Rank>(pid);
  }

  void fill_compute(Span& span, const std::string& name) {
    span.kind = Span::Kind::compute;
    span.name = report_.timeline.intern(name.empty() ? "compute" : name);
  }

  // Only our own traces have these: viz/traces/chrome_trace writes them.
  void fill_host_call(Span& span, const std::string& name, const Json& arguments) {
    span.kind = Span::Kind::host;
    span.name = report_.timeline.intern(plain_name(name));
    span.group = report_.timeline.intern(group_of(arguments));
    span.arguments = report_.timeline.intern(text_of(arguments, "arguments"));
    span.label = report_.timeline.intern(text_of(arguments, "label"));
  }

  void fill_call(Span& span, const std::string& name, const Json& arguments) {
    const bool is_named = !name.starts_with("nccl") && name != "record_param_comms";
    const std::string op = is_named ? plain_name(name) : text_of(arguments, "Collective name");
    const bool is_message = op == "send" || op == "recv";
    span.kind = is_message ? Span::Kind::message : Span::Kind::collective;
    span.name = report_.timeline.intern(op);
    const std::string group = group_of(arguments);
    span.group = report_.timeline.intern(group);
    groups_[group].insert(span.rank);
    span.seq = number_of(arguments, "Seq", next_seq_[{span.rank, span.group}]);
    next_seq_[{span.rank, span.group}] = span.seq + 1;
    span.numel = number_of(arguments, "In msg nelems", 0);
    const std::string dtype = text_of(arguments, "dtype");
    span.dtype = parse_scalar_type(dtype).value_or(Dtype::float32);
    const auto kind = parse_op_kind(op);
    if (!(kind && has_tensor(*kind)) && !dtype.empty() && span.numel > 0) {
      span.arguments = report_.timeline.intern(fmt::format("{} x {}", dtype, span.numel));
    }
    span.label = report_.timeline.intern(text_of(arguments, "label"));
    if (is_message) {
      const std::int64_t peer = number_of(arguments, op == "send" ? "Dst Rank" : "Src Rank", -1);
      span.peer = peer >= 0 && peer < trace_ranks_max ? static_cast<Rank>(peer) : -1;
      highest_ = std::max(highest_, span.peer);
    }
  }

  FileBytes bytes_;
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
  std::string start(sniffed_bytes, '\0');
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
