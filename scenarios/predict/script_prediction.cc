#include "scenarios/predict/script_prediction.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/predict/shortage.h"
#include "sim/cost/roofline.h"
#include "viz/rows/activity.h"
#include "viz/rows/phrases.h"

namespace rollcall::predict {
namespace {

using Json = nlohmann::ordered_json;
using traces::ScriptKernel;
using traces::ScriptRank;
using viz::Interval;
using viz::Intervals;

bool is_kernel(const Span& span) { return span.kind == Span::Kind::compute && span.stream >= 0; }

// For each rank, when the kernels of each optimizer step ended.
std::vector<std::vector<Time>> step_ends(const Report& report) {
  const Timeline& timeline = report.timeline;
  std::vector<std::vector<std::pair<Time, bool>>> kernels(static_cast<std::size_t>(report.world_size));
  for (const Span& span : timeline.spans()) {
    if (is_kernel(span) && span.end != Span::open) {
      const bool is_optimizers = timeline.name(span.name) == to_string(ScriptKernel::Phase::optimizer);
      kernels[static_cast<std::size_t>(span.rank)].emplace_back(span.end, is_optimizers);
    }
  }
  std::vector<std::vector<Time>> ends(kernels.size());
  for (std::size_t rank = 0; rank < kernels.size(); ++rank) {
    std::ranges::sort(kernels[rank]);
    for (std::size_t i = 0; i < kernels[rank].size(); ++i) {
      const bool is_last = i + 1 == kernels[rank].size() || !kernels[rank][i + 1].second;
      if (kernels[rank][i].second && is_last) {
        ends[rank].push_back(kernels[rank][i].first);
      }
    }
  }
  return ends;
}

Intervals within(const Intervals& intervals, const Interval& window) {
  Intervals inside;
  for (const Interval& each : intervals) {
    const Interval part{std::max(each.start, window.start), std::min(each.end, window.end)};
    if (part.start < part.end) {
      inside.push_back(part);
    }
  }
  return inside;
}

// The parts of `interval` that `others` do not cover.
Intervals outside(const Interval& interval, const Intervals& others) {
  Intervals parts;
  Time at = interval.start;
  for (const Interval& other : others) {
    if (other.end <= at || other.start >= interval.end) {
      continue;
    }
    if (other.start > at) {
      parts.push_back({at, other.start});
    }
    at = std::max(at, other.end);
  }
  if (at < interval.end) {
    parts.push_back({at, interval.end});
  }
  return parts;
}

std::string cause_of(const Timeline& timeline, const Span& span) {
  const std::string& site = timeline.name(span.site);
  return site.empty() ? timeline.name(span.name) : fmt::format("{} at {}", timeline.name(span.name), site);
}

class Attribution {
 public:
  Attribution(const Report& report, std::vector<Interval> windows, std::vector<std::int64_t> steps)
      : report_(report),
        windows_(std::move(windows)),
        steps_(std::move(steps)),
        arrivals_(viz::last_arrivals(report.timeline)) {}

  ScriptPrediction prediction() {
    ScriptPrediction result;
    const std::vector<viz::RankActivity> activities = viz::activities_of(report_, report_.simulated_time);
    std::vector<Duration> computes;
    Duration idle = 0;
    for (std::size_t rank = 0; rank < activities.size(); ++rank) {
      const Intervals compute = within(activities[rank].compute, windows_[rank]);
      const Intervals calls = within(activities[rank].communication, windows_[rank]);
      const Duration busy = length(compute) + length(calls) - overlap(compute, calls);
      computes.push_back(length(compute) / steps_[rank]);
      idle += (windows_[rank].end - windows_[rank].start - busy) / steps_[rank];
      result.step = std::max(result.step, (windows_[rank].end - windows_[rank].start) / steps_[rank]);
      compute_.push_back(compute);
    }
    attribute();
    const auto ranks = static_cast<Duration>(activities.size());
    for (const Duration each : computes) {
      result.compute += each / ranks;
    }
    result.idle = idle / ranks;
    for (auto& [what, call] : calls_) {
      call.what = what;
      call.transfer /= ranks;
      call.waiting /= ranks;
      if (call.exposed() > 0) {
        result.exposed.push_back(call);
      }
    }
    std::ranges::stable_sort(result.exposed, std::ranges::greater(), &ExposedCall::exposed);
    name_slowest(computes, result);
    return result;
  }

