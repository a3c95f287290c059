#include "scenarios/format/expectation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "sim/report/blame.h"
#include "sim/report/report.h"
#include "viz/rows/phrases.h"
#include "viz/rows/rank_profile.h"

namespace rollcall::scenario {
namespace {

using Sentences = std::vector<std::string>;

void compare(Sentences& unmet, std::string_view what, const std::string& expected,
             const std::string& actual) {
  if (expected != actual) {
    unmet.push_back(fmt::format("{}: expected {}, got {}", what, expected, actual.empty() ? "none" : actual));
  }
}

template <typename T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, RankSet>) {
    return to_string(value);
  } else {
    return std::to_string(value);
  }
}

template <typename T>
void compare_if_given(Sentences& unmet, std::string_view what, const std::optional<T>& expected,
                      const T& actual) {
  if (expected) {
    compare(unmet, what, text_of(*expected), text_of(actual));
  }
}

// The ranks to blame: all of them or, if the report cannot decide between several sets, those it lists first.
void compare_culprits(Sentences& unmet, const RankSet& expected, const Verdict& verdict) {
  if (!blames(verdict, expected)) {
    const Finding* finding = finding_of(verdict);
    compare(unmet, "culprits", to_string(expected), finding != nullptr ? to_string(finding->culprits) : "");
  }
}

void compare_place(Sentences& unmet, const Expectation::At& expected, const Finding* finding) {
  if (finding == nullptr || !finding->at) {
    unmet.push_back("at: expected a place where the run failed, got none");
    return;
  }
  const Place& place = *finding->at;
  compare_if_given(unmet, "at.op", expected.op, place.call.op);
  compare_if_given(unmet, "at.group", expected.group, place.call.group);
  compare_if_given(unmet, "at.seq", expected.seq, place.call.seq);
  compare_if_given(unmet, "at.waiting", expected.waiting, place.waiting);
  compare_if_given(unmet, "at.missing", expected.missing, place.missing);
}

using Lines = std::vector<std::string>;

// The first line that differs says enough.
void compare_lines(Sentences& unmet, const std::string& who, const Lines& expected, const Lines& actual) {
  const auto [wanted, got] = std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
  if (wanted == expected.end() && got == actual.end()) {
    return;
  }
  const auto quoted = [](Lines::const_iterator line, const Lines& lines) {
    return line == lines.end() ? std::string("nothing more") : fmt::format("\"{}\"", *line);
  };
  unmet.push_back(fmt::format("prints{}, line {}: expected {}, got {}", who, wanted - expected.begin() + 1,
                              quoted(wanted, expected), quoted(got, actual)));
}

// What programs printed, without warnings.
Lines printed(std::span<const OutputLine> output) {
  Lines lines;
  for (const OutputLine& line : output) {
    if (!line.warning) {
      lines.push_back(line.text);
    }
  }
  return lines;
}

// Reports the first of a set of ranks that printed something else.
void compare_prints(Sentences& unmet, const Expectation::Prints& expected, const Report& report) {
  for (Rank rank : expected.ranks.to_vector()) {
    const std::size_t before = unmet.size();
    // Output is sorted by rank: one rank's lines are neighbors.
    const auto own = std::ranges::equal_range(report.output, rank, {}, &OutputLine::rank);
    compare_lines(unmet, fmt::format(" of rank {}", rank), expected.lines, printed(own));
    if (unmet.size() > before) {
      return;
    }
  }
}

