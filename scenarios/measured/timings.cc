#include "scenarios/measured/timings.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "scenarios/measured/bench_table.h"
#include "sim/cost/group_cost.h"
#include "traces/dumps/recorded_call.h"

namespace rollcall::measured {

namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const scenario::SourceText& source, std::string message) {
  scenario::Diagnostics diagnostics(source);
  diagnostics.error(0, {}, std::move(message));
  diagnostics.throw_if_any();
  std::abort();
}

// Sets how long each member waited for the last one, and the time that the last one needed.
void set_times(Timing& timing, const std::vector<double>& times) {
  timing.time = *std::ranges::min_element(times);
  for (const double time : times) {
    timing.waited.push_back(time - timing.time);
  }
}

// Names ranks by their numbers, and hosts, each of which has a block of ranks.
void name_places(Timings& timings, int last_rank, int ranks_per_host) {
  for (int rank = 0; rank <= last_rank; ++rank) {
    timings.ranks.push_back({fmt::format("{}", rank), rank / ranks_per_host});
  }
  for (int host = 0; host <= last_rank / ranks_per_host; ++host) {
    timings.hosts.push_back(fmt::format("node {}", host));
  }
}

// {"rollcall_timings": 1, "gpus_per_node": 8, "rows": [{"op": "all_reduce", "bytes": 67108864, "ranks": [0, 8],
//   "time_us": 350.1}, {"op": "all_reduce", "bytes": 4, "times_us": [10.1, ...]}]}
class OwnFile {
 public:
  OwnFile(const scenario::SourceText& source, const Json& json) : source_(source), json_(json) {}

  Timings read() {
    const std::int64_t per_node = json_.value("gpus_per_node", std::int64_t{8});
    if (per_node < 1 || per_node > 1024) {
      refuse(source_, "\"gpus_per_node\" is not a number from 1 to 1024");
    }
    per_node_ = static_cast<int>(per_node);
    if (!json_.contains("rows") || !json_["rows"].is_array() || json_["rows"].empty()) {
      refuse(source_, "\"rows\" is missing, or empty");
    }
    for (const Json& row : json_["rows"]) {
      read_row(row);
      ++number_;
    }
    name_places(timings_, last_rank_, per_node_);
    return std::move(timings_);
  }

 private:
  [[noreturn]] void wrong(const char* what) { refuse(source_, fmt::format("/rows/{}: {}", number_, what)); }

  void read_row(const Json& row) {
    if (!row.is_object()) {
      wrong("not an object");
    }
    Timing timing;
    const auto op = row.contains("op") && row["op"].is_string()
                        ? op_of_benchmark(row["op"].get<std::string>())
                        : std::nullopt;
    if (!op) {
      wrong("\"op\" is not an operation such as all_reduce");
    }
    timing.op = *op;
    if (!row.contains("bytes") || !row["bytes"].is_number_integer() || row["bytes"].get<std::int64_t>() < 1) {
      wrong("\"bytes\" is not a whole number above 0");
    }
    timing.bytes = row["bytes"].get<std::int64_t>();
    std::vector<double> times;
    if (row.contains("times_us") && row["times_us"].is_array()) {
      for (const Json& time : row["times_us"]) {
        times.push_back(time.is_number() ? time.get<double>() : -1);
      }
    } else if (row.contains("time_us") && row["time_us"].is_number()) {
      timing.time = row["time_us"].get<double>();
    }
    read_members(row, times.size(), timing);
    if (!times.empty()) {
      if (times.size() != timing.members.size()) {
        wrong("\"times_us\" has another number of times than \"ranks\" has ranks");
      }
      set_times(timing, times);
    }
    if (!(timing.time > 0) || timing.time > 1e15) {
      wrong("\"time_us\" or \"times_us\" has no times above 0");
    }
    timings_.calls.push_back(std::move(timing));
  }

