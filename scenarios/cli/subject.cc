#include "scenarios/cli/subject.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "scenarios/cli/cli.h"
#include "scenarios/format/cases.h"
#include "sim/base/expects.h"
#include "traces/formats/trace_reader.h"
#include "traces/logs/json_lines.h"

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;

struct SubjectRow {
  Subject subject;
  std::string_view noun;
  std::string_view command;  // written before the path; empty if there is none
  std::string_view effect;   // what the command does
};

// The user may choose a script's number of ranks; four show most mistakes.
constexpr std::array<SubjectRow, 9> rows = {{
    {Subject::scenario, "a scenario", "run", "simulates it"},
    {Subject::scenarios, "a directory of scenarios", "test", "runs them as tests"},
    {Subject::script, "a Python script", "record -n 4", "runs it on 4 simulated ranks"},
    {Subject::dumps, "what a job left behind", "diagnose", "finds the culprit"},
    {Subject::trace, "a trace", "view", "writes it as a page"},
    {Subject::report, "a report of rollcall", "view", "writes it as a page"},
    {Subject::page, "a page for a browser", "", ""},
    {Subject::nothing, "a directory without files", "", ""},
    {Subject::times, "a table of measured times", "slow", "looks for what is slow"},
}};

const SubjectRow& row_of(Subject subject) {
  const auto row = std::ranges::find(rows, subject, &SubjectRow::subject);
  expects(row != rows.end(), "every subject has a row");
  return *row;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool says_trace(std::string_view start) { return has(start, "\"traceEvents\""); }

bool says_dump(std::string_view start) {
  return start.starts_with('\x80') || has(start, "\"pg_config\"") || has(start, "\"pg_status\"");
}

bool says_scenario(std::string_view start) { return has(start, "\"program\"") || has(start, "\"programs\""); }

bool says_times(std::string_view start) {
  return has(start, "\"rollcall_timings\"") || has(start, "COMMS-RES-") ||
         (has(start, "algbw") && has(start, "busbw"));
}

// Only our own JSON files have comments.
Subject subject_of_json(std::string_view start) {
  if (says_trace(start)) {
    return Subject::trace;
  }
  if (says_dump(start)) {
    return Subject::dumps;
  }
  if (has(start, "\"schema_version\"") && has(start, "\"verdict\"")) {
    return Subject::report;
  }
  if (says_times(start)) {
    return Subject::times;
  }
  if (says_scenario(start)) {
    return Subject::scenario;
  }
  const bool has_evidence = has(start, "\"entries\"") || traces::unpack_json_lines(start);
  return has_evidence ? Subject::dumps : Subject::scenario;
}

bool is_python(const fs::path& path, std::string_view start) {
  const std::string_view first = start.substr(0, start.find('\n'));
  return path.extension() == ".py" || (first.starts_with("#!") && has(first, "python"));
}

// Logs may begin with a bracket or a brace as well: "[rank1]: ...", "[2026-11-23 ...", "{'loss': 0.3}".
bool begins_as_json(std::string_view start) {
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t first = start.find_first_not_of(blank);
  if (first == start.npos || (start[first] != '[' && start[first] != '{')) {
    return first != start.npos && start[first] == '/';
  }
  const std::size_t second = start.find_first_not_of(blank, first + 1);
  if (start[first] == '{') {  // a log may begin with a dictionary of Python: {'loss': 0.3}
    return second == start.npos || start[second] != '\'';
  }
  return second != start.npos && std::string_view("{[\"]").find(start[second]) != std::string_view::npos;
}

Subject subject_of_file(const fs::path& path) {
  const std::string start = traces::beginning_of(path.string());
  const std::string extension = path.extension().string();
  if (extension == ".html") {
    return Subject::page;
  }
  if (is_python(path, start)) {
    return Subject::script;
  }
  const bool is_json = extension == ".json" || extension == ".jsonc" || begins_as_json(start);
  if (start.empty() || is_json) {
    return subject_of_json(start);
  }
  return says_times(start) ? Subject::times : Subject::dumps;
}

bool is_scenario_file(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.is_regular_file(error) && entry.path().extension() == ".json" &&
         says_scenario(traces::beginning_of(entry.path().string()));
}

// A directory of ranks' files has one kind; scenarios may also be below.
Subject subject_of_directory(const std::string& path) {
  std::error_code error;
  bool has_dump = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    const std::string start = traces::beginning_of(entry.path().string());
    if (says_trace(start)) {
      return Subject::trace;
    }
    has_dump = has_dump || says_dump(start);
  }
  if (error) {
    throw UsageError(fmt::format("cannot list '{}': {}", path, error.message()));
  }
  if (has_dump) {
    return Subject::dumps;
  }
  bool has_file = false;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, error)) {
    if (is_scenario_file(entry)) {
      return Subject::scenarios;
    }
    has_file = has_file || !entry.is_directory(error);
  }
  return has_file ? Subject::dumps : Subject::nothing;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

Subject subject_of(const std::string& path) {
  std::error_code missing;
  const std::string file = scenario::parse_address(path).file;
  return fs::is_directory(file, missing) ? subject_of_directory(file) : subject_of_file(file);
}

std::string_view noun_of(Subject subject) { return row_of(subject).noun; }

std::vector<std::string> command_for(Subject subject, const std::string& path) {
  std::vector<std::string> words = split_words(row_of(subject).command);
  if (!words.empty()) {
    words.push_back(path);
  }
  return words;
}

std::string advice_on(Subject subject, const std::string& path) {
  const SubjectRow& row = row_of(subject);
  return row.command.empty()
             ? std::string(row.noun)
             : fmt::format("{}; `rollcall {} {}` {}", row.noun, row.command, path, row.effect);
}

void require_scenario(const std::string& address) {
  const std::string file = scenario::parse_address(address).file;
  std::error_code missing;
  if (!fs::exists(file, missing)) {
    return;
  }
  if (const Subject subject = subject_of(file); subject != Subject::scenario) {
    throw UsageError(fmt::format("'{}' is not a scenario but {}", file, advice_on(subject, file)));
  }
}

}  // namespace rollcall::cli
