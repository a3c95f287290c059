#include "viz/rows/verdict_parts.h"

#include <algorithm>

#include <fmt/core.h>

#include "viz/rows/phrases.h"

namespace rollcall::viz {

const std::vector<Variant>* variants_of(const Verdict& verdict) {
  if (const auto* mismatch = std::get_if<Mismatch>(&verdict)) {
    return &mismatch->variants;
  }
  if (const auto* wrong = std::get_if<WrongResult>(&verdict)) {
    return &wrong->variants;
  }
  if (const auto* race = std::get_if<Race>(&verdict)) {
    return &race->variants;
  }
  if (const auto* leak = std::get_if<ResourceLeak>(&verdict)) {
    return &leak->calls;
  }
  if (const auto* mismatch = std::get_if<DeviceMismatch>(&verdict)) {
    return &mismatch->variants;
  }
  return nullptr;
}

const std::vector<TensorPlace>* tensors_of(const Verdict& verdict) {
  if (const auto* wrong = std::get_if<WrongResult>(&verdict)) {
    return &wrong->values;
  }
  if (const auto* race = std::get_if<Race>(&verdict)) {
    return &race->touched;
  }
  return nullptr;
}

const std::vector<Outcome>* outcomes_of(const Verdict& verdict) {
  const auto* race = std::get_if<Race>(&verdict);
  return race != nullptr ? &race->outcomes : nullptr;
}

namespace {

// The first variant with a site that only culprits made; otherwise (Join's own calls have no site) the first with any
// site.
const Variant* odd_variant(const std::vector<Variant>& variants, const RankSet& culprits) {
  const Variant* any = nullptr;
  for (const Variant& variant : variants) {
    if (variant.call.site.empty()) {
      continue;
    }
    if (culprits.contains(variant.ranks)) {
      return &variant;
    }
    any = any == nullptr ? &variant : any;
  }
  return any;
}

}  // namespace

std::string place_to_look(const Verdict& verdict) {
  const Finding* finding = finding_of(verdict);
  if (finding == nullptr) {
    return {};
  }
  std::string place = finding->at ? finding->at->call.site : "";
  const std::vector<TensorPlace>* tensors = tensors_of(verdict);
  if (tensors != nullptr && !tensors->empty()) {
    place = tensors->front().site;
  }
  const std::vector<Variant>* variants =
      finding->first_divergence ? &finding->first_divergence->variants : variants_of(verdict);
  if (variants != nullptr && !finding->tie) {
    const Variant* odd = odd_variant(*variants, finding->culprits);
    place = odd != nullptr ? odd->call.site : place;
  }
  return place;
}

std::optional<Slot> broken_slot(const Verdict& verdict) {
  const Finding* finding = finding_of(verdict);
  if (finding == nullptr) {
    return std::nullopt;
  }
  if (finding->first_divergence) {
    return Slot{finding->first_divergence->group, finding->first_divergence->seq};
  }
  return finding->at ? std::optional(Slot{finding->at->call.group, finding->at->call.seq}) : std::nullopt;
}

namespace {

struct TouchWords {
  FindingKind kind;
  std::string_view done;
  std::string_view title;
};

constexpr TouchWords touch_words[] = {
    {FindingKind::read_before_wait, "read", "Read too early"},
    {FindingKind::write_before_wait, "written", "Written too early"},
    {FindingKind::free_before_wait, "freed", "Freed too early"},
};

const TouchWords* words_of_touch(FindingKind kind) {
  const auto* const words = std::ranges::find(touch_words, kind, &TouchWords::kind);
  return words == std::end(touch_words) ? nullptr : words;
}

}  // namespace

std::string tensor_phrase(const TensorPlace& place, FindingKind kind) {
  if (!place.want.empty()) {
    return fmt::format("{} is {}, expected {}", place.tensor, place.got, place.want);
  }
  const TouchWords* words = words_of_touch(kind);
  const std::string before =
      !place.ordered.empty()
          ? fmt::format(" on stream '{}' before it waits for stream '{}'", place.unordered, place.ordered)
      : place.handle.empty() ? ""
                             : fmt::format(" before '{}' is waited for", place.handle);
  return fmt::format("'{}' {}{}{}", place.tensor, words == nullptr ? "used" : words->done,
                     place.by.empty() ? "" : " by " + place.by, before);
}

std::string_view tensors_title(FindingKind kind) {
  const TouchWords* words = words_of_touch(kind);
  return words == nullptr ? "Values" : words->title;
}

std::string timing_phrase(const Report& report) {
  const std::vector<Outcome>* outcomes = outcomes_of(report.verdict);
  const bool varies = outcomes != nullptr && outcomes->size() > 1;
  const std::string schedules = count_phrase(report.schedules, "schedule");
  if (report.measured) {
    return "not judged: real ranks ran once";
  }
  if (!report.exhaustive) {
    return fmt::format("{}{}; the search was not exhaustive",
                       varies ? "timing decides the outcome: seen in " : "seen in ", schedules);
  }
  if (varies) {
    return fmt::format("timing decides the outcome: {} were run, and there are no others", schedules);
  }
  return std::holds_alternative<Race>(report.verdict)
             ? "the values depend on timing; every schedule gives this verdict"
             : "nothing depends on timing: every schedule gives this verdict";
}

namespace {

// "3 x ok, 1 x deadlock (missing_participant)"
std::string counted_phrase(const std::vector<Outcome>& outcomes) {
  std::string text;
  for (const Outcome& outcome : outcomes) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", outcome.count,
                        verdict_phrase(outcome.verdict, outcome.kind));
  }
  return text;
}

}  // namespace

