#pragma once

// What another cluster, size or rank would make of a scenario: the scenario's text with something changed.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"

namespace rollcall::predict {

struct ScenarioChange {
  std::string text;         // of the changed scenario, without what it expects
  std::string cluster;      // where it runs then; empty: where it ran before
  bool slows_rank = false;  // for which all others wait
};

// `words`: a list such as "cluster=h200-8,slow=3:5%". cluster=NAME; world_size=N; bucket=SIZE of models in DDP;
// microbatches=N of pipelines; precision=TYPE of products and models; slow=5% of the last rank's computing, or
// slow=RANK:5%. Throws std::invalid_argument for words that are unknown or change nothing in this scenario.
ScenarioChange changed_scenario(scenario::OrderedJson tree, std::string_view words);

}  // namespace rollcall::predict
