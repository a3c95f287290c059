#pragma once

// HeaderReader: reads everything in a scenario file except its statements. The file has passed the schema, so
// types are right; it checks what a schema cannot express: ranks out of range, devices that do not
// exist, groups without members.

#include <optional>
#include <string_view>

#include "scenarios/format/cluster_reader.h"
#include "scenarios/format/scenario.h"
#include "scenarios/json/json_tree.h"
#include "scenarios/program/value_reader.h"

namespace rollcall::scenario {

class Diagnostics;

class HeaderReader {
 public:
  static constexpr std::int64_t mesh_ranks_max = 1'000'001;  // more than any world

  // All arguments are borrowed for the lifetime of the object. `scenario` is filled in.
  HeaderReader(const Json& root, const Overrides& overrides, Scenario& scenario, Diagnostics& diagnostics)
      : root_(root), overrides_(overrides), scenario_(scenario), diagnostics_(diagnostics) {}

  void read();
  // The facts that the statements need; valid after read().
  ScenarioFacts facts() const;

 private:
  void error(const Json& at, std::string message, std::string_view suggestion = {});
  void read_names();
  void read_cluster();
  void tell_gpu(ScenarioFacts& facts) const;
  void spread_over_nodes(const ClusterSetting& setting);
  void read_hosts();
  bool holds_hosts(const Json& hosts, Rank count, Rank largest);
  void read_devices();
  void read_groups();
  void read_group(const Json& entry);
  void read_mesh();
  void read_mesh_name(const Json& at, std::string_view name);
  void read_flattened(const Json& mesh);
  void add_mesh_groups();
  void read_inputs();
  void read_sampled_inputs(const Json& inputs);
  std::vector<std::int64_t> read_sampler_seeds(const Json& seed);
  void read_limits();
  void read_faults();
  void read_fault(const Json& fault);
  void read_expect();
  void read_place(const Json& at);
  void read_prints(const Json& prints);
  void read_values(const Json& values);
  double element_of(const Json& value);
  void read_counts(const Json& counts);
  void read_count(const Json& entry, const std::optional<RankSet>& ranks);
  void read_bounds(const Json& bounds);
  Duration duration(const Json& value);
  Duration positive_duration(const Json& value);
  std::int64_t positive_bytes(const Json& value);
  std::optional<DeviceTemplate> device(const Json& value);
  Rank local_ranks() const;

  Json root_;
  std::optional<ClusterSetting> cluster_;  // what the file says about the machines
  const Overrides& overrides_;
  Scenario& scenario_;
  Diagnostics& diagnostics_;
};

}  // namespace rollcall::scenario
