#pragma once

// Changes a scenario's text, to predict the effect of another cluster, size, or rank.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"

namespace rollcall::predict {

struct ScenarioChange {
  std::string text;         // of the changed scenario, without its expectation
  std::string cluster;      // the cluster it runs on then; empty: unchanged
  bool slows_rank = false;  // the slow rank makes all others wait
};

// `words`: a list such as "cluster=h200-8,slow=3:5%". cluster=NAME; world_size=N; bucket=SIZE for models in DDP;
// microbatches=N for pipelines; precision=TYPE for products and models; slow=5% for the last rank's computing, or
// slow=RANK:5%. Throws std::invalid_argument for words that are unknown or change nothing in this scenario.
ScenarioChange changed_scenario(scenario::OrderedJson tree, std::string_view words);

}  // namespace rollcall::predict
