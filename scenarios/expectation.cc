#include "scenarios/expectation.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/report/report.h"

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

// The ranks to blame: all of them, or, where the report cannot decide between more, those it lists first.
void compare_culprits(Sentences& unmet, const RankSet& expected, const Verdict& verdict) {
  const Finding* finding = finding_of(verdict);
  const RankSet actual = finding != nullptr ? finding->culprits : RankSet();
  if (finding != nullptr && actual.size() > expected.size() && is_undecided(verdict)) {
    std::vector<Rank> first = finding->suspects.empty() ? actual.to_vector() : finding->suspects;
    first.resize(expected.size());
    if (RankSet::of(first) == expected) {
      return;
    }
  }
  compare(unmet, "culprits", to_string(expected), to_string(actual));
}

void compare_place(Sentences& unmet, const Expectation::At& expected, const Finding* finding) {
  if (finding == nullptr || !finding->at) {
    unmet.push_back("at: expected a place where the run came apart, got none");
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

// Output is sorted by rank: one rank's lines are neighbours.
Lines lines_of(const Report& report, Rank rank) {
  auto line = std::lower_bound(report.output.begin(), report.output.end(), rank,
                               [](const OutputLine& a, Rank b) { return a.rank < b; });
  Lines lines;
  for (; line != report.output.end() && line->rank == rank; ++line) {
    if (!line->warning) {
      lines.push_back(line->text);
    }
  }
  return lines;
}

Lines all_lines(const Report& report) {
  Lines lines;
  for (const OutputLine& line : report.output) {
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
    compare_lines(unmet, fmt::format(" of rank {}", rank), expected.lines, lines_of(report, rank));
    if (unmet.size() > before) {
      return;
    }
  }
}

}  // namespace

bool is_undecided(const Verdict& verdict) {
  const Finding* finding = finding_of(verdict);
  const auto* deadlock = std::get_if<Deadlock>(&verdict);
  return finding != nullptr &&
         (finding->tie || !finding->suspects.empty() || (deadlock != nullptr && !deadlock->circle.empty()));
}

std::vector<std::string> unmet(const Expectation& expectation, const Report& report) {
  Sentences unmet;
  const Finding* finding = finding_of(report.verdict);
  compare(unmet, "verdict", expectation.verdict, std::string(verdict_word(report.verdict)));
  compare_if_given(unmet, "kind", expectation.kind, finding != nullptr ? finding->kind : std::string());
  if (expectation.culprits) {
    compare_culprits(unmet, *expectation.culprits, report.verdict);
  }
  if (expectation.at) {
    compare_place(unmet, *expectation.at, finding);
  }
  if (expectation.output) {
    compare_lines(unmet, "", *expectation.output, all_lines(report));
  }
  for (const Expectation::Prints& prints : expectation.prints) {
    compare_prints(unmet, prints, report);
  }
  return unmet;
}

}  // namespace rollcall::scenario
