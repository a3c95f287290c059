#include "viz/json/json_report.h"

#include <nlohmann/json.hpp>

#include "viz/json/json_parts.h"
#include "viz/rows/output_groups.h"

namespace rollcall::viz {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Place& place) {
  Json object = {{"op", place.call.op}};
  if (place.call.key.empty() && !place.call.group.empty()) {
    object["group"] = place.call.group;
    object["seq"] = place.call.seq;
  }
  set(object, "key", place.call.key);
  if (place.call.peer >= 0) {
    object["peer"] = place.call.peer;
  }
  if (place.call.tag != 0) {
    object["tag"] = place.call.tag;
  }
  object["waiting"] = place.waiting.to_vector();
  object["missing"] = place.missing.to_vector();
  set(object, "label", place.call.label);
  set(object, "site", place.call.site);
  return object;
}

// "ranks" and "labels" are parallel: which ranks called from where.
Json json_of(const Divergence& divergence) {
  Json ranks = Json::array();
  Json labels = Json::array();
  for (const Variant& variant : divergence.variants) {
    ranks.push_back(to_string(variant.ranks));
    labels.push_back(variant.call.label);
  }
  return {{"group", divergence.group},
          {"seq", divergence.seq},
          {"ranks", std::move(ranks)},
          {"labels", std::move(labels)},
          {"variants", variants_json(divergence.variants)}};
}

Json json_of(const RankClass& ranks) {
  Json object = {{"ranks", to_string(ranks.ranks)}, {"state", to_string(ranks.state)}};
  if (ranks.call) {
    object["op"] = call_json(*ranks.call);
  }
  if (ranks.last_completed) {
    object["last_completed"] = call_json(*ranks.last_completed);
  }
  if (ranks.inputs >= 0) {
    object["inputs"] = ranks.inputs;
  }
  set(object, "exception", ranks.exception);
  if (!ranks.waits_for.empty()) {
    object["waits_for"] = to_string(ranks.waits_for);
  }
  return object;
}

Json json_of(const OutputGroup& group) {
  Json object = {{"ranks", to_string(group.ranks)}, {"time_ns", group.time}, {"text", group.text}};
  if (group.warning) {
    object["warning"] = true;
  }
  return object;
}

Json json_of(const TensorPlace& place) {
  Json object = {{"ranks", to_string(place.ranks)}, {"tensor", place.tensor}};
  set(object, "got", place.got);
  set(object, "want", place.want);
  set(object, "handle", place.handle);
  set(object, "site", place.site);
  return object;
}

Json json_of(const Outcome& outcome) {
  Json object = {{"verdict", outcome.verdict}};
  if (outcome.kind != FindingKind::ok) {
    object["kind"] = to_string(outcome.kind);
  }
  object["count"] = outcome.count;
  return object;
}

// Converts thousandths to percent: 154 to 15.4.
double percent(std::int64_t permille) { return static_cast<double>(permille) / 10; }

Json json_of(const JoinedRanks& ranks) {
  return {{"ranks", to_string(ranks.ranks)},
          {"steps", ranks.steps},
          {"shadow_calls", ranks.shadow_calls},
          {"idle_ns", ranks.idle}};
}

Json json_of(const ActiveRanks& active) {
  return {{"from_step", active.from}, {"to_step", active.to}, {"active_ranks", active.ranks}};
}

Json json_of(const SampleUse& use) {
  return {{"dataset", use.dataset},
          {"sampler", use.sampler == SampleUse::Sampler::shard ? "shard" : "distributed"},
          {"shuffle", use.shuffle},
          {"ranks", use.ranks},
          {"batch_size", use.batch_size},
          {"drop_last", use.drop_short_batch},
          {"samples_per_rank", {{"fewest", use.fewest}, {"most", use.most}}},
          {"batches_per_rank", {{"fewest", use.batches(use.fewest)}, {"most", use.batches(use.most)}}},
          {"duplicated", use.repeated},
          {"dropped", use.dropped()},
          {"dropped_by_sampler", use.dropped_by_sampler},
          {"bias", sample_biases(use)}};
}

Json json_of(const DeviceMemory& memory) {
  return {{"bytes", memory.total()},
          {"samples", memory.samples},
          {"parameters", memory.parameters},
          {"gradients", memory.gradients},
          {"optimizer", memory.optimizer_state},
          {"inputs", memory.inputs},
          {"activations", memory.activations},
          {"outputs", memory.outputs}};
}

Json json_of(const FoundFailure& failure);
Json json_of(const JoinCost& cost);
Json json_of(const MemoryUse& use);

template <typename Value>
Json list_of(const std::vector<Value>& values) {
  Json list = Json::array();
  for (const Value& value : values) {
    list.push_back(json_of(value));
  }
  return list;
}

// GPUs in order.
Json json_of(const MemoryUse& use) { return {{"object", use.object}, {"devices", list_of(use.devices)}}; }

Json json_of(const JoinCost& cost) {
  Json object = {{"group", cost.group},
                 {"steps", cost.steps},
                 {"effective_world_size", static_cast<double>(cost.mean_active_thousandths()) / 1000},
                 {"active", list_of(cost.active)},
                 {"ranks", list_of(cost.ranks)},
                 {"shadowing_ns", cost.shadowing},
                 {"inputs_lost_percent", percent(cost.inputs_lost_permille())},
                 {"time_saved_percent", percent(cost.time_saved_permille())}};
  set(object, "advice", cost.advice());
  return object;
}

