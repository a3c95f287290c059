#include "scenarios/format/header_reader.h"

#include <algorithm>

#include <fmt/core.h>

#include "scenarios/format/cases.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/program/devices.h"
#include "scenarios/program/rank_sets.h"
#include "scenarios/program/units.h"
#include "sim/c10d/backend_traits.h"
#include "sim/cost/roofline.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::scenario {
namespace {

// Ends endless loops within seconds, and gives a thousand ranks a hundred thousand steps each.
constexpr std::int64_t default_ops = 100'000'000;

}  // namespace

void HeaderReader::error(const Json& at, std::string message, std::string_view suggestion) {
  diagnostics_.error(at, std::move(message), suggestion);
}

void HeaderReader::read() {
  read_names();
  read_cluster();
  read_hosts();
  read_devices();
  read_groups();
  read_mesh();
  read_inputs();
  read_limits();
  read_faults();
  read_expect();
}

void HeaderReader::tell_gpu(ScenarioFacts& facts) const {
  const auto& cluster = scenario_.options.cluster;
  facts.gpu = cluster ? cost::find_gpu(*cluster) : nullptr;
  if (overrides_.brings_cluster) {
    facts.gpu = nullptr;  // the cluster will be another one
  } else if (!cluster) {
    facts.no_gpu =
        "without a cluster the speed of a GPU is unknown: add \"cluster\": \"h100-8\", or write a "
        "time instead";
  } else if (facts.gpu == nullptr) {
    facts.no_gpu =
        fmt::format("nothing is known about the speed of GPUs of compute capability {}: write a time instead",
                    cluster->compute_capability);
  }
}

ScenarioFacts HeaderReader::facts() const {
  ScenarioFacts facts;
  facts.world_size = scenario_.options.world_size;
  facts.local_ranks = local_ranks();
  facts.torch = scenario_.options.torch;
  tell_gpu(facts);
  facts.has_inputs = root_.find("inputs").has_value();
  for (const sim::Group& group : scenario_.options.groups) {
    facts.groups.push_back(group.name);
    facts.group_sizes.emplace(group.name, static_cast<Rank>(group.ranks.size()));
  }
  for (const MeshDim& dim : scenario_.mesh_dims) {
    facts.mesh.push_back(dim.name);
    facts.group_sizes.emplace(dim.name, scenario_.mesh.size_along(dim.of));
  }
  facts.groups.insert(facts.groups.end(), facts.mesh.begin(), facts.mesh.end());
  if (const auto objects = root_.find("objects")) {
    for (Json object : objects->children()) {
      facts.objects.emplace_back(object.key());
    }
  }
  return facts;
}

Rank HeaderReader::local_ranks() const {
  return std::min(scenario_.options.ranks_per_host, scenario_.options.world_size);
}

void HeaderReader::read_names() {
  scenario_.name = name_of(root_, scenario_.file);
  root_.read("source", scenario_.source);
  root_.read("origin", scenario_.origin);
  sim::Options& options = scenario_.options;
  options.world_size = overrides_.world_size.value_or(static_cast<Rank>(root_.find("world_size")->integer()));
  root_.read("seed", options.seed);
  root_.read("backend", options.backend);
  options.backend = overrides_.backend.value_or(options.backend);
  if (const auto torch = root_.find("torch")) {
    const std::optional<TorchRelease> release = parse_torch_release(torch->text());
    if (!release) {
      const std::optional<TorchRelease> nearest = nearest_torch_release(torch->text());
      error(*torch, fmt::format("rollcall knows PyTorch {}; {}", names_of_torch_releases(),
                                nearest ? fmt::format("\"{}\" comes nearest", traits_of(*nearest).name)
                                        : "a version looks like \"2.6\""));
    }
    options.torch = release.value_or(newest_torch);
  }
  options.torch = overrides_.torch.value_or(options.torch);
  if (const auto debug = root_.find("debug")) {
    options.debug = debug->text() == "DETAIL" ? sim::DebugLevel::detail : sim::DebugLevel::off;
  }
}

std::optional<DeviceTemplate> HeaderReader::device(const Json& value) {
  return diagnostics_.value_of(
      value, parse_device_template(value.text(), scenario_.options.world_size, local_ranks()));
}

// Leaves the list of devices empty if the engine's own rule gives the same.
void HeaderReader::read_devices() {
  const Rank world_size = scenario_.options.world_size;
  const DeviceType type = traits_of(scenario_.options.backend).device;
  const DeviceTemplate usual = type == DeviceType::cpu
                                   ? DeviceTemplate{}
                                   : DeviceTemplate{{type, 0}, DeviceTemplate::Index::local_rank};
  const auto given = root_.find("device");
  const DeviceTemplate base = given ? device(*given).value_or(usual) : usual;
  const auto exceptions = root_.find("devices");
  if (base == usual && !exceptions) {
    return;
  }
  std::vector<Device>& devices = scenario_.options.devices;
  for (Rank rank = 0; rank < world_size; ++rank) {
    devices.push_back(base.resolve(rank, scenario_.local_rank(rank)));
  }
  if (!exceptions) {
    return;
  }
  RankSet seen;
  for (Json entry : exceptions->children()) {
    const auto own = device(entry);
    const auto ranks = read_key_ranks(entry, world_size, diagnostics_);
    if (!ranks) {
      continue;
    }
    for (Rank rank : ranks->to_vector()) {
      devices[static_cast<std::size_t>(rank)] = own.value_or(base).resolve(rank, scenario_.local_rank(rank));
    }
    const std::size_t before = seen.size();
    seen.insert(*ranks);
    if (seen.size() != before + ranks->size()) {
      diagnostics_.error_at_key(entry, "some of these ranks already have a device");
    }
  }
}