  void read_members(const Json& row, std::size_t times, Timing& timing) {
    constexpr std::int64_t rank_max = 1'000'000;
    if (row.contains("ranks") && row["ranks"].is_array()) {
      for (const Json& rank : row["ranks"]) {
        if (!rank.is_number_integer() || rank.get<std::int64_t>() < 0 ||
            rank.get<std::int64_t>() > rank_max) {
          wrong("\"ranks\" has something that is not a rank");
        }
        timing.members.push_back(rank.get<int>());
      }
    } else {
      for (std::size_t rank = 0; rank < times; ++rank) {
        timing.members.push_back(static_cast<int>(rank));
      }
    }
    const bool ascends =
        std::ranges::adjacent_find(timing.members, std::greater_equal<>()) == timing.members.end();
    if (timing.members.size() < 2 || !ascends) {
      wrong("\"ranks\" is not a list of two ranks or more, ascending");
    }
    last_rank_ = std::max(last_rank_, timing.members.back());
  }

  const scenario::SourceText& source_;
  const Json& json_;
  int per_node_ = 8;
  int number_ = 0;
  int last_rank_ = 0;
  Timings timings_;
};

// NCCL's names for its collectives.
std::optional<OpKind> op_of_nccl(const std::string& name) {
  static const std::map<std::string, OpKind> names{{"AllReduce", OpKind::all_reduce},
                                                   {"AllGather", OpKind::all_gather},
                                                   {"ReduceScatter", OpKind::reduce_scatter},
                                                   {"Broadcast", OpKind::broadcast},
                                                   {"Reduce", OpKind::reduce}};
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

// Reads the lines that NCCL's Inspector plugin writes, one file per process: a call's record is complete when every
// rank of the communicator has written its line.
class InspectorLines {
 public:
  void read(const scenario::SourceText& source) {
    std::string_view text = source.text();
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const Json json = Json::parse(text.substr(0, end), nullptr, false);
      if (json.is_object() && json.contains("coll_perf") && json.contains("header")) {
        read_line(json);
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  Timings timings() {
    Timings result;
    std::map<std::string, int> host_places;
    std::map<Process, int> places;
    for (const Process& process : processes_) {
      const auto [host, is_new] =
          host_places.try_emplace(process.first, static_cast<int>(host_places.size()));
      if (is_new) {
        result.hosts.push_back(process.first);
      }
      places[process] = static_cast<int>(result.ranks.size());
      result.ranks.push_back({fmt::format("{}:{}", process.first, process.second), host->second});
    }
    for (const auto& [key, call] : calls_) {
      if (call.ranks > 1 && static_cast<int>(call.times.size()) == call.ranks) {
        result.calls.push_back(timing_of(call, places));
      }
    }
    return result;
  }

 private:
  using Process = std::pair<std::string, std::int64_t>;  // host, pid
  struct Call {
    OpKind op = OpKind::all_reduce;
    std::int64_t bytes = 0;
    int ranks = 0;
    std::map<Process, double> times;
  };

  void read_line(const Json& json) {
    const Json& header = json["header"];
    const Json& perf = json["coll_perf"];
    const Json metadata = json.value("metadata", Json::object());
    if (!header.is_object() || !perf.is_object() || !metadata.is_object()) {
      return;
    }
    const auto text = [](const Json& object, const char* key) {
      return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : std::string();
    };
    const auto number = [](const Json& object, const char* key) {
      return object.contains(key) && object[key].is_number() ? object[key].get<double>() : 0;
    };
    const auto op = op_of_nccl(text(perf, "coll"));
    const double time = number(perf, "coll_exec_time_us");
    const double bytes = number(perf, "coll_msg_size_bytes");
    if (!op || time <= 0 || bytes < 1 || bytes > 9e18) {
      return;
    }
    const Process process{text(metadata, "hostname"), static_cast<std::int64_t>(number(metadata, "pid"))};
    processes_.insert(process);
    Call& call = calls_[{text(header, "id"), text(perf, "coll"), number(perf, "coll_sn")}];
    call.op = *op;
    call.bytes = static_cast<std::int64_t>(bytes);
    call.ranks = static_cast<int>(number(header, "n_ranks"));
    call.times[process] = time;
  }

  static Timing timing_of(const Call& call, const std::map<Process, int>& places) {
    Timing timing{.op = call.op, .bytes = call.bytes};
    std::vector<double> times;
    for (const auto& [process, time] : call.times) {
      timing.members.push_back(places.at(process));
      times.push_back(time);
    }
    set_times(timing, times);
    return timing;
  }

  std::set<Process> processes_;
  std::map<std::tuple<std::string, std::string, double>, Call> calls_;
};

// The size in bytes of an element in a record; 0 for an unknown word.
std::int64_t size_of_recorded(const std::string& dtype) {
  static const std::map<std::string, std::int64_t> sizes{
      {"Float", 4}, {"Half", 2},  {"BFloat16", 2}, {"Double", 8}, {"Int", 4},
      {"Long", 8},  {"Short", 2}, {"Char", 1},     {"Byte", 1},   {"Bool", 1}};
  const auto found = sizes.find(dtype);
  return found == sizes.end() ? 0 : found->second;
}

std::int64_t input_bytes_of(const check::DumpCall& call) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    std::int64_t part = i < call.input_dtypes.size() ? size_of_recorded(call.input_dtypes[i]) : 0;
    for (const std::int64_t extent : call.inputs[i]) {
      if (__builtin_mul_overflow(part, extent, &part)) {
        return 0;
      }
    }
    if (part < 0 || __builtin_add_overflow(bytes, part, &bytes)) {
      return 0;
    }
  }
  return bytes;
}

bool is_inspector(std::string_view text) { return text.find("\"coll_perf\"") != text.npos; }
bool is_own(std::string_view text) { return text.substr(0, 4096).find("\"rollcall_timings\"") != text.npos; }

}  // namespace

