#pragma once

// The format of JSON reports and diagnoses: the members of every object, in their order. Writers (object_writer.h) and
// the reader (scenarios/format/report_reader.h) are visitors. A reader takes a missing member for the value's default.
// How a visitor is called says when a writer leaves a member out:
//
//   visit("seq", number)                     never
//   visit.some("site", text)                 if it is empty, zero or false
//   visit.known("inputs", number)            if it is negative: there is none
//   visit.rank("peer", rank)                 the same
//   visit.ranks("ranks", set)                never: "0-3,8"; some rank
//   visit.rank_list("ranks", set)            never: [0, 1, 2]; some rank
//   visit.ranks_or_none("waits_for", set)    if it is empty
//   visit.rank_list_or_none("missing", set)  never
//   visit.derived("bytes", calculate)        never; follows from other members, so readers pass over it
//   visit.within("limit", describe)          never: an object
//   visit.beside("coverage", value)          if there is none; its members stand among the others, this one always
//   if (visit.wants(condition))              what follows, unless the condition is true
//
// JSON reports do not have timelines, the groups of timelines, and the values of tensors.

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "sim/report/diagnosis.h"
#include "sim/report/report.h"
#include "viz/rows/output_groups.h"

namespace rollcall::viz {

inline constexpr std::int64_t report_version = 1;

// A value to write, or one to fill.
template <typename T, typename Value>
concept Any = std::same_as<std::remove_const_t<T>, Value>;

template <typename T>
inline constexpr bool is_filled = !std::is_const_v<std::remove_reference_t<T>>;

void members(auto& visit, Any<Call> auto& call) {
  visit("op", call.op);
  if (visit.wants(call.key.empty())) {
    visit("group", call.group);
    visit("seq", call.seq);
  }
  visit.some("key", call.key);
  visit.some("ranks", call.ranks);
  if (visit.wants(!call.dtype.empty())) {  // a barrier carries no data
    visit("numel", call.numel);
    visit("dtype", call.dtype);
  }
  visit.some("reduce_op", call.reduce_op);
  visit.rank("root", call.root);
  visit.rank("peer", call.peer);
  visit.some("tag", call.tag);
  visit.some("device", call.device);
  visit.some("label", call.label);
  visit.some("site", call.site);
}

void members(auto& visit, Any<Place> auto& place) {
  visit("op", place.call.op);
  if (visit.wants(place.call.key.empty() && !place.call.group.empty())) {
    visit("group", place.call.group);
    visit("seq", place.call.seq);
  }
  visit.some("key", place.call.key);
  visit.rank("peer", place.call.peer);
  visit.some("tag", place.call.tag);
  visit.rank_list_or_none("waiting", place.waiting);
  visit.rank_list_or_none("missing", place.missing);
  visit.some("label", place.call.label);
  visit.some("site", place.call.site);
}

void members(auto& visit, Any<Variant> auto& variant) {
  visit.ranks("ranks", variant.ranks);
  visit("op", variant.call);
}

void members(auto& visit, Any<Divergence> auto& divergence) {
  std::vector<std::string> ranks;  // parallel to the labels: which ranks called from where
  std::vector<std::string> labels;
  for (const Variant& variant : divergence.variants) {
    ranks.push_back(to_string(variant.ranks));
    labels.push_back(variant.call.label);
  }
  visit("group", divergence.group);
  visit("seq", divergence.seq);
  visit.derived("ranks", [&] { return ranks; });
  visit.derived("labels", [&] { return labels; });
  visit("variants", divergence.variants);
}

void tensor_members(auto& visit, auto& place) {
  visit("tensor", place.tensor);
  visit.some("got", place.got);
  visit.some("want", place.want);
  visit.some("handle", place.handle);
  visit.some("ordered_stream", place.ordered);
  visit.some("stream", place.unordered);
  visit.some("by", place.by);
  visit.some("site", place.site);
}

void members(auto& visit, Any<TensorPlace> auto& place) {
  visit.ranks("ranks", place.ranks);
  tensor_members(visit, place);
  visit.known("time_ns", place.time);
}

void members(auto& visit, Any<SplitPair> auto& pair) {
  visit.rank("sender", pair.sender);
  visit.rank("receiver", pair.receiver);
  visit("sent", pair.sent);
  visit("expected", pair.expected);
}

void members(auto& visit, Any<RepairStep> auto& step) {
  visit.rank_list("ranks", step.ranks);
  visit("change", step.text);
  visit("times", step.times);
}

void members(auto& visit, Any<Repair> auto& repair) {
  using Search = Repair::Search;
  visit("edits", repair.steps);
  visit.derived("verified", [&] { return !repair.steps.empty(); });
  visit("alternatives", repair.alternatives);
  visit("tried", repair.tried);
  visit.word("search", repair.search, {Search::complete, Search::cut_short, Search::too_large});
  visit.some("partial", repair.is_partial);
}

void members(auto& visit, Any<RankClass> auto& ranks) {
  using State = RankClass::State;
  visit.ranks("ranks", ranks.ranks);
  visit.word("state", ranks.state,
             {State::finished, State::waiting, State::raised, State::crashed, State::running},
             "a rank state");
  visit.some("op", ranks.call);
  visit.some("last_completed", ranks.last_completed);
  visit.known("inputs", ranks.inputs);
  visit.some("exception", ranks.exception);
  visit.ranks_or_none("waits_for", ranks.waits_for);
}

void members(auto& visit, Any<OutputGroup> auto& group) {
  visit.ranks("ranks", group.ranks);
  visit("time_ns", group.time);
  visit("text", group.text);
  visit.some("warning", group.warning);
}

void members(auto& visit, Any<JoinedRanks> auto& ranks) {
  visit.ranks("ranks", ranks.ranks);
  visit("steps", ranks.steps);
  visit("shadow_calls", ranks.shadow_calls);
  visit("idle_ns", ranks.idle);
}

void members(auto& visit, Any<ActiveRanks> auto& active) {
  visit("from_step", active.from);
  visit("to_step", active.to);
  visit("active_ranks", active.ranks);
}

// The run's duration is the report's.
void members(auto& visit, Any<JoinCost> auto& cost) {
  visit("group", cost.group);
  visit("steps", cost.steps);
  visit.derived("effective_world_size",
                [&] { return static_cast<double>(cost.mean_active_thousandths()) / 1000; });
  visit("active", cost.active);
  visit("ranks", cost.ranks);
  visit("shadowing_ns", cost.shadowing);
  visit.derived("inputs_lost_percent", [&] { return static_cast<double>(cost.inputs_lost_permille()) / 10; });
  visit.derived("time_saved_percent", [&] { return static_cast<double>(cost.time_saved_permille()) / 10; });
  if (visit.wants(cost.is_uneven())) {
    visit.derived("advice", [&] { return cost.advice(); });
  }
}

void members(auto& visit, Any<DeviceMemory> auto& memory) {
  visit.derived("bytes", [&] { return memory.total(); });
  visit("samples", memory.samples);
  visit("parameters", memory.parameters);
  visit("gradients", memory.gradients);
  visit("optimizer", memory.optimizer_state);
  visit("inputs", memory.inputs);
  visit("activations", memory.activations);
  visit("outputs", memory.outputs);
}

void members(auto& visit, Any<MemoryUse> auto& use) {
  visit("object", use.object);
  visit("devices", use.devices);  // GPUs in order
}

void members(auto& visit, Any<SampleUse> auto& use) {
  visit("dataset", use.dataset);
  visit.word("sampler", use.sampler, {SampleUse::Sampler::distributed, SampleUse::Sampler::shard});
  visit("shuffle", use.shuffle);
  visit.some("seeds", use.seeds);
  visit("ranks", use.ranks);
  visit("batch_size", use.batch_size);
  visit("drop_last", use.drop_short_batch);
  visit.within("samples_per_rank", [&](auto& range) {
    range("fewest", use.fewest);
    range("most", use.most);
  });
  visit.within("batches_per_rank", [&](auto& range) {
    range.derived("fewest", [&] { return use.batches(use.fewest); });
    range.derived("most", [&] { return use.batches(use.most); });
  });
  visit("duplicated", use.repeated);
  std::int64_t dropped = use.dropped();
  visit("dropped", dropped);
  visit("dropped_by_sampler", use.dropped_by_sampler);
  if constexpr (is_filled<decltype(use)>) {
    use.dropped_by_loader = dropped - use.dropped_by_sampler;
  }
  visit.derived("bias", [&] { return sample_biases(use); });
}

void members(auto& visit, Any<Outcome> auto& outcome) {
  visit("verdict", outcome.verdict);
  visit("kind", outcome.kind);
  visit("count", outcome.count);
}

void members(auto& visit, Any<FoundFailure> auto& failure) {
  visit("verdict", failure.verdict);
  visit("kind", failure.kind);
  visit.rank_list_or_none("culprits", failure.culprits);
  visit("headline", failure.headline);
  visit("count", failure.count);
  visit("replay", failure.replay);
}

void members(auto& visit, Any<SearchResult> auto& search) {
  visit("outcomes", search.outcomes);
  visit("failures", search.failures);
  visit.within("coverage", [&](auto& coverage) {
    coverage("distinct_schedules", search.distinct);
    coverage("cut_short", search.cut);
    coverage("estimated_schedules", search.space);
    coverage.some("bounds", search.bounds);
  });
  visit.some("interrupted", search.interrupted);
  visit.some("differences_are_races", search.differences_are_races);
}

void members(auto& visit, Any<SourceLine> auto& line) {
  visit("site", line.site);
  visit("path", line.path);
  visit("line", line.line);
  visit.some("column", line.column);
  visit("text", line.text);
}

// Puts the first place in "at", too.
void tensors(auto& visit, const char* key, auto& places) {
  if constexpr (!is_filled<decltype(places)>) {
    if (!places.empty()) {
      visit.within("at", [&](auto& at) {
        at("rank", places.front().ranks.first());
        tensor_members(at, places.front());
      });
    }
  }
  visit.some(key, places);
}

// The members that only one kind of verdict has.
void particulars(auto& /*visit*/, Any<Completed> auto& /*verdict*/) {}
void particulars(auto& visit, Any<Deadlock> auto& verdict) {
  visit.some("circle", verdict.cycle);
  visit.some("blocked", verdict.blocked);
}
void particulars(auto& visit, Any<Mismatch> auto& verdict) {
  visit("variants", verdict.variants);
  visit.some("splits", verdict.splits);
}
void particulars(auto& visit, Any<DeviceMismatch> auto& verdict) { visit("variants", verdict.variants); }
void particulars(auto& visit, Any<WrongResult> auto& verdict) {
  visit.some("variants", verdict.variants);
  tensors(visit, "values", verdict.values);
}
void particulars(auto& visit, Any<Race> auto& verdict) {
  visit.some("variants", verdict.variants);
  tensors(visit, "touched", verdict.touched);
}
void particulars(auto& visit, Any<ResourceLeak> auto& verdict) { visit.some("leaked", verdict.calls); }
void particulars(auto& visit, Any<RankFailed> auto& verdict) { visit.some("exception", verdict.exception); }
void particulars(auto& visit, Any<LimitReached> auto& verdict) {
  visit.within("limit", [&](auto& limit) {
    limit.derived("name", [&] { return verdict.finding.kind; });
    limit("value", verdict.value);
  });
}

// has_search: it has the outcomes.
void verdict_members(auto& visit, Any<Verdict> auto& verdict, bool has_search) {
  visit.alternative("verdict", verdict);
  auto* finding = finding_of(verdict);
  if (finding == nullptr) {
    visit.derived("kind", [] { return FindingKind::ok; });
    visit.derived("culprits", [] { return std::vector<Rank>(); });
    return;
  }
  visit("kind", finding->kind);
  visit.culprits("culprits", *finding);
  visit.some("tie", finding->tie);
  visit.some("at", finding->at);
  visit.some("first_divergence", finding->first_divergence);
  visit.derived("confidence", [&] { return to_string(confidence_in_blame(verdict)); });
  std::visit([&](auto& each) { particulars(visit, each); }, verdict);
  if (auto* race = std::get_if<Race>(&verdict); race != nullptr && visit.wants(!has_search)) {
    visit.some("outcomes", race->outcomes);
  }
  visit.some("headline", finding->headline);
  visit.some("cause", finding->cause);
  visit.some("suspicion", finding->suspicion);
  visit.some("advice", finding->advice);
  visit.some("repair", finding->repair);
  visit.some("on_backend", finding->on_backend);
  visit.some("chain", finding->chain);
}

void members(auto& visit, Any<Report> auto& report) {
  visit.derived("schema_version", [] { return report_version; });
  visit("scenario", report.scenario);
  visit("seed", report.seed);
  visit.some("replay", report.replay);
  visit.world_size("world_size", report.world_size);
  visit.some("backend", report.backend);
  visit.some("torch", report.torch);
  verdict_members(visit, report.verdict, report.search.has_value());
  visit("ranks", report.ranks);
  std::vector<OutputGroup> output = group_output(report.output);
  visit.some("output", output);
  if constexpr (is_filled<decltype(report)>) {
    report.output = lines_of(output);
  }
  visit.some("join", report.joins);
  visit.some("memory", report.memory);
  visit.some("samples", report.samples);
  visit("exhaustive", report.exhaustive);
  visit("schedules", report.schedules);
  visit.beside("coverage", report.search);
  visit("ops", report.ops);
  visit.some("timeouts", report.timeouts);
  visit.present("measured_time_ns", report.measured);
  visit(report.measured ? "measured_time_ns" : "simulated_time_ns", report.simulated_time);
  visit.some("expected", report.expected);
  visit.some("unmet", report.unmet);
  visit.some("sources", report.sources);
}

void members(auto& visit, Any<Victim> auto& victim) {
  visit.ranks("ranks", victim.ranks);
  visit("op", victim.call);
  visit("waits_for", to_string(victim.waits_for));
}

void place_members(auto& visit, const Diagnosis& diagnosis) {
  const Place& place = *diagnosis.finding.at;
  visit("op", place.call.op);
  visit("group", diagnosis.group_name);
  visit.some("group_desc", diagnosis.group_description);
  visit.rank_list_or_none("group_ranks", diagnosis.group_ranks);
  visit("seq", place.call.seq);
  visit(diagnosis.is_message ? "p2p_seq_id" : "collective_seq_id", place.call.seq);
  visit.rank("peer", place.call.peer);
  visit.rank_list_or_none("waiting", place.waiting);
  visit.rank_list_or_none("missing", place.missing);
  visit.some("label", place.call.label);
  visit.some("site", place.call.site);
}

// Diagnoses are written only.
void members(auto& visit, Any<Diagnosis> auto& diagnosis) {
  const Finding& finding = diagnosis.finding;
  visit("schema_version", report_version);
  visit("verdict", finding.kind);
  visit("kind", finding.kind);
  visit("kind_in_runs", finding_rows()[static_cast<std::size_t>(finding.kind)].same_in_runs);
  visit("alarm", is_alarm(diagnosis));
  visit("undecided", diagnosis.may_be_healthy);
  visit("confidence", to_string(diagnosis.confidence));
  visit.rank_list_or_none("culprits", finding.culprits);
  visit.some("tie", finding.tie);
  visit.some("alternatives", diagnosis.alternatives);
  if (finding.at) {
    visit.within("at", [&](auto& at) { place_members(at, diagnosis); });
  }
  visit.known("first_symptom_seq", diagnosis.first_symptom_seq);
  visit.some("variants", diagnosis.variants);
  visit.some("headline", finding.headline);
  visit.some("cause", finding.cause);
  visit.some("advice", finding.advice);
  visit.some("repair", finding.repair);
  visit.some("chain", finding.chain);
  visit("evidence", diagnosis.evidence);
  visit("would_settle", diagnosis.would_settle);
  visit("victims", diagnosis.victims);
  visit("world_size", diagnosis.world_size);
  visit.rank_list_or_none("without_dump", diagnosis.without_dump);
  visit("records", diagnosis.records);
}

}  // namespace rollcall::viz