void HeaderReader::read_groups() {
  const auto groups = root_.find("groups");
  if (!groups) {
    return;
  }
  for (Json entry : groups->children()) {
    read_group(entry);
  }
}

// A rank set, or an object with one and a timeout.
void HeaderReader::read_group(const Json& entry) {
  const bool is_object = entry.is(JsonType::object);
  const auto given = is_object ? entry.find("ranks") : std::optional(entry);
  if (!given) {
    error(entry, "\"ranks\" is missing");
    return;
  }
  const auto ranks = read_ranks(*given, scenario_.options.world_size, diagnostics_);
  const auto timeout = is_object ? entry.find("timeout") : std::nullopt;
  if (entry.key() == "world" || entry.key().empty()) {
    diagnostics_.error_at_key(entry, entry.key().empty()
                                         ? "a group needs a name"
                                         : "the group \"world\" always exists; use another name");
  } else if (ranks && ranks->empty()) {
    error(entry, "a group needs at least one rank");
  } else {
    scenario_.options.groups.push_back({std::string(entry.key()),
                                        ranks ? ranks->to_vector() : std::vector<Rank>{},
                                        timeout ? positive_duration(*timeout) : 0});
  }
}

void HeaderReader::read_inputs() {
  const auto inputs = root_.find("inputs");
  const Rank world_size = scenario_.options.world_size;
  if (!inputs) {
    return;
  }
  if (inputs->is(JsonType::integer)) {
    scenario_.inputs.base = inputs->integer();
  } else if (inputs->is(JsonType::array)) {
    for (Json count : inputs->children()) {
      scenario_.inputs.list.push_back(count.integer());
    }
    if (scenario_.inputs.list.size() != static_cast<std::size_t>(world_size)) {
      error(*inputs, fmt::format("expected a number of inputs for each of {}, found {}",
                                 world_size == 1 ? "1 rank" : fmt::format("{} ranks", world_size),
                                 scenario_.inputs.list.size()));
    }
  } else if (inputs->find("dataset")) {
    read_sampled_inputs(*inputs);
  } else {
    for (const char* key : {"batch_size", "drop_last", "sampler"}) {
      if (const auto stray = inputs->find(key)) {
        error(*stray, fmt::format("\"{}\" needs \"dataset\"", key));
      }
    }
    inputs->read("base", scenario_.inputs.base);
    inputs->read("per_rank", scenario_.inputs.per_rank);
    std::int64_t last = 0;
    if (__builtin_mul_overflow(scenario_.inputs.per_rank, world_size - 1, &last) ||
        __builtin_add_overflow(last, scenario_.inputs.base, &last) || last < 0) {
      error(*inputs,
            fmt::format("rank {} would have a negative or too large number of inputs", world_size - 1));
    }
  }
}

Duration HeaderReader::duration(const Json& value) {
  return diagnostics_.value_of(value, parse_duration(value.text())).value_or(0);
}

// Zero would mean "no limit" further down, the opposite of what the file says.
Duration HeaderReader::positive_duration(const Json& value) {
  const auto read = diagnostics_.value_of(value, parse_duration(value.text()));
  if (read == 0) {
    error(value, "must be longer than 0");
  }
  return read.value_or(0);
}

std::int64_t HeaderReader::positive_bytes(const Json& value) {
  const auto read = diagnostics_.value_of(value, parse_bytes(value.text()));
  if (read == 0) {
    error(value, "must be more than 0");
  }
  return read.value_or(0);
}

void HeaderReader::read_limits() {
  scenario_.options.limits.ops = default_ops;
  if (const auto limits = root_.find("limits")) {
    if (const auto time = limits->find("simulated_time")) {
      scenario_.options.limits.simulated_time = positive_duration(*time);
    }
    limits->read("ops", scenario_.options.limits.ops);
    if (const auto memory = limits->find("memory")) {
      scenario_.options.limits.memory_bytes = positive_bytes(*memory);
    }
  }
  root_.read("check_leaks", scenario_.options.check_leaks);
  root_.read("blocking_wait", scenario_.blocking_wait);
  const auto ranks_in = [this](const char* key) {
    const auto ranks = root_.find(key);
    return ranks ? read_ranks(*ranks, scenario_.options.world_size, diagnostics_).value_or(RankSet())
                 : RankSet();
  };
  scenario_.interrupted = ranks_in("interrupted");
  scenario_.stalled = ranks_in("stalled");
  scenario_.options.open_ends = scenario_.interrupted;
  scenario_.options.open_ends.insert(scenario_.stalled);
  if (const auto communicators = root_.find("communicators")) {
    scenario_.options.eager_communicators = communicators->text() == "eager";
  }
  if (const auto model = root_.find("device_model")) {
    model->read("comm_slots", scenario_.options.comm_slots);
  }
  if (const auto timeout = root_.find("timeout")) {
    scenario_.options.timeout = positive_duration(*timeout);
  }
}

}  // namespace rollcall::scenario
