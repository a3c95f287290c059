#include "traces/logs/job_evidence.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "sim/base/colors.h"
#include "traces/logs/elastic_log.h"
#include "traces/logs/host_stacks.h"
#include "traces/logs/job_log.h"
#include "traces/logs/json_lines.h"
#include "traces/logs/kernel_log.h"
#include "traces/logs/lines.h"
#include "traces/logs/nccl_counters.h"
#include "traces/logs/nccl_warnings.h"
#include "traces/logs/python_errors.h"
#include "traces/logs/store_barrier_log.h"
#include "traces/logs/watch_log.h"
#include "traces/logs/wrapped_lines.h"

namespace rollcall::traces {

namespace {

using check::LogFact;
using Facts = std::vector<LogFact>;

struct TextReader {
  std::string_view name;
  bool (*fits)(std::string_view bytes);
  Facts (*read)(const LogStream& log);
};

constexpr std::array<TextReader, 10> text_readers = {{
    {"log of a job that hung", looks_like_job_log, read_job_log},
    {"Python tracebacks", looks_like_python_errors, read_python_errors},
    {"stacks of py-spy or faulthandler", looks_like_host_stacks, read_host_stacks},
    {"torchrun's summary", looks_like_elastic_summary, read_elastic_summary},
    {"the last lines of srun, mpirun or Lightning", looks_like_launcher_log, read_launcher_log},
    {"torch's barrier in the store", looks_like_store_barrier, read_store_barriers},
    {"NCCL_DEBUG_SUBSYS=COLL", looks_like_nccl_calls, read_nccl_calls},
    {"warnings of NCCL", looks_like_nccl_warnings, read_nccl_warnings},
    {"log of rollcall watch", looks_like_watch_log, read_watch_log},
    {"Xid lines of the kernel", looks_like_kernel_log, read_kernel_log},
}};

struct JsonReader {
  std::string_view name;
  bool (*fits)(const Value& value);
  Facts (*read)(const Value& value, Rank rank);
};

constexpr std::array<JsonReader, 3> json_readers = {{
    {"torchrun's error.json", looks_like_error_file, read_error_file},
    {"NCCL RAS as JSON", looks_like_ras_json, [](const Value& value, Rank) { return read_ras_json(value); }},
    {"NCCL Inspector's records", looks_like_inspector, read_inspector},
}};

void set_file(Facts& facts, const std::string& file) {
  for (LogFact& fact : facts) {
    fact.file = file;
  }
}

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
  std::ranges::transform(text_readers, std::back_inserter(names), &TextReader::name);
  std::ranges::transform(json_readers, std::back_inserter(names), &JsonReader::name);
  return names;
}

std::optional<Facts> read_text_evidence(std::string_view bytes, Rank rank, const std::string& file) {
  // A log that was truncated while it was written, or that was on a machine that lost power, has some zeros.
  const std::size_t zeros = static_cast<std::size_t>(std::ranges::count(bytes, '\0'));
  if (zeros > bytes.size() / 16) {
    return std::nullopt;
  }
  const std::optional<UnpackedLog> unpacked = unpack_json_lines(bytes);
  bytes = unpacked ? std::string_view(unpacked->text) : bytes;
  const bool is_plain = bytes.find('\0') == std::string_view::npos && !contains(bytes, color_begin);
  std::string plain = is_plain ? std::string() : without_colors(bytes);
  std::erase(plain, '\0');
  const std::optional<std::string> whole = without_wraps(is_plain ? bytes : plain);
  const std::string_view text = whole ? std::string_view(*whole) : is_plain ? bytes : plain;
  std::vector<const TextReader*> readers;
  for (const TextReader& reader : text_readers) {
    if (reader.fits(text)) {
      readers.push_back(&reader);
    }
  }
  if (readers.empty()) {
    return std::nullopt;
  }
  Facts facts;
  const std::vector<LogStream> streams = log_streams(text, rank);
  for (const TextReader* reader : readers) {
    const std::size_t known = facts.size();
    for (const LogStream& stream : streams) {
      std::ranges::move(reader->read(stream), std::back_inserter(facts));
    }
    std::ranges::stable_sort(std::span(facts).subspan(known), {}, &LogFact::line);
  }
  for (LogFact& fact : facts) {
    fact.line =
        unpacked && fact.line > 0 ? unpacked->lines[static_cast<std::size_t>(fact.line - 1)] : fact.line;
  }
  for (const LogStream& stream : streams) {
    if (rank < 0 && stream.rank >= 0) {
      facts.push_back(rank_wrote(stream.rank, file));
    }
  }
  set_file(facts, file);
  return facts;
}

std::optional<Facts> read_json_evidence(const Value& value, Rank rank, const std::string& file) {
  const auto reader =
      std::ranges::find_if(json_readers, [&value](const JsonReader& each) { return each.fits(value); });
  if (reader == json_readers.end()) {
    return std::nullopt;
  }
  Facts facts = reader->read(value, rank);
  set_file(facts, file);
  return facts;
}

bool is_named_like_log(std::string_view path) {
  constexpr std::array<std::string_view, 4> endings = {".log", ".err", ".out", ".stderr"};
  return std::ranges::any_of(endings, [path](std::string_view end) { return path.ends_with(end); });
}

LogFact rank_wrote(Rank rank, const std::string& file) {
  LogFact fact;
  fact.kind = LogFact::Kind::wrote;
  fact.ranks = RankSet{rank};
  fact.file = file;
  return fact;
}

}  // namespace rollcall::traces
