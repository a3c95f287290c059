#pragma once

// What --cluster names, and predictions on it.

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/cli/cli.h"
#include "scenarios/format/scenario.h"
#include "scenarios/import/scenario_writer.h"
#include "scenarios/predict/variant_table.h"
#include "sim/cost/calibration.h"
#include "sim/cost/topology.h"

namespace rollcall::cli {

bool names_a_file(const std::string& text);

// A preset's name, or a file that describes a cluster. Throws UsageError or InvalidScenario.
cost::Cluster cluster_of(const std::string& text);

// The same, as a scenario says it.
scenario::OrderedJson cluster_in_scenario(const std::string& text);

// The cluster under the options that say how it is used, and what was measured on it.
struct AskedCluster {
  cost::Cluster cluster;
  std::vector<cost::Measurement> rows;  // of --calibrate
};
AskedCluster asked_cluster(const PredictArguments& arguments, cost::Cluster cluster);

void put_on_cluster(scenario::Scenario& loaded, const cost::Cluster& cluster);

// What a step is told as: in text or JSON with what else it could be, and in the files of --report and --trace.
struct ToldStep {
  std::string title;
  std::string text;
  std::string json;
  predict::VariantTable variants;
  const Report* report = nullptr;  // with a timeline; may be null
};
// Throws UsageError for a --report that there is not. To be asked before anything runs.
void require_pages(const CommandLine& line);
// Likewise for --trace and --trace-dir.
void require_traces(const CommandLine& line, Rank world_size);
void tell_step(const CommandLine& line, const ToldStep& told);

// `as_it_is`, and a row for each --what-if: the scenario of `tree`, which is asked for where there is one, changed and
// run, as `measure` sees it. `begin` is told the words before.
struct WhatIf {
  std::function<scenario::OrderedJson()> tree;
  std::function<predict::VariantRow(const Report&)> measure;
  std::function<void(const std::string& words)> begin = [](const std::string&) {};
};
std::vector<predict::VariantRow> predicted_rows(const PredictArguments& arguments,
                                                predict::VariantRow as_it_is, const WhatIf& what_if);

// That the run did not come to its end, where it did not.
void say_verdict(const Report& report);

}  // namespace rollcall::cli
