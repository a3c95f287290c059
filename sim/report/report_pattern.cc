#include "sim/report/report_pattern.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "sim/report/blame.h"

namespace rollcall {
namespace {

using Lines = std::vector<std::string>;

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

std::string or_none(std::string_view text) { return text.empty() ? "none" : std::string(text); }

template <typename T>
void compare(Lines& found, std::string_view what, const std::optional<T>& wanted, const T& actual,
             const std::string& actual_text) {
  if (wanted && *wanted != actual) {
    found.push_back(fmt::format("{}: {}", what, actual_text));
  }
}

// Without a finding, or with one that has no place, every expectation about the place differs.
void compare_place(Lines& found, const ReportPattern& pattern, const Finding* finding) {
  const bool has_place = finding != nullptr && finding->at;
  Place place;
  place.call.seq = -1;
  if (has_place) {
    place = *finding->at;
  }
  compare(found, "waiting", pattern.waiting, place.waiting, ranks_phrase(place.waiting));
  compare(found, "missing", pattern.missing, place.missing, ranks_phrase(place.missing));
  compare(found, "call", pattern.op, place.call.op, or_none(place.call.op));
  compare(found, "group", pattern.group, place.call.group, or_none(place.call.group));
  compare(found, "number of the call", pattern.seq, place.call.seq,
          has_place ? fmt::format("#{}", place.call.seq) : "none");
  compare(found, "label", pattern.label, place.call.label, or_none(place.call.label));
}

bool says(const Finding* finding, const std::string& words) {
  const auto has = [&words](const std::string& text) { return text.find(words) != std::string::npos; };
  return finding != nullptr && (has(finding->headline) || has(finding->cause) || has(finding->advice));
}

bool printed(const Report& report, const ReportPattern::Line& wanted) {
  return std::ranges::any_of(report.output, [&wanted](const OutputLine& line) {
    return !line.warning && line.text == wanted.text && line.rank == wanted.rank.value_or(line.rank);
  });
}

std::string who_prints(const ReportPattern::Line& line) {
  return line.rank ? fmt::format("rank {}", *line.rank) : "a rank";
}

std::string wanted_verdict(const std::optional<std::string>& verdict) {
  if (!verdict) {
    return "";
  }
  std::string words = *verdict;
  std::ranges::replace(words, '_', ' ');
  return "is " + quoted(words);
}

// " at all_reduce #5 on world", or as much of it as is given.
std::string place_phrase(const ReportPattern& pattern) {
  std::string text;
  if (pattern.op || pattern.seq) {
    text += " at " + pattern.op.value_or("call");
  }
  if (pattern.seq) {
    text += fmt::format(" #{}", *pattern.seq);
  }
  if (pattern.group) {
    text += " on " + *pattern.group;
  }
  return text;
}

}  // namespace

std::vector<std::string> differences(const ReportPattern& pattern, const Report& report) {
  Lines found;
  const Finding* finding = finding_of(report.verdict);
  const std::string verdict(verdict_word(report.verdict));
  const FindingKind kind = kind_of(report.verdict);
  compare(found, "verdict", pattern.verdict, verdict, verdict);
  compare(found, "kind", pattern.kind, kind, finding != nullptr ? std::string(to_string(kind)) : "none");
  if (pattern.culprits && !blames(report.verdict, *pattern.culprits)) {
    found.push_back("culprits: " + (finding != nullptr ? ranks_phrase(finding->culprits) : "none"));
  }
  compare_place(found, pattern, finding);
  if (pattern.words && !says(finding, *pattern.words)) {
    found.push_back("does not say " + quoted(*pattern.words));
  }
  for (const ReportPattern::Line& line : pattern.printed) {
    if (!printed(report, line)) {
      found.push_back(line.rank ? fmt::format("{} printed no line {}", who_prints(line), quoted(line.text))
                                : fmt::format("no rank printed the line {}", quoted(line.text)));
    }
  }
  return found;
}

std::string describe(const ReportPattern& pattern) {
  std::string text = wanted_verdict(pattern.verdict) + place_phrase(pattern);
  const auto add = [&text](std::string_view what, const std::string& value) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, value);
  };
  if (pattern.kind) {
    add("of kind", std::string(to_string(*pattern.kind)));
  }
  if (pattern.culprits) {
    add("the fault of", ranks_phrase(*pattern.culprits));
  }
  if (pattern.missing) {
    add("missing", ranks_phrase(*pattern.missing));
  }
  if (pattern.waiting) {
    add("waiting", ranks_phrase(*pattern.waiting));
  }
  if (pattern.label) {
    add("in", *pattern.label);
  }
  if (pattern.words) {
    add("saying", quoted(*pattern.words));
  }
  for (const ReportPattern::Line& line : pattern.printed) {
    add(who_prints(line) + " printed", quoted(line.text));
  }
  return text;
}

}  // namespace rollcall
