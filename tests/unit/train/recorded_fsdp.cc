#include "tests/unit/train/recorded_fsdp.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "sim/c10d/forwarding_backend.h"
#include "sim/c10d/rank_context.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::test {
namespace {

using nlohmann::json;

class CallRecorder final : public ForwardingBackend {
 public:
  CallRecorder(Backend& inner, std::vector<RankTrace>& traces) : ForwardingBackend(inner), traces_(traces) {}

  Work issue(const Op& op) override {
    const RankContext& self = this_rank();
    const ProcessGroup group = op.group == world_group ? self.world : made_.at(op.group);
    std::string ranks;
    for (const Rank rank : group.members().ranks) {
      ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
    }
    std::string text = row_of(op.kind).name.data();
    const std::int64_t out = op.tensors.output != nullptr ? op.tensors.output->numel : op.numel;
    text += " " + ranks + " " + std::to_string(op.numel) + ">" + std::to_string(out) + " " +
            std::string(to_string(op.dtype));
    if (has_reduce_op(op.kind)) {
      text += " " + std::string(to_string(op.reduce));
    }
    traces_[static_cast<std::size_t>(self.rank)].calls.push_back(text);
    return ForwardingBackend::issue(op);
  }

  ProcessGroup manage(GroupCall call) override {
    const ProcessGroup group = ForwardingBackend::manage(std::move(call));
    if (group.is_member()) {
      made_[group.id()] = group;
    }
    return group;
  }

 private:
  std::vector<RankTrace>& traces_;
  std::map<GroupId, ProcessGroup> made_;
};

Shape shape_of(const json& sizes) {
  const auto list = sizes.get<std::vector<std::int64_t>>();
  return Shape(std::span<const std::int64_t>(list));
}

// Compares float32 numbers, which torch adds in a different order.
bool is_close(const json& ours, const json& theirs) {
  if (ours.is_array() && theirs.is_array()) {
    return std::ranges::equal(ours, theirs, is_close);
  }
  if (!ours.is_number() || !theirs.is_number()) {
    return ours == theirs;
  }
  const double a = ours.get<double>();
  const double b = theirs.get<double>();
  return std::abs(a - b) <= 2e-6 * std::max({1.0, std::abs(a), std::abs(b)});
}

void check_rank(const json& theirs, const RankTrace& ours) {
  const auto expected = theirs["calls"].get<std::vector<std::string>>();
  std::vector<std::string> calls = ours.calls;
  if (theirs["end"][0] == "error" && calls.size() > expected.size()) {
    calls.resize(expected.size());  // it is chance how soon a rank notices that its peer has gone
  }
  CHECK(calls == expected);
  if (!theirs.contains("values")) {  // a backend without values, or a case without any
    return;
  }
  const json& values = theirs["values"];
  REQUIRE(ours.values.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(ours.values[i].first == values[i][0].get<std::string>());
    INFO(ours.values[i].second << "\n" << values[i].dump());
    CHECK(is_close(json::parse(ours.values[i].second), values[i][1]));
  }
}

}  // namespace

std::vector<std::filesystem::path> recorded_cases(const std::string& begin) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(ROLLCALL_SOURCE_DIR) /
                                                               "tests/data/torch_2_14/fsdp")) {
    if (entry.path().filename().string().starts_with(begin)) {
      paths.push_back(entry.path());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

json read_json(const std::filesystem::path& path) { return json::parse(std::ifstream(path)); }

TracedRun run_traced(const json& spec, const std::string& backend,
                     const std::function<void(Rank rank, RankTrace& trace)>& body) {
  TracedRun run;
  const auto ranks = spec["world"].get<Rank>();
  run.traces.resize(static_cast<std::size_t>(ranks));
  sim::Options options{.world_size = ranks, .backend = backend};
  options.decorate = [&](Backend& inner) { return std::make_unique<CallRecorder>(inner, run.traces); };
  run.report = sim::run(options, [&](Rank rank) { body(rank, run.traces[static_cast<std::size_t>(rank)]); });
  return run;
}

void check_like_recorded(const json& recorded, const TracedRun& run) {
  const json ranks = recorded["case"].value("ranks", json::array());
  for (std::size_t i = 0; i < recorded["ranks"].size(); ++i) {
    const json& theirs = recorded["ranks"][i];
    const std::size_t rank = ranks.empty() ? i : ranks[i].get<std::size_t>();
    INFO("rank " << rank);
    check_rank(theirs, run.traces[rank]);
    const RankClass& state = run.report.of(static_cast<Rank>(rank));
    if (recorded["case"].value("per_rank", false)) {
      continue;  // other tests cover what Gloo does with mismatched calls
    }
    if (theirs["end"][0] == "completed") {
      CHECK(state.state == RankClass::State::finished);
    } else {
      CHECK(state.state == RankClass::State::raised);
      CHECK(state.exception ==
            theirs["end"][1].get<std::string>() + ": " + theirs["end"][2].get<std::string>());
    }
  }
}

std::vector<Parameter> unit_parameters(const json& spec, double base) {
  std::vector<Parameter> parameters;
  const json& shapes = spec.is_array() ? spec : spec["params"];
  const json frozen = spec.is_array() ? json::array() : spec.value("frozen", json::array());
  const json dtypes = spec.is_array() ? json::array() : spec.value("dtypes", json::array());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Shape shape = shape_of(shapes[i]);
    std::vector<double> values;
    for (std::int64_t at = 0; at < shape.numel(); ++at) {
      values.push_back(base + static_cast<double>(at));
    }
    const Dtype dtype = i < dtypes.size() ? *parse_dtype(dtypes[i].get<std::string>()) : Dtype::float32;
    const Tensor whole = Tensor::zeros(shape, dtype, this_rank().device);
    whole.copy_(Tensor::of(values, dtype, this_rank().device));
    const bool is_frozen =
        frozen.is_boolean() ? frozen.get<bool>() : std::ranges::find(frozen, json(i)) != frozen.end();
    parameters.push_back({.name = "p" + std::to_string(i), .value = whole, .requires_grad = !is_frozen});
  }
  return parameters;
}

std::optional<Dtype> dtype_in(const json& object, const char* key) {
  return object.contains(key) ? parse_dtype(object[key].get<std::string>()) : std::nullopt;
}

std::string verb_of(const json& step) {
  return step.is_string() ? step.get<std::string>() : step[0].get<std::string>();
}

}  // namespace rollcall::test