Json json_of(const FoundFailure& failure) {
  return {{"verdict", failure.verdict},
          {"kind", to_string(failure.kind)},
          {"culprits", failure.culprits.to_vector()},
          {"headline", failure.headline},
          {"count", failure.count},
          {"replay", failure.replay}};
}

void add_search(Json& object, const SearchResult& search) {
  object["outcomes"] = Json::array();
  for (const Outcome& outcome : search.outcomes) {
    object["outcomes"].push_back(
        {{"verdict", outcome.verdict}, {"kind", to_string(outcome.kind)}, {"count", outcome.count}});
  }
  object["failures"] = list_of(search.failures);
  object["coverage"] = {{"distinct_schedules", search.distinct},
                        {"cut_short", search.cut},
                        {"estimated_schedules", search.space}};
  if (!search.bounds.empty()) {
    object["coverage"]["bounds"] = search.bounds;
  }
  if (search.interrupted) {
    object["interrupted"] = true;
  }
}

// The fields that only one kind of verdict has.
class Particulars {
 public:
  Particulars(Json& object, bool has_search) : object_(object), has_search_(has_search) {}

  void operator()(const Mismatch& verdict) const { object_["variants"] = variants_json(verdict.variants); }
  void operator()(const DeviceMismatch& verdict) const {
    object_["variants"] = variants_json(verdict.variants);
  }
  void operator()(const RankFailed& verdict) const { set(object_, "exception", verdict.exception); }
  void operator()(const LimitReached& verdict) const {
    object_["limit"] = {{"name", to_string(verdict.finding.kind)}, {"value", verdict.value}};
  }
  void operator()(const WrongResult& verdict) const {
    if (!verdict.variants.empty()) {
      object_["variants"] = variants_json(verdict.variants);
    }
    add_tensors("values", verdict.values);
  }
  void operator()(const Race& verdict) const {
    if (!verdict.variants.empty()) {
      object_["variants"] = variants_json(verdict.variants);
    }
    add_tensors("touched", verdict.touched);
    if (!verdict.outcomes.empty() && !has_search_) {
      object_["outcomes"] = list_of(verdict.outcomes);
    }
  }
  void operator()(const ResourceLeak& verdict) const {
    if (!verdict.calls.empty()) {
      object_["leaked"] = variants_json(verdict.calls);
    }
  }
  void operator()(const Completed&) const {}
  void operator()(const Deadlock& verdict) const {
    if (!verdict.cycle.empty()) {
      object_["circle"] = list_of(verdict.cycle);
    }
  }

 private:
  // Adds all places under `key`, and the first one to "at".
  void add_tensors(const char* key, const std::vector<TensorPlace>& places) const {
    if (places.empty()) {
      return;
    }
    const TensorPlace& first = places.front();
    Json& at = object_["at"];
    at["rank"] = first.ranks.first();
    at["tensor"] = first.tensor;
    set(at, "got", first.got);
    set(at, "want", first.want);
    set(at, "handle", first.handle);
    set(at, "site", first.site);
    object_[key] = list_of(places);
  }

  Json& object_;
  bool has_search_;  // then the search has the outcomes
};

void add_finding(Json& object, const Finding& finding) {
  object["kind"] = to_string(finding.kind);
  object["culprits"] = finding.suspects.empty() ? finding.culprits.to_vector() : finding.suspects;
  if (finding.tie) {
    object["tie"] = true;
  }
  if (finding.at) {
    object["at"] = json_of(*finding.at);
  }
  if (finding.first_divergence) {
    object["first_divergence"] = json_of(*finding.first_divergence);
  }
}

void add_explanation(Json& object, const Finding& finding) {
  set(object, "headline", finding.headline);
  set(object, "cause", finding.cause);
  set(object, "suspicion", finding.suspicion);
  set(object, "advice", finding.advice);
  add_repair(object, finding);
  set(object, "on_backend", finding.on_backend);
  set(object, "chain", finding.chain);
}

void add_verdict(Json& object, const Verdict& verdict, bool has_search) {
  object["verdict"] = verdict_word(verdict);
  if (const Finding* finding = finding_of(verdict)) {
    add_finding(object, *finding);
    object["confidence"] = to_string(confidence_in_blame(verdict));
    std::visit(Particulars(object, has_search), verdict);
    add_explanation(object, *finding);
  } else {
    object["kind"] = "ok";
    object["culprits"] = Json::array();
  }
}

}  // namespace

std::string json_report(const Report& report) {
  Json object = {{"schema_version", 1}, {"scenario", report.scenario}, {"seed", report.seed}};
  set(object, "replay", report.replay);
  object["world_size"] = report.world_size;
  set(object, "backend", report.backend);
  set(object, "torch", report.torch);
  add_verdict(object, report.verdict, report.search.has_value());
  object["ranks"] = list_of(report.ranks);
  if (!report.output.empty()) {
    object["output"] = list_of(group_output(report.output));
  }
  if (!report.joins.empty()) {
    object["join"] = list_of(report.joins);
  }
  if (!report.memory.empty()) {
    object["memory"] = list_of(report.memory);
  }
  if (report.samples) {
    object["samples"] = json_of(*report.samples);
  }
  object["exhaustive"] = report.exhaustive;
  object["schedules"] = report.schedules;
  if (report.search) {
    add_search(object, *report.search);
  }
  object["ops"] = report.ops;
  object[report.measured ? "measured_time_ns" : "simulated_time_ns"] = report.simulated_time;
  if (report.expected) {
    object["expected"] = *report.expected;
  }
  set(object, "unmet", report.unmet);
  return object.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::viz
