#include "scenarios/run/source_lines.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "viz/rows/source_rows.h"

namespace rollcall::scenario {

namespace {

namespace fs = std::filesystem;

// Takes ":12" from the end; returns 0 if there is none.
std::int64_t take_number(std::string_view& text) {
  const std::size_t colon = text.rfind(':');
  std::int64_t number = 0;
  if (colon == std::string_view::npos) {
    return 0;
  }
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, number);
  if (error != std::errc() || stop != end || number <= 0) {
    return 0;
  }
  text.remove_suffix(text.size() - colon);
  return number;
}

constexpr std::int64_t lines_max = 100'000;

// The lines of the file up to that one, as no more need to be read; empty if it has fewer.
std::vector<std::string> lines_until(const fs::path& file, std::int64_t number) {
  std::error_code error;
  std::vector<std::string> lines;
  if (number <= 0 || number > lines_max || !fs::is_regular_file(file, error)) {
    return lines;
  }
  std::ifstream in(file);
  in.exceptions(
      std::ios::badbit);  // otherwise a stream takes an allocation that fails for the end of its file
  std::string line;
  try {
    while (static_cast<std::int64_t>(lines.size()) < number && std::getline(in, line)) {
      lines.push_back(line);
    }
  } catch (const std::ios::failure&) {
    return {};  // the file cannot be read
  }
  return static_cast<std::int64_t>(lines.size()) == number ? lines : std::vector<std::string>();
}

// The last of them, if it has anything to show.
std::optional<std::string> shown(const std::vector<std::string>& lines) {
  constexpr std::size_t length_max = 10'000;
  if (lines.empty()) {
    return std::nullopt;
  }
  std::string line = lines.back();
  if (line.ends_with('\r')) {
    line.pop_back();
  }
  const bool is_text = line.size() <= length_max && line.find('\0') == std::string::npos;
  return is_text && line.find_first_not_of(" \t") != std::string::npos ? std::optional(line) : std::nullopt;
}

// The paths at which a file of another machine may be on this one, the likeliest first.
std::vector<fs::path> paths_of(const fs::path& file) {
  std::vector<fs::path> paths = {file};
  for (auto from = file.begin(); from != file.end(); ++from) {
    fs::path rest;
    for (auto part = from; part != file.end(); ++part) {
      rest /= *part;
    }
    if (rest.is_relative() && rest != file) {
      paths.push_back(rest);
    }
  }
  return paths;
}

std::size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

// True if the last line is in Python's function of that name: the last `def` above it with less indentation.
bool ends_in(const std::vector<std::string>& lines, std::string_view function) {
  std::vector<std::pair<std::size_t, std::string_view>> around;  // indentation and name of open functions
  for (const std::string& line : lines) {
    const std::size_t indent = indentation(line);
    if (indent == line.size() || line[indent] == '#' || line[indent] == ')') {
      continue;  // closes nothing
    }
    while (!around.empty() && around.back().first >= indent) {
      around.pop_back();
    }
    std::string_view text = std::string_view(line).substr(indent);
    text.remove_prefix(text.starts_with("async ") ? 6 : 0);
    if (text.starts_with("def ") && &line != &lines.back()) {
      around.emplace_back(indent, text.substr(4, text.find_first_of("( ", 4) - 4));
    }
  }
  return around.empty() ? function == "<module>" : around.back().second == function;
}

// The line at a place. A brace that is alone on its line says nothing: what follows it says what the statement is.
std::optional<SourceLine> read_line(const std::string& site, const fs::path& path,
                                    const viz::SourcePlace& place) {
  const std::optional<std::string> text = shown(lines_until(path, place.line));
  if (!text) {
    return std::nullopt;
  }
  const auto brace = static_cast<std::size_t>(std::max<std::int64_t>(place.column - 1, 0));
  const bool is_alone =
      text->find('{') == brace && text->find_first_not_of(" \t", brace + 1) == std::string::npos;
  const std::optional<std::string> next = is_alone ? shown(lines_until(path, place.line + 1)) : std::nullopt;
  return next ? SourceLine{site, path.string(), place.line + 1,
                           static_cast<std::int64_t>(indentation(*next)) + 1, *next}
              : SourceLine{site, path.string(), place.line, place.column, *text};
}

std::optional<SourceLine> read_line(const std::string& site, const fs::path& file) {
  const viz::SourcePlace place = place_of_site(site);
  if (place.line == 0) {
    return std::nullopt;
  }
  const fs::path named(place.file);
  if (named == file.filename()) {
    return read_line(site, file, place);
  }
  for (const fs::path& path : {named, file.parent_path() / named}) {
    if (std::optional<SourceLine> line = read_line(site, path, place)) {
      return line;
    }
  }
  return std::nullopt;
}

}  // namespace

viz::SourcePlace place_of_site(std::string_view site) {
  const std::int64_t last = take_number(site);
  const std::int64_t first = take_number(site);
  const bool has_column = first > 0;
  return {std::string(site), has_column ? first : last, has_column ? last : 0};
}

void read_sources(Diagnosis& diagnosis) {
  diagnosis.sources.clear();
  for (const Call& call : viz::calls_to_show(diagnosis)) {
    const viz::SourcePlace place = place_of_site(call.site);
    for (const fs::path& path : paths_of(place.file)) {
      const std::vector<std::string> lines = lines_until(path, place.line);
      if (!lines.empty() && ends_in(lines, call.label)) {
        if (const std::optional<std::string> text = shown(lines)) {
          diagnosis.sources.push_back({call.site, path.string(), place.line, place.column, *text});
        }
        break;
      }
    }
  }
}

void read_sources(Report& report, const fs::path& file) {
  report.sources.clear();
  for (const std::string& site : viz::sites_to_show(report.verdict)) {
    if (std::optional<SourceLine> line = read_line(site, file)) {
      report.sources.push_back(std::move(*line));
    }
  }
}

}  // namespace rollcall::scenario
