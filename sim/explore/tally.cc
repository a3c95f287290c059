#include "sim/explore/tally.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/base/expects.h"

namespace rollcall::sim {
namespace {

std::string place_of(const Finding& finding) {
  if (!finding.at) {
    return {};
  }
  const Call& call = finding.at->call;
  return fmt::format("{} on {} #{} {}", call.op, call.group, call.seq, call.key);
}

// FNV-1a over the deviations.
std::uint64_t hash_of(const Schedule& schedule) {
  std::uint64_t state = 0xcbf29ce484222325;
  const auto add = [&state](std::uint64_t number) { state = (state ^ number) * 0x100000001b3; };
  add(schedule.decisions);
  for (const Deviation& each : schedule.deviations) {
    add(each.index);
    add(each.way);
    state ^= state >> 29;
  }
  return state;
}

}  // namespace

std::vector<Ending>::iterator Tally::find_like(const Ending& ending) {
  return std::ranges::find_if(endings_, [&](const Ending& other) { return other.is_like(ending); });
}

Ending& Tally::entry_for(Ending ending) {
  const auto known = find_like(ending);
  if (known == endings_.end()) {
    return endings_.emplace_back(std::move(ending));
  }
  if (ending.number < known->number) {
    const std::int64_t count = known->count;
    *known = std::move(ending);
    known->count = count;
  }
  return *known;
}

void Tally::count(std::uint64_t number, const Schedule& schedule, const RankSet& deciders,
                  std::uint64_t space, Report report) {
  ++schedules_;
  space_sum_ += static_cast<double>(space);
  seen_.insert(hash_of(schedule));
  const Finding* finding = finding_of(report.verdict);
  Ending ending{.verdict = std::string(verdict_word(report.verdict)),
                .kind = kind_of(report.verdict),
                .place = finding != nullptr ? place_of(*finding) : "",
                .number = number};
  // Most schedules end in a known way, and only the first of those is kept.
  const auto known = find_like(ending);
  if (known != endings_.end() && known->number < number) {
    ++known->count;
    return;
  }
  ending.schedule = schedule;
  ending.deciders = deciders;
  ending.report = std::move(report);
  ++entry_for(std::move(ending)).count;
}

void Tally::merge(Tally other) {
  schedules_ += other.schedules_;
  cut_ += other.cut_;
  space_sum_ += other.space_sum_;
  ended_space_ += other.ended_space_;
  ended_schedules_ += other.ended_schedules_;
  ended_distinct_ += other.ended_distinct_;
  seen_.merge(other.seen_);
  for (Ending& ending : other.endings_) {
    expects(ending.count > 0, "an ending was seen");
    const std::int64_t count = std::exchange(ending.count, 0);
    entry_for(std::move(ending)).count += count;
  }
  std::ranges::sort(endings_, {}, &Ending::number);
}

void Tally::end_search() {
  ended_space_ = space();
  ended_schedules_ = schedules_;
  ended_distinct_ = distinct();
  space_sum_ = 0;
  seen_.clear();
}

double Tally::space() const {
  const std::int64_t counted = schedules_ - ended_schedules_;
  const double estimate = ended_space_ + (counted == 0 ? 0 : space_sum_ / static_cast<double>(counted));
  return std::max({1.0, static_cast<double>(distinct()), estimate});
}

const Ending* Tally::first_failure() const {
  const Ending* first = nullptr;
  for (const Ending& ending : endings_) {
    if (!ending.is_ok() && (first == nullptr || ending.number < first->number)) {
      first = &ending;
    }
  }
  return first;
}

std::vector<Outcome> Tally::outcomes() const {
  std::vector<Outcome> outcomes;
  for (const Ending& ending : endings_) {
    add({ending.verdict, ending.kind, ending.count}, outcomes);
  }
  return outcomes;
}

}  // namespace rollcall::sim
