#include "traces/logs/job_evidence.h"

#include <algorithm>
#include <array>

#include "sim/base/colors.h"
#include "traces/logs/elastic_log.h"
#include "traces/logs/host_stacks.h"
#include "traces/logs/job_log.h"
#include "traces/logs/kernel_log.h"
#include "traces/logs/nccl_state.h"
#include "traces/logs/python_errors.h"
#include "traces/logs/watch_log.h"

namespace rollcall::traces {

namespace {

using check::LogFact;
using Facts = std::vector<LogFact>;

struct TextReader {
  std::string_view name;
  bool (*fits)(std::string_view bytes);
  Facts (*read)(std::string_view bytes, Rank rank, const std::string& file);
};

constexpr std::array<TextReader, 7> text_readers = {{
    {"log of a job that hung", looks_like_job_log, read_job_log},
    {"Python tracebacks", looks_like_python_errors, read_python_errors},
    {"stacks of py-spy or faulthandler", looks_like_host_stacks, read_host_stacks},
    {"torchrun's summary", looks_like_elastic_summary,
     [](std::string_view bytes, Rank, const std::string& file) { return read_elastic_summary(bytes, file); }},
    {"NCCL_DEBUG_SUBSYS=COLL", looks_like_nccl_calls, read_nccl_calls},
    {"log of rollcall watch", looks_like_watch_log,
     [](std::string_view bytes, Rank, const std::string& file) { return read_watch_log(bytes, file); }},
    {"Xid lines of the kernel", looks_like_kernel_log, read_kernel_log},
}};

struct JsonReader {
  std::string_view name;
  bool (*fits)(const Value& value);
  Facts (*read)(const Value& value, Rank rank, const std::string& file);
};

constexpr std::array<JsonReader, 3> json_readers = {{
    {"torchrun's error.json", looks_like_error_file, read_error_file},
    {"NCCL RAS as JSON", looks_like_ras_json,
     [](const Value& value, Rank, const std::string& file) { return read_ras_json(value, file); }},
    {"NCCL Inspector's records", looks_like_inspector, read_inspector},
}};

// The text without the sequences that color a terminal.
std::string without_colors(std::string_view bytes) {
  std::string plain;
  for (std::size_t place = bytes.find(color_begin); place != std::string_view::npos;
       place = bytes.find(color_begin)) {
    plain += bytes.substr(0, place);
    bytes.remove_prefix(place);
    bytes.remove_prefix(color_length(bytes));
  }
  return plain.append(bytes);
}

}  // namespace

std::vector<std::string_view> evidence_names() {
  std::vector<std::string_view> names;
  for (const TextReader& reader : text_readers) {
    names.push_back(reader.name);
  }
  for (const JsonReader& reader : json_readers) {
    names.push_back(reader.name);
  }
  return names;
}

std::optional<Facts> read_text_evidence(std::string_view bytes, Rank rank, const std::string& file) {
  if (bytes.find('\0') != std::string_view::npos) {
    return std::nullopt;
  }
  const bool is_colored = bytes.find(color_begin) != std::string_view::npos;
  const std::string plain = is_colored ? without_colors(bytes) : std::string();
  const std::string_view text = is_colored ? plain : bytes;
  std::optional<Facts> facts;
  for (const TextReader& reader : text_readers) {
    if (reader.fits(text)) {
      facts = facts ? std::move(facts) : Facts();
      const Facts more = reader.read(text, rank, file);
      facts->insert(facts->end(), more.begin(), more.end());
    }
  }
  return facts;
}

std::optional<Facts> read_json_evidence(const Value& value, Rank rank, const std::string& file) {
  const auto reader = std::find_if(json_readers.begin(), json_readers.end(),
                                   [&value](const JsonReader& each) { return each.fits(value); });
  return reader == json_readers.end() ? std::nullopt : std::optional(reader->read(value, rank, file));
}

bool is_named_like_log(std::string_view path) {
  constexpr std::array<std::string_view, 4> endings = {".log", ".err", ".out", ".stderr"};
  return std::any_of(endings.begin(), endings.end(),
                     [path](std::string_view end) { return path.ends_with(end); });
}

LogFact rank_wrote(Rank rank, const std::string& file) {
  LogFact fact;
  fact.kind = LogFact::Kind::wrote;
  fact.ranks = RankSet{rank};
  fact.place = file;
  return fact;
}

}  // namespace rollcall::traces
