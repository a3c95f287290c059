#pragma once

// The cluster that --cluster names, and predictions for it.

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

// Returns the cluster for a preset's name or a file that describes a cluster. Throws UsageError or InvalidScenario.
cost::Cluster cluster_of(const std::string& text);

// The same, in the form that a scenario has it.
scenario::OrderedJson cluster_in_scenario(const std::string& text);

// The cluster with the options that say how it is used, and the measurements made on it.
struct AskedCluster {
  cost::Cluster cluster;
  std::vector<cost::Measurement> rows;  // from --calibrate
};
AskedCluster asked_cluster(const PredictArguments& arguments, cost::Cluster cluster);

void put_on_cluster(scenario::Scenario& loaded, const cost::Cluster& cluster);

// The output about a step: as text or JSON, with the variants, and in the files of --report and --trace. Says so if the
// run did not complete.
struct ToldStep {
  std::string title;
  std::string text;
  std::string json;
  predict::VariantTable variants;
  const Report* report = nullptr;  // with a timeline; may be null
};
// Throws UsageError if a --report does not exist. Call it before anything runs.
void require_pages(const CommandLine& line);
void tell_step(const CommandLine& line, const ToldStep& told);

// Returns `as_it_is`, and a row for each --what-if: the scenario of `tree` is changed, run, and measured by `measure`.
// `tree` is called only if there are changes. `begin` is called with the words of each change first.
struct WhatIf {
  std::function<scenario::OrderedJson()> tree;
  std::function<predict::VariantRow(const Report&)> measure;
  std::function<void(const std::string& words)> begin = [](const std::string&) {};
};
std::vector<predict::VariantRow> predicted_rows(const PredictArguments& arguments,
                                                predict::VariantRow as_it_is, const WhatIf& what_if);

}  // namespace rollcall::cli
