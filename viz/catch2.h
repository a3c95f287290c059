#pragma once

// Matchers for Catch2, version 2 or 3, that check reports:
//
//   const Report report = sim::run({.world_size = 4}, train);
//   REQUIRE_THAT(report, IsDeadlock().missing({0}).at("all_reduce", 5));
//   REQUIRE_THAT(report, IsOk() && Printed(0, "loss 0.25"));
//
// If one fails, Catch2 prints the report as `rollcall run` does, the expectations, and the differences.
// For tests: includes Catch2, which has to be on the include path.

#include <string>
#include <utility>
#include <vector>

#if __has_include(<catch2/matchers/catch_matchers.hpp>)
#include <catch2/catch_tostring.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#define ROLLCALL_CATCH_MATCHER_BASE Catch::Matchers::MatcherBase
#else
#include <catch2/catch.hpp>
#define ROLLCALL_CATCH_MATCHER_BASE Catch::MatcherBase
#endif

#include "sim/report/report.h"
#include "sim/report/report_pattern.h"
#include "viz/text/text_report.h"

namespace rollcall {

// Parts without an expectation may have any value.
class ReportMatcher : public ROLLCALL_CATCH_MATCHER_BASE<Report> {
 public:
  explicit ReportMatcher(ReportPattern pattern) : pattern_(std::move(pattern)) {}

  ReportMatcher kind(FindingKind kind) && { return with(&ReportPattern::kind, kind); }
  // The ranks to blame. If the report cannot decide between several sets, those that it lists first.
  ReportMatcher culprits(RankSet ranks) && { return with(&ReportPattern::culprits, std::move(ranks)); }
  // The ranks that have reached the call where the run failed, and those that have not.
  ReportMatcher waiting(RankSet ranks) && { return with(&ReportPattern::waiting, std::move(ranks)); }
  ReportMatcher missing(RankSet ranks) && { return with(&ReportPattern::missing, std::move(ranks)); }
  // That call: "all_reduce", and its number in its group, from 0.
  ReportMatcher at(std::string op) && { return with(&ReportPattern::op, std::move(op)); }
  ReportMatcher at(std::string op, std::int64_t seq) && {
    pattern_.op = std::move(op);
    return with(&ReportPattern::seq, seq);
  }
  ReportMatcher on(std::string group) && { return with(&ReportPattern::group, std::move(group)); }
  // The scopes that the call was issued in: "gradients".
  ReportMatcher in(std::string label) && { return with(&ReportPattern::label, std::move(label)); }
  // Words of the report's first sentence, its cause, or its advice.
  ReportMatcher saying(std::string words) && { return with(&ReportPattern::words, std::move(words)); }

  bool match(const Report& report) const override {
    differences_ = differences(pattern_, report);
    return differences_.empty();
  }

 protected:
  std::string describe() const override {
    std::string text = rollcall::describe(pattern_);
    for (const std::string& difference : differences_) {
      text += "\n  but " + difference;
    }
    return text;
  }

 private:
  template <typename T>
  ReportMatcher with(std::optional<T> ReportPattern::*part, T value) {
    pattern_.*part = std::move(value);
    return ReportMatcher(std::move(pattern_));
  }

  ReportPattern pattern_;
  mutable std::vector<std::string> differences_;  // of the last match; Catch2 asks for the text afterwards
};

inline ReportMatcher HasVerdict(std::string word) { return ReportMatcher({.verdict = std::move(word)}); }
inline ReportMatcher IsOk() { return HasVerdict("ok"); }
inline ReportMatcher IsDeadlock() { return HasVerdict("deadlock"); }
inline ReportMatcher IsMismatch() { return HasVerdict("mismatch"); }
inline ReportMatcher IsDeviceMismatch() { return HasVerdict("device_mismatch"); }
inline ReportMatcher IsWrongResult() { return HasVerdict("wrong_result"); }
inline ReportMatcher IsRace() { return HasVerdict("race"); }
inline ReportMatcher IsResourceLeak() { return HasVerdict("resource_leak"); }
inline ReportMatcher IsRankFailed() { return HasVerdict("rank_failed"); }
inline ReportMatcher IsLimitReached() { return HasVerdict("limit_reached"); }

// A line that any rank, or the given one, printed.
inline ReportMatcher Printed(std::string line) { return ReportMatcher({.printed = {{{}, std::move(line)}}}); }
inline ReportMatcher Printed(Rank rank, std::string line) {
  return ReportMatcher({.printed = {{rank, std::move(line)}}});
}

}  // namespace rollcall

template <>
struct Catch::StringMaker<rollcall::Report> {
  static std::string convert(const rollcall::Report& report) {
    return rollcall::viz::text_report(report, {.detail = rollcall::viz::TextStyle::Detail::normal});
  }
};

#undef ROLLCALL_CATCH_MATCHER_BASE