 private:
  // Every moment counts once, for the call that began first.
  void attribute() {
    std::map<Rank, std::vector<const Span*>> calls;
    for (const Span& span : report_.timeline.spans()) {
      if (span.kind != Span::Kind::compute && span.end != Span::open) {
        calls[span.rank].push_back(&span);
      }
    }
    for (auto& [rank, spans] : calls) {
      std::ranges::stable_sort(spans, {}, &Span::start);
      const auto index = static_cast<std::size_t>(rank);
      Time covered = windows_[index].start;
      for (const Span* span : spans) {
        const Interval part{std::max(span->start, covered), std::min(span->end, windows_[index].end)};
        if (part.start < part.end) {
          covered = part.end;
          add(*span, outside(part, compute_[index]), steps_[index]);
        }
      }
    }
  }

  void add(const Span& span, const Intervals& parts, std::int64_t steps) {
    const auto arrival = arrivals_.find({span.group, span.seq});
    const Time met =
        span.kind == Span::Kind::collective && arrival != arrivals_.end() ? arrival->second : span.start;
    ExposedCall& call = calls_[cause_of(report_.timeline, span)];
    for (const Interval& part : parts) {
      const Duration waited = std::clamp<Duration>(met - part.start, 0, part.end - part.start);
      call.waiting += waited / steps;
      call.transfer += (part.end - part.start - waited) / steps;
    }
  }

  static void name_slowest(const std::vector<Duration>& computes, ScriptPrediction& result) {
    const auto [least, most] = std::ranges::minmax(computes);
    result.slowest_compute = most;
    constexpr Duration alike = 1000;  // nanoseconds per step and a thousandth: rounding
    if (most - least <= alike + most / 1000) {
      return;
    }
    for (std::size_t rank = 0; rank < computes.size(); ++rank) {
      if (computes[rank] == most) {
        result.slowest.insert(static_cast<Rank>(rank));
      }
    }
  }

  const Report& report_;
  std::vector<Interval> windows_;    // by rank
  std::vector<std::int64_t> steps_;  // in them
  std::vector<Intervals> compute_;   // in them
  viz::Arrivals arrivals_;
  std::map<std::string, ExposedCall> calls_;
};

// The work in a rank's record, per step.
struct RankWork {
  double flops = 0;
  double measured_flops = 0;
  double kernels = 0;

