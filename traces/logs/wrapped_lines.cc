#include "traces/logs/wrapped_lines.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "traces/logs/lines.h"
#include "traces/logs/log_stream.h"

namespace rollcall::traces {

namespace {

// What torch writes in one line: how it begins, the last part that readers want, and a character behind that.
struct Statement {
  std::string_view begin;
  std::string_view last;
  char end;
};

// torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, ProcessGroupWrapper.cpp.
constexpr std::array<Statement, 5> statements = {{
    {"Watchdog caught collective operation timeout:", "Timeout(ms)=", ')'},
    {"Exception (either an error or timeout)", "ast completed ", '.'},
    {"Timeout at NCCL work: ", "ast completed ", '.'},
    {"Received a dump signal due to", "ast completed ", '.'},
    {"Detected mismatch between collectives on ranks", "but Rank ", ')'},
}};

// A line of the watchdog may be cut before the statement begins.
constexpr std::string_view watchdog_header = "ProcessGroupNCCL.cpp:";

bool is_whole(std::string_view line, const Statement& statement) {
  const std::size_t last = line.find(statement.last, std::min(line.find(statement.begin), line.size()));
  return last != std::string_view::npos && line.find(statement.end, last) != std::string_view::npos;
}

bool has_whole(std::string_view line) {
  return std::ranges::any_of(statements, [line](const Statement& each) { return is_whole(line, each); });
}

bool may_be_cut(std::string_view line) {
  const bool has_begin =
      std::ranges::any_of(statements, [line](const Statement& each) { return contains(line, each.begin); });
  return (has_begin || contains(line, watchdog_header)) && !has_whole(line);
}

// The line with as many of the next ones as make it whole, and how many those are. Empty if that is not possible:
// another line begins before.
std::optional<std::pair<std::string, int>> joined(std::string_view line, std::string_view rest,
                                                  std::string_view between) {
  constexpr int wraps_max = 12;
  std::string whole(line);
  Lines lines(rest);
  for (int wraps = 1; wraps <= wraps_max && lines.next(); ++wraps) {
    if (without_blanks(lines.line()).empty() || has_prefix(lines.line())) {
      return std::nullopt;
    }
    whole += between;
    whole += lines.line();
    if (has_whole(whole)) {
      return std::pair(std::move(whole), wraps);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> without_wraps(std::string_view bytes) {
  std::string text;
  std::size_t copied = 0;  // bytes
  for (Lines lines(bytes); lines.next();) {
    if (!may_be_cut(lines.line())) {
      continue;
    }
    // A terminal cuts words, and an editor takes a blank away.
    const std::string_view rest = lines.rest();
    std::optional<std::pair<std::string, int>> whole = joined(lines.line(), rest, "");
    whole = whole ? std::move(whole) : joined(lines.line(), rest, " ");
    if (!whole) {
      continue;
    }
    const std::size_t begin = static_cast<std::size_t>(lines.line().data() - bytes.data());
    text += bytes.substr(copied, begin - copied);
    text += whole->first + '\n';
    for (int wraps = whole->second; wraps > 0 && lines.next(); --wraps) {
      text += '\n';
    }
    copied = bytes.size() - lines.rest().size();
  }
  return copied == 0 ? std::nullopt : std::optional(std::move(text.append(bytes.substr(copied))));
}

}  // namespace rollcall::traces
