#pragma once

// A scenario's "cluster": a preset's name, or an object that describes the machines. The value has passed
// the schema, so its types are right; units, names, and sizes remain to be checked.

#include <optional>
#include <string>

#include "scenarios/json/json_tree.h"
#include "sim/cost/presets.h"

namespace rollcall::scenario {

class Diagnostics;

struct ClusterSetting {
  // Empty if an object only says how ranks are distributed: then nothing is known about the links.
  std::optional<cost::Cluster> cluster;
  std::int64_t gpus_per_node = 8;
  std::optional<Json> nodes{};  // where the file gives the number of nodes
  bool residuals = false;
};

// Reads a file that holds only this kind of object, for the command line. Throws InvalidScenario.
cost::Cluster load_cluster(const std::string& path);

// The likely meaning of a name that find_cluster refused; may be empty.
std::string preset_suggestion(const cost::NamedCluster& named, std::string_view name);

// Empty if something is wrong, which is then in `diagnostics`.
std::optional<ClusterSetting> read_cluster(const Json& value, Diagnostics& diagnostics);

}  // namespace rollcall::scenario
