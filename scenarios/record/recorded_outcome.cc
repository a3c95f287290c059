#include "scenarios/record/recorded_outcome.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/core.h>

#include "sim/c10d/backend_traits.h"
#include "sim/c10d/op_table.h"
#include "sim/judge/judge_training.h"
#include "sim/tensor/dtype.h"
#include "sim/wording/wording.h"

namespace rollcall::scenario {
namespace {

using State = RankClass::State;
using traces::ScriptEnd;
using traces::ScriptRank;

// The state of a rank that the simulator answered; nothing if its record does not say.
std::optional<State> recorded_state(const ScriptRank& rank) {
  switch (rank.end.how) {
    case ScriptEnd::How::finished:
      return State::finished;
    case ScriptEnd::How::raised:
    case ScriptEnd::How::exited:
    case ScriptEnd::How::killed:
      return State::raised;
    case ScriptEnd::How::unknown:
      return rank.stack.empty() ? std::nullopt : std::optional(State::waiting);
    case ScriptEnd::How::stopped:
    case ScriptEnd::How::terminated:
      break;
  }
  return std::nullopt;
}

// Recorded ranks do not wait for each other at the end of their job; those of a scenario may.
bool is_at_its_end(const std::optional<Call>& call) {
  return call && call->op == to_string(OpKind::destroy_process_group);
}

// A scenario has exceptions where processes died.
State played_state(const RankClass& rank) {
  if (rank.state == State::waiting && is_at_its_end(rank.call)) {
    return State::finished;
  }
  return rank.state == State::crashed ? State::raised : rank.state;
}

// The simulator answers a recorded run's calls, but does not see how it uses its tensors.
bool is_about_touches(const Verdict& verdict) {
  const FindingKind kind = kind_of(verdict);
  return kind == FindingKind::read_before_wait || kind == FindingKind::write_before_wait;
}

bool is_about_the_end(const Verdict& verdict) {
  const Finding* finding = finding_of(verdict);
  return finding != nullptr && finding->at && is_at_its_end(finding->at->call);
}

const char* word_of(State state) {
  switch (state) {
    case State::finished:
      return "finished";
    case State::waiting:
      return "waited in vain";
    case State::raised:
    case State::crashed:
      return "failed";
    case State::running:
      break;
  }
  return "went on";
}

// Gradients and parameters are floating point; messages may carry anything.
bool may_carry_a_model(const traces::ScriptCall& call) {
  const std::optional<Dtype> dtype = parse_dtype(call.dtype);
  return call.op == "send" || call.op == "recv" || (dtype && (is_floating(*dtype) || is_complex(*dtype)));
}

// Counts calls after its first step, when ranks that began alike start to differ. With a single step, the calls that
// led to it count.
bool communicates_while_training(const ScriptRank& rank) {
  const std::size_t first = rank.training.steps > 1 ? rank.trains_from : 0;
  for (std::size_t i = first; i < rank.events.size(); ++i) {
    for (const std::uint32_t call : rank.events[i].calls) {
      if (may_carry_a_model(rank.calls[call])) {
        return true;
      }
    }
  }
  return false;
}

bool is_on_cpu(const ScriptRank& rank) {
  const BackendTraits* backend = find_backend_traits(rank.backend);
  return backend == nullptr || backend->device == DeviceType::cpu;
}

// True if the ranks' models were different ones before the first step: as in cross validation, where each has its own.
bool began_apart(const traces::ScriptRecord& record) {
  std::set<std::string> began;
  for (const ScriptRank& rank : record.ranks) {
    if (rank.training.parameters > 0) {
      began.insert(rank.training.began);
    }
  }
  return began.size() > 1 && !began.contains("");
}

// Replicas of DDP that are not equal at the end. The first model of which they are not, in the order of wrapping.
std::optional<Verdict> replicas_apart(const traces::ScriptRecord& record) {
  std::map<std::pair<std::vector<Rank>, std::size_t>, std::vector<check::RankTraining>> models;
  for (const ScriptRank& rank : record.ranks) {
    if (rank.mode == "fake" || rank.end.how != ScriptEnd::How::finished) {
      return std::nullopt;  // it has not seen what the others sent, or not all of it
    }
    std::map<std::vector<Rank>, std::size_t> wrapped;
    for (const traces::ScriptReplica& replica : rank.training.replicas) {
      models[{replica.ranks, wrapped[replica.ranks]++}].push_back({rank.rank, replica.parameters,
                                                                   rank.training.steps, replica.digest,
                                                                   place_text(rank, replica.site)});
    }
  }
  for (const auto& [model, replicas] : models) {
    if (replicas.size() == model.first.size()) {
      if (std::optional<Verdict> verdict = check::judge_replicas(replicas)) {
        return verdict;
      }
    }
  }
  return std::nullopt;
}

// Returns nothing if ranks sent each other data that they could train with.
std::vector<check::RankTraining> trained_alone(const traces::ScriptRecord& record) {
  std::vector<check::RankTraining> ranks;
  for (const ScriptRank& rank : record.ranks) {
    if (communicates_while_training(rank)) {
      return {};
    }
    if (rank.training.parameters > 0) {
      const traces::ScriptTraining& training = rank.training;
      ranks.push_back(
          {rank.rank, training.parameters, training.steps, training.digest, place_text(rank, training.site)});
    }
  }
  return ranks;
}

// The exception that a rank handled when it last made its call at `site`. Null if none.
const traces::ScriptHandled* handled_at(const ScriptRank& rank, const std::string& site) {
  for (const auto& [call, number] : rank.handling) {
    if (place_text(rank, rank.calls[call].site) == site) {
      return &rank.handled[number];
    }
  }
  return nullptr;
}

// The call that a rank has in a standstill. Null if it has ended, or stands elsewhere.
const Call* call_in(const Report& report, Rank rank) {
  if (const auto* mismatch = std::get_if<Mismatch>(&report.verdict)) {
    const auto own = std::ranges::find_if(
        mismatch->variants, [rank](const Variant& variant) { return variant.ranks.contains(rank); });
    return own == mismatch->variants.end() ? nullptr : &own->call;
  }
  const auto waits = [rank](const Place& place) { return place.waiting.contains(rank); };
  const std::vector<Place>& blocked = std::get<Deadlock>(report.verdict).blocked;
  if (const auto own = std::ranges::find_if(blocked, waits); own != blocked.end()) {
    return &own->call;
  }
  const RankClass& state = report.of(rank);  // `blocked` has not room for all
  return state.state == State::waiting && state.call ? &*state.call : nullptr;
}

std::string named(const traces::ScriptHandled& error) {
  const std::string message = error.message.substr(0, error.message.find('\n'));
  return message.empty() ? error.type : error.type + ": " + message;
}

}  // namespace

std::optional<Verdict> trained_apart(const traces::ScriptRecord& record) {
  if (std::optional<Verdict> apart = replicas_apart(record)) {
    return apart;
  }
  if (began_apart(record)) {
    return std::nullopt;
  }
  return check::judge_training(trained_alone(record), std::ranges::all_of(record.ranks, is_on_cpu));
}

std::string trained_on_their_own(const traces::ScriptRecord& record) {
  const std::size_t alone = trained_alone(record).size();
  if (alone < 2 || !began_apart(record)) {
    return {};
  }
  return fmt::format(
      "warning: no call carried gradients or parameters: {} ranks trained models of their own, from "
      "different values; "
      "if they should be one model, wrap it in DistributedDataParallel",
      alone);
}

std::string trained_alike(const traces::ScriptRecord& record) {
  const std::vector<check::RankTraining> alone = trained_alone(record);
  const auto differs = [&](const check::RankTraining& rank) { return rank.digest != alone.front().digest; };
  if (alone.size() < 2 || std::ranges::any_of(alone, differs)) {
    return {};
  }
  return fmt::format(
      "no call carried gradients or parameters; {} ranks trained the same model on the same data",
      alone.size());
}

std::optional<double> limit_of_waits(const traces::ScriptRecord& record) {
  for (const ScriptRank& rank : record.ranks) {
    const BackendTraits* backend = find_backend_traits(rank.backend);
    const bool goes_on = std::ranges::any_of(rank.events, [&](const traces::ScriptEvent& event) {
      const bool is_last = &event == &rank.events.back();
      return event.was_last_resort && event.message.find("Timed out") != std::string::npos &&
             (!is_last || rank.end.how == ScriptEnd::How::finished);
    });
    if (goes_on && backend != nullptr) {
      return rank.timeout_s > 0 ? rank.timeout_s : static_cast<double>(backend->timeout) / 1e9;
    }
  }
  return std::nullopt;
}

std::optional<std::string> contradiction(const traces::ScriptRecord& record, const Report& run,
                                         const Report& scenario) {
  const bool goes_on = limit_of_waits(record).has_value();
  const bool anybody_failed = std::ranges::any_of(
      record.ranks, [](const ScriptRank& rank) { return recorded_state(rank) == State::raised; });
  for (const ScriptRank& rank : record.ranks) {
    const std::optional<State> recorded = recorded_state(rank);
    const State played = played_state(scenario.of(rank.rank));
    // A rank that waits for one that failed loses its peer; the recorder stops it there.
    const bool gave_up = (goes_on || anybody_failed) && recorded == State::waiting && played == State::raised;
    if (recorded && *recorded != played && !gave_up) {
      return fmt::format("rank {} {}, and in the scenario it {}", rank.rank, word_of(*recorded),
                         word_of(played));
    }
  }
  const std::string_view recorded = verdict_word(run.verdict);
  const std::string_view played = verdict_word(scenario.verdict);
  if (recorded == played || is_about_the_end(scenario.verdict) || is_about_touches(scenario.verdict)) {
    return std::nullopt;
  }
  return fmt::format("the recorded run is \"{}\", and the scenario is \"{}\"", recorded, played);
}

void blame_threads(const traces::ScriptRecord& record, Verdict& verdict) {
  auto* const mismatch = std::get_if<Mismatch>(&verdict);
  if (mismatch == nullptr) {
    return;
  }
  // True if only the main thread, or only others, made the calls of a variant's first rank at the variant's place.
  const auto are_all = [&](const Variant& variant, bool is_aside) {
    const auto rank = std::ranges::find(record.ranks, variant.ranks.first(), &ScriptRank::rank);
    if (rank == record.ranks.end()) {
      return false;
    }
    bool are_some = false;
    for (const traces::ScriptCall& call : rank->calls) {
      if (place_text(*rank, call.site) == variant.call.site) {
        if (call.is_aside != is_aside) {
          return false;
        }
        are_some = true;
      }
    }
    return are_some;
  };
  const std::vector<Variant>& variants = mismatch->variants;
  const auto main = std::ranges::find_if(variants, [&](const Variant& each) { return are_all(each, false); });
  const auto aside = std::ranges::find_if(variants, [&](const Variant& each) { return are_all(each, true); });
  if (main == variants.end() || aside == variants.end()) {
    return;
  }
  Finding& finding = mismatch->finding;
  finding.culprits = {};
  for (const Variant& variant : variants) {
    finding.culprits.insert(variant.ranks);
  }
  finding.tie = true;
  finding.suspects.clear();
  finding.suspicion.clear();
  finding.repair.reset();
  finding.cause = fmt::format(
      "two threads of each rank make calls on {} ({} and {}), and chance decides which of their calls comes "
      "first",
      main->call.group, main->call.site, aside->call.site);
  finding.advice =
      "give each thread a group of its own (new_group), or let one thread make all calls of a group";
}

void blame_exceptions(const traces::ScriptRecord& record, Report& report) {
  auto* const deadlock = std::get_if<Deadlock>(&report.verdict);
  auto* const mismatch = std::get_if<Mismatch>(&report.verdict);
  if (deadlock == nullptr && mismatch == nullptr) {
    return;
  }
  Finding& finding = deadlock != nullptr ? deadlock->finding : mismatch->finding;
  RankSet handling;
  const ScriptRank* shown = nullptr;
  const traces::ScriptHandled* error = nullptr;
  const Call* made = nullptr;
  bool are_others = false;  // that stand there without an exception
  for (const ScriptRank& rank : record.ranks) {
    const Call* const call = call_in(report, rank.rank);
    if (call == nullptr) {
      continue;
    }
    const traces::ScriptHandled* const handled = handled_at(rank, call->site);
    if (handled == nullptr) {
      are_others = true;
      continue;
    }
    handling.insert(rank.rank);
    if (shown == nullptr) {
      shown = &rank;
      error = handled;
      made = call;
    }
  }
  if (shown == nullptr || !are_others || !finding.culprits.contains(handling)) {
    return;
  }
  // Another rank's repair, or none, says less than the exception.
  if (finding.tie || (finding.repair && finding.repair->steps.empty())) {
    finding.repair.reset();
  }
  if (finding.tie) {
    finding.culprits = handling;
    finding.tie = false;
  }
  finding.suspects.clear();
  finding.suspicion.clear();
  const std::string raised_at = place_text(*shown, error->site);
  if (error->type == "StopIteration") {
    finding.cause = fmt::format("{} ran out of inputs at {} (StopIteration), and called {} at {}",
                                ranks_phrase(handling), raised_at, made->op, made->site);
    finding.advice = check::advice_for_iterations(finding.at ? finding.at->call : *made);
    return;
  }
  finding.cause = fmt::format(
      "{} raised {} at {}, and called {} at {} on the way out: in a finally block, an except clause or an "
      "__exit__",
      ranks_phrase(handling), named(*error), raised_at, made->op, made->site);
  finding.advice =
      "fix the exception; make no collective call while one is handled, because the other ranks are "
      "elsewhere; let the rank end, or let all ranks ask after each step whether one has failed (a flag in "
      "an all_reduce)";
}

}  // namespace rollcall::scenario
