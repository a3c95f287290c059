// `rollcall predict train.py`: records a script with what its GPUs would compute, and predicts its
// times on a cluster.

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/cluster_choice.h"
#include "scenarios/cli/scripts/record.h"
#include "scenarios/cli/traces.h"
#include "scenarios/format/scenario.h"
#include "scenarios/predict/script_prediction.h"
#include "scenarios/run/runner.h"
#include "sim/c10d/backend_traits.h"

namespace rollcall::cli {
namespace {

constexpr Rank many_ranks = 17;  // from this many on, only a sample is recorded
constexpr Rank sampled_ranks = 4;

// The command line of `record` for it: as many ranks per host as there are GPUs.
CommandLine recording_of(const CommandLine& line, const cost::Cluster& cluster) {
  CommandLine recording = line;
  recording.paths.insert(recording.paths.begin(), line.predict.subject);
  recording.record.kernels = true;
  const Rank world_size =
      line.record.world_size.value_or(static_cast<Rank>(cluster.nodes * cluster.gpus_per_node));
  recording.record.world_size = world_size;
  recording.record.gpus_per_host = std::min<Rank>(cluster.gpus_per_node, world_size);
  if (world_size >= many_ranks && !line.record.sampled) {
    recording.record.sampled = sampled_ranks;
  }
  return recording;
}

}  // namespace

ExitCode predict_script(const CommandLine& line) {
  if (line.predict.cluster.empty()) {
    throw UsageError("predict needs --cluster for a script: a file, or a preset such as h100-8");
  }
  require_pages(line);
  const cost::Cluster cluster = asked_cluster(line.predict, cluster_of(line.predict.cluster)).cluster;
  const scenario::OrderedJson named = cluster_in_scenario(line.predict.cluster);
  const scenario::ScriptRun done = run_recorded(recording_of(line, cluster), false);
  if (done.was_interrupted) {
    remark("rollcall: interrupted");
    return ExitCode::interrupted;
  }
  const traces::ScriptRecord record = done.record;
  const scenario::RecordedScript recorded =
      scenario::recorded_script(done.record, "recorded.json",
                                done.simulated.is_whole() ? &done.simulated.report : nullptr, false, &named);
  say_problems(done, recorded);
  say_stacks(done.record);
  if (recorded.text.empty()) {
    remark("rollcall: error: no rank called init_process_group, so there is nothing to predict");
    return ExitCode::invalid;
  }
  scenario::Scenario loaded =
      scenario::parse_scenario(recorded.text, "recorded.json", {.brings_cluster = true});
  if (!traits_of(loaded.options.backend).has_cost_model) {
    throw UsageError(
        fmt::format("times are predicted for nccl only; the script asks for {}: let it use cuda, which "
                    "torch.cuda.is_available() says is there while it is recorded",
                    loaded.options.backend));
  }
  put_on_cluster(loaded, cluster);
  loaded.options.residuals = line.predict.residuals;
  checked_trace_options(line.trace, loaded.options.world_size);  // throws before it runs, not after
  const Report report = scenario::run(loaded, {.timeline = true});
  const predict::ScriptPrediction prediction = predict::script_prediction(report, record);
  const predict::PredictedScript predicted{prediction, report, record, cluster, line.predict.tokens_per_step};
  const std::vector<predict::VariantRow> rows = predicted_rows(
      line.predict, predict::variant_row(report, prediction),
      {.tree = [&recorded] { return scenario::OrderedJson::parse(recorded.text, nullptr, true, true); },
       .measure =
           [&record](const Report& changed) {
             return predict::variant_row(changed, predict::script_prediction(changed, record));
           }});
  tell_step(line, {.title = report.scenario,
                   .text = predict::text_of(predicted),
                   .json = predict::json_of(predicted),
                   .variants = predict::table_of(rows),
                   .report = &report});
  return predict::exceeds_memory(record, cluster) ? ExitCode::differs : ExitCode::as_expected;
}

}  // namespace rollcall::cli