// "3", or "[1, 2, 3]" with the middle of a long list left out.
std::string elements_text(const std::vector<double>& elements) {
  constexpr std::size_t most = 8;
  if (elements.size() == 1) {
    return fmt::format("{}", elements.front());
  }
  const std::size_t shown = std::min(elements.size(), most);
  return fmt::format("[{}{}]",
                     fmt::join(elements.begin(), elements.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < elements.size() ? ", ..." : "");
}

bool holds(const TensorValue& value, const std::vector<double>& expected) {
  if (expected.size() != 1 && static_cast<std::int64_t>(expected.size()) != value.numel) {
    return false;
  }
  const std::size_t count = std::max(value.elements.size(), expected.size());
  for (std::size_t i = 0; i < count; ++i) {
    const double got = value.elements[value.elements.size() == 1 ? 0 : i];
    const double want = expected[expected.size() == 1 ? 0 : i];
    if (got != want && !(std::isnan(got) && std::isnan(want))) {
      return false;
    }
  }
  return value.numel > 0;
}

// Reports the first of a set of ranks that holds something else.
void compare_values(Sentences& unmet, const Expectation::Values& expected, const Report& report) {
  for (Rank rank : expected.ranks.to_vector()) {
    const auto value = std::ranges::find_if(report.values, [&](const TensorValue& each) {
      return each.rank == rank && each.tensor == expected.tensor;
    });
    if (value == report.values.end()) {
      unmet.push_back(
          fmt::format("values of rank {}: expected {} to be {}, but the rank has none when the run ends",
                      rank, expected.tensor, elements_text(expected.elements)));
      return;
    }
    if (!holds(*value, expected.elements)) {
      const std::string size =
          value->numel > 1 && value->elements.size() == 1 ? fmt::format(" x {}", value->numel) : "";
      unmet.push_back(fmt::format("values of rank {}: expected {} to be {}, got {}{}", rank, expected.tensor,
                                  elements_text(expected.elements), elements_text(value->elements), size));
      return;
    }
  }
}

// Calls of one operation by rank.
std::vector<std::int64_t> calls_of(const std::string& op, const Report& report) {
  std::vector<std::int64_t> calls(static_cast<std::size_t>(report.world_size));
  for (const Span& span : report.timeline.spans()) {
    calls[static_cast<std::size_t>(span.rank)] +=
        span.moves_data() && report.timeline.name(span.name) == op ? 1 : 0;
  }
  return calls;
}

void compare_count(Sentences& unmet, const Expectation::Count& expected, const Report& report) {
  const std::vector<std::int64_t> calls = calls_of(expected.op, report);
  if (!expected.ranks) {
    const std::int64_t sum = std::accumulate(calls.begin(), calls.end(), std::int64_t{0});
    compare(unmet, fmt::format("counts: calls of {} by all ranks", expected.op),
            std::to_string(expected.calls), std::to_string(sum));
    return;
  }
  RankSet others;
  std::int64_t first = -1;
  for (Rank rank : expected.ranks->to_vector()) {
    const std::int64_t own = calls[static_cast<std::size_t>(rank)];
    if (own != expected.calls && (first < 0 || own == first)) {
      others.insert(rank);
      first = own;
    }
  }
  if (!others.empty()) {
    compare(unmet,
            fmt::format("counts: calls of {} by {}", expected.op,
                        others.size() == 1 ? ranks_phrase(others) : "each of " + ranks_phrase(others)),
            std::to_string(expected.calls), std::to_string(first));
  }
}

template <typename T>
void compare_bound(Sentences& unmet, std::string_view what, const std::optional<T>& bound, T actual,
                   std::string (*text)(T)) {
  if (bound && actual > *bound) {
    unmet.push_back(fmt::format("{}: expected at most {}, got {}", what, text(*bound), text(actual)));
  }
}

std::string count_text(std::int64_t count) { return std::to_string(count); }

Duration idle_time(const Report& report) {
  Duration idle = 0;
  for (const viz::RankProfile& profile : viz::profile_of(report).ranks) {
    idle += profile.waiting * static_cast<Duration>(profile.ranks.size());
  }
  return idle;
}

void compare_bounds(Sentences& unmet, const Expectation::AtMost& bounds, const Report& report) {
  compare_bound(unmet, "simulated time", bounds.simulated_time, report.simulated_time, viz::duration_phrase);
  if (bounds.shadow_collectives) {
    const std::int64_t shadows = std::ranges::count_if(report.timeline.spans(), &Span::shadow);
    compare_bound(unmet, "shadow collectives", bounds.shadow_collectives, shadows, count_text);
  }
  if (bounds.idle_time) {
    compare_bound(unmet, "idle time of all ranks", bounds.idle_time, idle_time(report), viz::duration_phrase);
  }
}

}  // namespace

bool Expectation::needs_timeline() const {
  return !counts.empty() || !golden.empty() || at_most.shadow_collectives || at_most.idle_time;
}

std::vector<std::string> unmet(const Expectation& expectation, const Report& report) {
  Sentences unmet;
  const Finding* finding = finding_of(report.verdict);
  compare(unmet, "verdict", expectation.verdict, std::string(verdict_word(report.verdict)));
  if (expectation.verdict == "race" && finding == nullptr && !report.search) {
    unmet.back() += "; `rollcall test` and `rollcall explore` also try schedules other than this one";
  }
  if (const FindingKind kind = kind_of(report.verdict);
      expectation.kind && !are_same_fault(*expectation.kind, kind)) {
    compare(unmet, "kind", std::string(to_string(*expectation.kind)),
            kind == FindingKind::ok ? "" : std::string(to_string(kind)));
  }
  if (expectation.culprits) {
    compare_culprits(unmet, *expectation.culprits, report.verdict);
  }
  if (expectation.at) {
    compare_place(unmet, *expectation.at, finding);
  }
  if (expectation.output) {
    compare_lines(unmet, "", *expectation.output, printed(report.output));
  }
  for (const Expectation::Prints& prints : expectation.prints) {
    compare_prints(unmet, prints, report);
  }
  for (const Expectation::Count& count : expectation.counts) {
    compare_count(unmet, count, report);
  }
  if (!report.measured) {
    for (const Expectation::Values& values : expectation.values) {
      compare_values(unmet, values, report);
    }
    compare_bounds(unmet, expectation.at_most, report);
  }
  return unmet;
}

}  // namespace rollcall::scenario
