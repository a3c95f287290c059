#pragma once

// ReportPattern: the expected contents of a report. An absent field matches anything. viz/catch2.h makes matchers of
// it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/report.h"

namespace rollcall {

struct ReportPattern {
  // A line that a rank printed.
  struct Line {
    std::optional<Rank> rank{};
    std::string text;  // the whole line
  };

  std::optional<std::string> verdict{};  // "ok", "deadlock", ...
  std::optional<FindingKind> kind{};
  std::optional<RankSet> culprits{};
  std::optional<RankSet> waiting{};
  std::optional<RankSet> missing{};
  std::optional<std::string> op{};  // of the call where the ranks diverged
  std::optional<std::string> group{};
  std::optional<std::int64_t> seq{};
  std::optional<std::string> label{};
  std::optional<std::string> words{};  // in the report's headline, cause or advice
  std::vector<Line> printed{};
};

// How `report` differs, a few words each: "culprits: rank 1". Empty when it matches.
std::vector<std::string> differences(const ReportPattern& pattern, const Report& report);

// `is "deadlock" at all_reduce #5 on world, missing rank 0`.
std::string describe(const ReportPattern& pattern);

}  // namespace rollcall