  RankWork& operator+=(const RankWork& other) {
    flops += other.flops;
    measured_flops += other.measured_flops;
    kernels += other.kernels;
    return *this;
  }
};

// The sum over the steps that count, as in a timeline: all but the first `left_out`, or everything if that is 0.
RankWork work_of(const ScriptRank& rank, std::int64_t left_out) {
  RankWork sum;
  RankWork pending;  // since the latest end of a step
  bool in_step = false;
  std::int64_t ends = 0;
  for (const traces::ScriptEvent& event : rank.events) {
    if (event.kind != traces::ScriptEvent::Kind::kernel) {
      continue;
    }
    const ScriptKernel& kernel = rank.kernels[event.kernel];
    const bool is_optimizers = kernel.phase == ScriptKernel::Phase::optimizer;
    if (in_step && !is_optimizers) {
      sum += ends++ >= left_out ? pending : RankWork{};
      pending = {};
    }
    in_step = is_optimizers;
    pending += {kernel.flops, kernel.time_ns > 0 ? kernel.flops : 0, static_cast<double>(kernel.count)};
  }
  sum += left_out == 0 || (in_step && ends >= left_out) ? pending : RankWork{};
  return sum;
}

RankWork mean_work(const traces::ScriptRecord& record, std::int64_t steps, std::int64_t left_out) {
  RankWork sum;
  for (const ScriptRank& rank : record.ranks) {
    sum += work_of(rank, left_out);
  }
  const double parts = static_cast<double>(std::max<std::size_t>(record.ranks.size(), 1)) *
                       static_cast<double>(std::max<std::int64_t>(steps, 1));
  return {sum.flops / parts, sum.measured_flops / parts, sum.kernels / parts};
}

// ---- Words ----

// "1.505 GFLOP"
std::string operations(double flops) {
  constexpr std::string_view prefixes = " kMGTPE";
  std::size_t prefix = 0;
  for (; flops >= 1000 && prefix + 1 < prefixes.size(); ++prefix) {
    flops /= 1000;
  }
  return fmt::format("{:.4g} {}FLOP", flops, prefixes.substr(prefix, prefix == 0 ? 0 : 1));
}

std::string percent(Duration part, Duration whole) {
  return whole == 0 ? "0" : fmt::format("{}", (part * 100 + whole / 2) / whole);
}

std::string head_line(const PredictedScript& script) {
  const ScriptPrediction& prediction = script.prediction;
  std::string text = fmt::format("{} on {}, {} rank{}: {} ms ", script.report.scenario, script.cluster.name,
                                 script.report.world_size, script.report.world_size == 1 ? "" : "s",
                                 viz::in_milliseconds(prediction.step));
  if (prediction.steps == 0) {
    return text +
           "for the whole run (no optimizer has stepped twice, so no step is told from the beginning)\n";
  }
  const std::string_view before = prediction.left_out == 1 ? "the first" : "the first two";
  return text + (prediction.steps == 1
                     ? fmt::format("a step (the one after {})\n", before)
                     : fmt::format("a step (mean of {}, after {})\n", prediction.steps, before));
}

// Says where the times of kernels come from.
std::string sources_text(const PredictedScript& script) {
  const ScriptPrediction& prediction = script.prediction;
  const cost::Gpu* gpu = cost::find_gpu(script.cluster);
  const std::string roofline =
      fmt::format("roofline of {} from the operators' shapes", gpu != nullptr ? gpu->name : "the GPU");
  const bool has_trace = std::ranges::any_of(script.record.ranks, [](const ScriptRank& rank) {
    return std::ranges::any_of(rank.kernels, [](const ScriptKernel& kernel) { return kernel.time_ns > 0; });
  });
  if (!has_trace) {
    return roofline;
  }
  return fmt::format("{:.0f} % of the operations as the trace has them, the rest {}",
                     prediction.flops > 0 ? 100 * prediction.measured_flops / prediction.flops : 0, roofline);
}

double tokens_per_second(const PredictedScript& script) {
  return static_cast<double>(*script.tokens_per_step) * 1e9 / static_cast<double>(script.prediction.step);
}

std::string holders_text(const ScriptRank& rank, std::size_t count_max) {
  std::string text;
  for (const traces::ScriptMemory::Holder& holder : rank.memory.holders) {
    if (count_max-- == 0) {
      break;
    }
    text +=
        fmt::format("              {:>12}  of {} made at {} ({} tensor{})\n", viz::bytes_phrase(holder.bytes),
                    holder.part, place_text(rank, holder.site), holder.count, holder.count == 1 ? "" : "s");
  }
  return text;
}

std::string memory_text(const PredictedScript& script) {
  const ScriptRank* rank = largest_rank(script.record);
  if (rank == nullptr) {
    return {};
  }
  const cost::Gpu* gpu = cost::find_gpu(script.cluster);
  std::string text = fmt::format("  memory      {:>12}  at most, on rank {}",
                                 viz::bytes_phrase(rank->memory.peak), rank->rank);
  if (gpu != nullptr) {
    text += fmt::format("; {} has {}", gpu->name, viz::bytes_phrase(gpu->memory_bytes));
  }
  text += "\n";
  for (const auto& [part, bytes] : rank->memory.parts) {
    text += fmt::format("              {:>12}  {}\n", viz::bytes_phrase(bytes), part);
  }
  constexpr std::size_t shown = 3;
  return text + holders_text(*rank, shown);
}

std::string shortage_text(const PredictedScript& script) {
  if (!exceeds_memory(script.record, script.cluster)) {
    return {};
  }
  const ScriptRank& rank = *largest_rank(script.record);
  const cost::Gpu& gpu = *cost::find_gpu(script.cluster);
  return shortage_line(fmt::format("rank {}", rank.rank), rank.memory.peak, gpu) +
         holders_text(rank, rank.memory.holders.size());
}

}  // namespace

Duration ScriptPrediction::exposed_time() const {
  Duration sum = 0;
  for (const ExposedCall& call : exposed) {
    sum += call.exposed();
  }
  return sum;
}

ScriptPrediction script_prediction(const Report& report, const traces::ScriptRecord& record) {
  const std::vector<std::vector<Time>> ends = step_ends(report);
  const std::size_t fewest = ends.empty() ? 0 : std::ranges::min(ends, {}, &std::vector<Time>::size).size();
  // A step begins where the previous one ends. See the header for the beginning of a job.
  const std::size_t left_out = fewest > 2 ? 2 : fewest > 1 ? 1 : 0;
  std::vector<Interval> windows;
  std::vector<std::int64_t> steps;
  for (const std::vector<Time>& own : ends) {
    windows.push_back(left_out > 0 ? Interval{own[left_out - 1], own.back()}
                                   : Interval{0, report.simulated_time});
    steps.push_back(left_out > 0 ? static_cast<std::int64_t>(own.size() - left_out) : 1);
  }
  ScriptPrediction result = Attribution(report, std::move(windows), steps).prediction();
  result.steps = left_out > 0 ? std::ranges::min(steps) : 0;
  result.left_out = static_cast<std::int64_t>(left_out);
  const RankWork work = mean_work(record, result.steps, result.left_out);
  result.flops = work.flops;
  result.measured_flops = work.measured_flops;
  result.kernels = work.kernels;
  return result;
}

const ScriptRank* largest_rank(const traces::ScriptRecord& record) {
  const auto largest =
      std::ranges::max_element(record.ranks, {}, [](const ScriptRank& rank) { return rank.memory.peak; });
  return largest == record.ranks.end() || largest->memory.peak == 0 ? nullptr : &*largest;
}

bool exceeds_memory(const traces::ScriptRecord& record, const cost::Cluster& cluster) {
  const ScriptRank* rank = largest_rank(record);
  const cost::Gpu* gpu = cost::find_gpu(cluster);
  return rank != nullptr && gpu != nullptr && rank->memory.peak > gpu->memory_bytes;
}

// What PyTorch's host needs for the operations of a step without torch.compile and CUDA graphs, as measured with a
// small model, DDP and SGD (torch 2.11 on the host of an H200: tests/data/steps_on_gpu/mlp_tiny.json).
Duration host_time(const ScriptPrediction& prediction) {
  constexpr Duration of_each = 41 * microsecond;
  return static_cast<Duration>(prediction.kernels * static_cast<double>(of_each));
}

std::string text_of(const PredictedScript& script) {
  const ScriptPrediction& prediction = script.prediction;
  std::string text = shortage_text(script) + head_line(script);
  if (script.tokens_per_step && prediction.steps > 0) {
    text += fmt::format("  tokens      {:>12.0f}  per second, {} a step\n", tokens_per_second(script),
                        *script.tokens_per_step);
  }
  text +=
      fmt::format("  computing   {:>9} ms  {} a rank; times: {}\n", viz::in_milliseconds(prediction.compute),
                  operations(prediction.flops), sources_text(script));
  text += fmt::format("  exposed     {:>9} ms  {} % of the step: communication that no computing hides\n",
                      viz::in_milliseconds(prediction.exposed_time()),
                      percent(prediction.exposed_time(), prediction.step));
  for (const ExposedCall& call : prediction.exposed) {
    text += fmt::format("              {:>9} ms  {}{}\n", viz::in_milliseconds(call.exposed()), call.what,
                        call.waiting > 0
                            ? fmt::format(" (waiting for others: {} ms)", viz::in_milliseconds(call.waiting))
                            : "");
  }
  if (prediction.kernels > 0) {
    text += fmt::format("  kernels     {:>12.0f}  a rank, {:.1f} us of the step for each\n",
                        prediction.kernels, viz::in_microseconds(prediction.step) / prediction.kernels);
  }
  if (const Duration host = host_time(prediction); host > prediction.step) {
    text += fmt::format(
        "  host        {:>9} ms  about, to launch them one by one: a real step takes at least this long\n",
        viz::in_milliseconds(host));
  }
  text += fmt::format("  idle        {:>9} ms\n", viz::in_milliseconds(prediction.idle));
  if (!prediction.slowest.empty()) {
    text += fmt::format("  slowest     {:>9} ms  of computing, {}\n",
                        viz::in_milliseconds(prediction.slowest_compute), ranks_phrase(prediction.slowest));
  }
  return text + memory_text(script);
}

std::string json_of(const PredictedScript& script) {
  const ScriptPrediction& prediction = script.prediction;
  Json exposed = Json::array();
  for (const ExposedCall& call : prediction.exposed) {
    exposed.push_back({{"call", call.what},
                       {"transfer_us", viz::in_microseconds(call.transfer)},
                       {"waiting_us", viz::in_microseconds(call.waiting)}});
  }
  Json object = {
      {"schema_version", 1},
      {"scenario", script.report.scenario},
      {"cluster", script.cluster.name},
      {"world_size", script.report.world_size},
      {"verdict", exceeds_memory(script.record, script.cluster) ? shortage_verdict()
                                                                : verdict_word(script.report.verdict)},
      {"steps", prediction.steps},
      {"steps_left_out", prediction.left_out},
      {"step_us", viz::in_microseconds(prediction.step)},
      {"compute_us", viz::in_microseconds(prediction.compute)},
      {"exposed_us", viz::in_microseconds(prediction.exposed_time())},
      {"exposed", std::move(exposed)},
      {"idle_us", viz::in_microseconds(prediction.idle)},
      {"flops", prediction.flops},
      {"measured_flops", prediction.measured_flops},
      {"kernels", prediction.kernels},
      {"host_us", viz::in_microseconds(host_time(prediction))}};
  if (!prediction.slowest.empty()) {
    object["slowest"] = to_string(prediction.slowest);
  }
  if (script.tokens_per_step && prediction.steps > 0) {
    object["tokens_per_second"] = tokens_per_second(script);
  }
  if (const ScriptRank* rank = largest_rank(script.record)) {
    Json memory = {{"rank", rank->rank}, {"peak", rank->memory.peak}};
    if (const cost::Gpu* gpu = cost::find_gpu(script.cluster)) {
      memory["gpu"] = gpu->memory_bytes;
    }
    for (const auto& [part, bytes] : rank->memory.parts) {
      memory["parts"][part] = bytes;
    }
    memory["holders"] = Json::array();
    for (const traces::ScriptMemory::Holder& holder : rank->memory.holders) {
      memory["holders"].push_back({{"bytes", holder.bytes},
                                   {"tensors", holder.count},
                                   {"part", holder.part},
                                   {"site", place_text(*rank, holder.site)}});
    }
    object["memory"] = std::move(memory);
  }
  return object.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::predict