bool is_timings_file(const std::string& path) {
  const scenario::SourceText source = scenario::read_source(path);
  return is_own(source.text()) || is_inspector(source.text());
}

Timings read_timings(const std::vector<std::string>& paths) {
  InspectorLines inspector;
  for (const std::string& path : paths) {
    const scenario::SourceText source = scenario::read_source(path);
    if (is_own(source.text())) {
      if (paths.size() > 1) {
        refuse(source, "a file with \"rollcall_timings\" is judged alone");
      }
      const Json json = Json::parse(source.text(), nullptr, false);
      if (!json.is_object()) {
        refuse(source, "not JSON");
      }
      return OwnFile(source, json).read();
    }
    if (!is_inspector(source.text())) {
      refuse(source,
             "neither a file with \"rollcall_timings\" nor lines of NCCL Inspector, as the others are");
    }
    inspector.read(source);
  }
  return inspector.timings();
}

Timings timings_of(const check::JobDump& job, int gpus_per_host) {
  Timings timings;
  Rank last = -1;
  // By group and number: the call, and each rank's time in microseconds.
  std::map<std::pair<std::uint32_t, std::int64_t>, std::pair<std::uint32_t, std::map<Rank, double>>> calls;
  for (const check::RankDump& rank : job.ranks) {
    last = std::max(last, rank.rank);
    for (const check::DumpRecord& record : rank.records) {
      if (record.duration_ms > 0 && !record.is_p2p && record.is_over()) {
        auto& [call, times] = calls[{record.group, record.collective_seq}];
        call = record.call;
        times[rank.rank] = 1000.0 * static_cast<double>(record.duration_ms);
      }
    }
  }
  for (const auto& [key, own] : calls) {
    const check::DumpGroup& group = job.groups[key.first];
    const check::DumpCall& call = job.calls[own.first];
    const auto kind = traces::recorded_kind(call.op);
    if (!kind || group.members.size() < 2 || own.second.size() != group.members.size()) {
      continue;
    }
    Timing timing{
        .op = *kind,
        .bytes = std::max<std::int64_t>(
            1, cost::bytes_of_call(*kind, input_bytes_of(call), static_cast<int>(group.members.size())))};
    std::vector<double> times;
    for (const auto& [rank, time] : own.second) {
      timing.members.push_back(rank);
      times.push_back(time);
    }
    set_times(timing, times);
    timings.calls.push_back(std::move(timing));
  }
  name_places(timings, last, gpus_per_host);
  return timings;
}

}  // namespace rollcall::measured
