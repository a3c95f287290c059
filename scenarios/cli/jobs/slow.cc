#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/cluster_choice.h"
#include "scenarios/measured/cluster_from.h"
#include "scenarios/measured/slow.h"
#include "traces/formats/recordings.h"

namespace rollcall::cli {

namespace {

using Json = nlohmann::ordered_json;

// By measured::Part.
constexpr std::array<std::string_view, 7> words_of_parts = {"gpu",  "host", "nic",    "nvlink",
                                                            "link", "node", "machine"};
static_assert(words_of_parts.size() == static_cast<std::size_t>(measured::Part::machine) + 1);

void print_illnesses(const CommandLine& line, const std::vector<measured::Illness>& found,
                     std::size_t calls) {
  if (line.format == Format::json) {
    Json parts = Json::array();
    for (const measured::Illness& each : found) {
      parts.push_back({{"part", words_of_parts[static_cast<std::size_t>(each.part)]},
                       {"name", each.name},
                       {"factor", each.factor},
                       {"lateness_us", each.lateness},
                       {"evidence", each.evidence}});
    }
    emit(line, Json({{"schema_version", 1}, {"calls", calls}, {"slow", std::move(parts)}}).dump(2) + "\n");
    return;
  }
  std::string text;
  for (const measured::Illness& each : found) {
    text += fmt::format("slow: {}: {}\n", each.name, each.evidence);
  }
  if (found.empty()) {
    text = fmt::format(
        "nothing is slow: {} calls, none of whose parts is late or carries less than its peers\n", calls);
  }
  emit(line, text);
}

void print_tables(const CommandLine& line, const std::vector<measured::TableVerdict>& verdicts,
                  const cost::Cluster& cluster) {
  if (line.format == Format::json) {
    Json tables = Json::array();
    for (const measured::TableVerdict& each : verdicts) {
      tables.push_back({{"file", each.file},
                        {"op", to_string(each.op)},
                        {"ill", each.is_ill},
                        {"median_ratio", each.median_ratio},
                        {"large_ratio", each.large_ratio},
                        {"worst_bytes", each.worst_bytes},
                        {"worst_ratio", each.worst_ratio}});
    }
    emit(line,
         Json({{"schema_version", 1}, {"cluster", cluster.name}, {"tables", std::move(tables)}}).dump(2) +
             "\n");
    return;
  }
  std::string text;
  for (const measured::TableVerdict& each : verdicts) {
    text += fmt::format(
        "{}: {}: {} takes {:.2f} times what is expected on {} (median of its sizes{}{})\n",
        each.is_ill ? "slow" : "healthy", each.file, to_string(each.op), each.median_ratio, cluster.name,
        each.large_ratio > 0 ? fmt::format("; {:.2f} above 16 MiB", each.large_ratio) : "",
        each.worst_bytes > 0 ? fmt::format("; {:.1f} at {} bytes", each.worst_ratio, each.worst_bytes) : "");
  }
  emit(line, text);
}

ExitCode judge_timings(const CommandLine& line, const measured::Timings& timings,
                       const std::optional<cost::Cluster>& cluster) {
  const auto found = measured::ill_parts(timings, cluster ? &*cluster : nullptr);
  print_illnesses(line, found, timings.calls.size());
  return found.empty() ? ExitCode::as_expected : ExitCode::differs;
}

ExitCode judge_benchmarks(const CommandLine& line, const std::optional<cost::Cluster>& cluster) {
  const auto tables = measured::read_bench_tables(line.paths);
  if (!cluster) {
    throw UsageError("a benchmark's table is judged against a model: name the machine with --cluster");
  }
  const auto verdicts = measured::judge_tables(tables, *cluster);
  print_tables(line, verdicts, *cluster);
  const bool is_ill = std::ranges::any_of(verdicts, &measured::TableVerdict::is_ill);
  return is_ill ? ExitCode::differs : ExitCode::as_expected;
}

int gpus_per_host(const std::optional<cost::Cluster>& cluster) {
  return !cluster ? 8 : cluster->gpus_per_host > 0 ? cluster->gpus_per_host : cluster->gpus_per_node;
}

}  // namespace

ExitCode find_slow(const CommandLine& line) {
  std::optional<cost::Cluster> cluster;
  if (!line.predict.cluster.empty()) {
    cluster = cluster_of(line.predict.cluster);
  }
  // Dumps and traces first: folders, and files that are not text.
  const traces::ReadResult recordings = traces::read_recordings(line.paths);
  if (!recordings.job.ranks.empty()) {
    const measured::Timings timings = measured::timings_of(recordings.job, gpus_per_host(cluster));
    if (timings.calls.empty()) {
      throw UsageError(
          "the recordings have no call whose time all members wrote down; Flight Recorder needs "
          "TORCH_NCCL_ENABLE_TIMING=1, and a profiler's traces are needed of every rank");
    }
    return judge_timings(line, timings, cluster);
  }
  if (measured::is_timings_file(line.paths.front())) {
    return judge_timings(line, measured::read_timings(line.paths), cluster);
  }
  return judge_benchmarks(line, cluster);
}

ExitCode make_cluster(const CommandLine& line) {
  const measured::ClusterFile file = measured::cluster_from(line.paths);
  for (const std::string& text : file.remarks) {
    remark("rollcall: " + text);
  }
  emit(line, file.json);
  return ExitCode::as_expected;
}

}  // namespace rollcall::cli
