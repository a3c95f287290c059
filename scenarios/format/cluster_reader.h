#pragma once

// A scenario's "cluster": a preset's name, or an object that describes the machines. The value has passed
// the schema, so types are right; what remains is units, names and sizes.

#include <optional>
#include <string>

#include "scenarios/json/json_tree.h"
#include "sim/cost/presets.h"

namespace rollcall::scenario {

class Diagnostics;

struct ClusterSetting {
  // Nothing where an object says only how ranks are spread: then nothing is known about the links.
  std::optional<cost::Cluster> cluster;
  std::int64_t gpus_per_node = 8;
  std::optional<Json> nodes{};  // where the file says how many there are
  bool residuals = false;
};

// A file that holds nothing but such an object, for the command line. Throws InvalidScenario.
cost::Cluster load_cluster(const std::string& path);

// What a name that find_cluster refused was probably meant to be; may be empty.
std::string preset_suggestion(const cost::NamedCluster& named, std::string_view name);

// Nothing when something is wrong, which is then in `diagnostics`.
std::optional<ClusterSetting> read_cluster(const Json& value, Diagnostics& diagnostics);

}  // namespace rollcall::scenario
