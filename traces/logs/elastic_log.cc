#include "traces/logs/elastic_log.h"

#include <fmt/core.h>

#include "traces/logs/lines.h"
#include "traces/logs/python_errors.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

using check::LogFact;

constexpr std::string_view root_cause = "Root Cause (first observed failure):";

}  // namespace

// {"message": {"message": "ValueError: ...", "extraInfo": {"py_callstack": "Traceback ...", "timestamp": "..."}}}
bool looks_like_error_file(const Value& value) {
  const Value* message = find(value, "message");
  return message != nullptr && find(*message, "extraInfo") != nullptr;
}

std::vector<LogFact> read_error_file(const Value& value, Rank rank, const std::string& file) {
  const Value& message = *find(value, "message");
  const Value* extra = find(message, "extraInfo");
  const std::string_view stack = text_or_empty(find(*extra, "py_callstack"));
  std::vector<LogFact> facts = read_python_errors(stack, rank, file);
  for (LogFact& fact : facts) {
    fact.place = file;
  }
  const std::string_view text = text_or_empty(find(message, "message"));
  const auto kind = kind_of_error(text);
  if (facts.empty() && kind && rank >= 0 && !text.empty()) {
    LogFact& fact = facts.emplace_back();
    fact.kind = *kind;
    fact.ranks = RankSet{rank};
    fact.text = text;
    fact.place = file;
  }
  return facts;
}

bool looks_like_elastic_summary(std::string_view bytes) {
  return bytes.find(root_cause) != std::string_view::npos;
}

// "Root Cause (first observed failure):\n[0]:\n  rank      : 2 (local_rank: 2)\n  exitcode  : 1 (pid: 1)", followed by
// the traceback, whose last line is the error. Its other lines are indented further.
std::vector<LogFact> read_elastic_summary(std::string_view bytes, const std::string& file) {
  std::vector<LogFact> facts;
  Lines lines(bytes);
  bool is_inside = false;
  bool is_in_traceback = false;
  while (lines.next()) {
    const std::string_view line = lines.line();
    const std::string_view text = without_blanks(line);
    if (text.starts_with(root_cause)) {
      is_inside = true;
      is_in_traceback = false;
      LogFact& fact = facts.emplace_back();
      fact.kind = LogFact::Kind::first_to_fail;
      fact.place = fmt::format("{}:{}", file, lines.number());
    } else if (is_inside && text.starts_with("===")) {
      is_inside = false;
    } else if (is_inside && is_in_traceback) {
      if (line.starts_with("  ") && !line.starts_with("   ") && !text.empty()) {
        facts.back().text = text;
      }
    } else if (is_inside && text.starts_with("rank") && text.find(':') != std::string_view::npos) {
      if (const auto rank = rank_after(text, ": ")) {
        facts.back().ranks = RankSet{*rank};
      }
    } else if (is_inside && text.starts_with("exitcode")) {
      facts.back().text = fmt::format(
          "exit code {}", without_blanks(text.substr(std::min(text.find(':'), text.size() - 1) + 1)));
    }
    is_in_traceback = is_in_traceback || (is_inside && text.starts_with("traceback"));
  }
  std::erase_if(facts, [](const LogFact& fact) { return fact.ranks.empty() || fact.text.empty(); });
  return facts;
}

}  // namespace rollcall::traces