std::string outcomes_phrase(const Report& report) {
  const std::vector<Outcome>* all = outcomes_of(report.verdict);
  const std::string text = all == nullptr ? "" : counted_phrase(*all);
  return text.empty() || report.exhaustive ? text : text + "; the search was not exhaustive";
}

std::string search_phrase(const Report& report, const SearchResult& search) {
  if (report.schedules == 0) {
    return "none";
  }
  const std::string text = counted_phrase(search.outcomes);
  if (report.exhaustive) {
    return text + (report.schedules == 1 ? "; nothing depends on timing" : "; the search was exhaustive");
  }
  return fmt::format("{}; about {:.3g} {} possible", text, search.space,
                     search.space == 1 ? "schedule is" : "schedules are");
}

std::string repair_phrase(const Finding& finding, std::string_view proof) {
  if (!finding.repair) {
    return {};
  }
  constexpr std::size_t steps_max = 3;
  const std::vector<RepairStep>& steps = finding.repair->steps;
  if (steps.empty()) {
    const Repair& none = *finding.repair;
    return none.search == Repair::Search::too_large
               ? "none was searched for: the job is too large"
               : fmt::format("none was found; {} tried{}",
                             none.tried == 1 ? "one change was" : fmt::format("{} changes were", none.tried),
                             none.search == Repair::Search::cut_short ? ", and there are more" : "");
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(steps.size(), steps_max); ++i) {
    const RepairStep& step = steps[i];
    text += fmt::format("{}{} {}{}", i == 0 ? "let " : "; ", ranks_phrase(step.ranks), step.text,
                        step.times > 1 ? fmt::format(" ({} times)", step.times) : "");
  }
  if (steps.size() > steps_max) {
    const std::size_t more = steps.size() - steps_max;
    text += fmt::format("; and {} more {}", more, more == 1 ? "change" : "changes");
  }
  text += fmt::format(". With that, {}", proof);
  if (finding.repair->alternatives > 0) {
    text += ". Changing other ranks instead would also work";
  }
  return text;
}

std::string run_proof(const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  const bool is_partial = finding != nullptr && finding->repair && finding->repair->is_partial;
  return fmt::format(
      "{} {}", report.world_size == 2 ? "both ranks" : fmt::format("all {} ranks", report.world_size),
      is_partial
          ? "reach the end of their recorded calls (a run confirmed it). What they would do next is unknown"
          : "finish (a run confirmed it)");
}

std::string tie_phrase(const Finding& finding) {
  return finding.suspicion.empty() ? "no side has a majority, so every rank involved is named"
                                   : "no side has a majority; most likely: " + finding.suspicion;
}

}  // namespace rollcall::viz
