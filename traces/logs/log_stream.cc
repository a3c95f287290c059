#include "traces/logs/log_stream.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/base/ascii.h"
#include "traces/logs/lines.h"

namespace rollcall::traces {

namespace {

constexpr std::string_view digits = "0123456789";

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
  });
}

// In a pattern, '0' is a digit, and '?' a 'T' or a blank.
bool begins_like(std::string_view text, std::string_view pattern) {
  const auto fits = [](char wanted, char c) {
    return wanted == '0' ? is_digit(c) : wanted == '?' ? c == 'T' || c == ' ' : c == wanted;
  };
  return text.size() >= pattern.size() && std::equal(pattern.begin(), pattern.end(), text.begin(), fits);
}

// How long the time at the beginning of a text is, "2026-11-25T10:00:01.5Z ", with the blank; 0: there is none.
std::size_t time_length(std::string_view text) {
  constexpr std::string_view pattern = "0000-00-00?00:00:00";
  if (!begins_like(text, pattern)) {
    return 0;
  }
  const std::size_t end = text.find_first_not_of("0123456789.,:+-Z", pattern.size());
  return end == std::string_view::npos || text[end] != ' ' ? 0 : end + 1;
}

// Removes a time, then "stderr F " of a container's log.
void take_time(std::string_view& line) {
  const std::size_t length = time_length(line);
  if (length == 0) {
    return;
  }
  line.remove_prefix(length);
  for (const std::string_view stream : {"stdout F ", "stderr F ", "stdout P ", "stderr P "}) {
    line.remove_prefix(line.starts_with(stream) ? stream.size() : 0);
  }
}

// Removes "ERROR 07-23 19:34:51 [multiproc_executor.py:487] ", which vLLM writes before each line of a traceback.
void take_logging_header(std::string_view& line) {
  constexpr std::size_t header_max = 80;
  const std::size_t level = line.find(' ');
  const bool is_level = level != std::string_view::npos && level >= 4 && level <= 8 &&
                        std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(level),
                                    [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!is_level || !begins_like(line.substr(level + 1), "00-00 00:00:00 ")) {
    return;
  }
  const std::size_t end = line.substr(0, header_max).find("] ", level);
  line.remove_prefix(end == std::string_view::npos ? 0 : end + 2);
}

// "ActorModel" of "(ActorModel pid=7, ip=10.0.0.2) "; empty if this is not a prefix of Ray's.
std::string_view ray_class(std::string_view prefix) {
  const std::size_t pid = prefix.find(" pid=");
  const std::size_t open = pid == prefix.npos ? pid : prefix.rfind('(', pid);
  return open == prefix.npos ? std::string_view() : prefix.substr(open + 1, pid - open - 1);
}

struct TorchPrefix {
  std::size_t begin;
  std::size_t end;
  Rank rank;
};

// "[rank2]: ", at the beginning of a line or behind the prefixes of others.
std::optional<TorchPrefix> torch_prefix(std::string_view line) {
  constexpr std::string_view word = "[rank";
  constexpr std::size_t begin_max = 120;
  const std::size_t begin = line.substr(0, begin_max).find(word);
  const std::size_t end = begin == std::string_view::npos ? begin : line.find("]:", begin);
  if (end == std::string_view::npos ||
      line.substr(0, end).find_first_not_of(digits, begin + word.size()) != std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<Rank> rank = rank_after(line.substr(begin), word);
  const std::size_t blank = line.substr(end + 2).starts_with(' ') ? 1 : 0;
  return rank ? std::optional(TorchPrefix{begin, end + 2 + blank, *rank}) : std::nullopt;
}

// torchrun's prefixes are made from a template: "[trainer22|6]:" has a rank, and its number on its node.
std::optional<Rank> rank_and_local_rank(std::string_view name) {
  const std::size_t bar = name.find('|');
  if (bar == name.npos || bar == 0 || name.find_first_not_of(digits, bar + 1) != name.npos) {
    return std::nullopt;
  }
  const std::string_view role = name.substr(0, bar);
  const std::optional<Rank> rank = rank_at(role.substr(role.find_last_not_of(digits) + 1));
  const std::optional<Rank> local = rank_at(name.substr(bar + 1));
  return rank && local && *local <= *rank ? rank : std::nullopt;
}

// A prefix of known form, with the rank that it names.
struct Prefix {
  std::size_t length = 0;
  Rank rank = -1;
  Rank local_rank = -1;  // torchrun's "[default3]:"
};

Prefix known_prefix(std::string_view line) {
  constexpr std::size_t name_max = 32;
  constexpr std::size_t digits_max = 5;
  const std::size_t blanks =
      std::min(line.find_first_not_of(' '), line.size());  // srun --label aligns its numbers
  const std::size_t end = std::min(line.find_first_not_of(digits, blanks), line.size());
  if (end > blanks && end <= digits_max && line.substr(end).starts_with(": ")) {
    return {end + 2, static_cast<Rank>(number_at(line.substr(blanks)).value_or(-1))};
  }
  if (line.starts_with('(')) {  // vLLM: "(VllmWorker rank=3 pid=406) "
    const std::string_view name = line.substr(0, std::min(line.find(')'), name_max * 2));
    const std::optional<Rank> rank = rank_after(name, " rank=");
    return rank && line.substr(name.size()).starts_with(") ") ? Prefix{name.size() + 2, *rank} : Prefix();
  }
  if (!line.starts_with('[')) {
    return {};
  }
  const std::size_t close = line.substr(0, name_max).find(']');
  const std::string_view name = line.substr(1, close == std::string_view::npos ? 0 : close - 1);
  const std::string_view rest = line.substr(name.size() + 1);
  for (const std::string_view stream :
       {"]<stdout>:", "]<stderr>:"}) {  // Open MPI: [job,rank]; on SageMaker with names
    if (const std::size_t comma = name.find(',');
        comma != std::string_view::npos && rest.starts_with(stream)) {
      const std::size_t blank = rest.substr(stream.size()).starts_with(' ') ? 1 : 0;
      const std::optional<Rank> named = rank_after(name, ",mpirank:");
      return {name.size() + 1 + stream.size() + blank, named ? *named : rank_after(name, ",").value_or(-1)};
    }
  }
  if (!rest.starts_with("]:")) {
    return {};
  }
  if (const std::optional<Rank> rank = rank_and_local_rank(name)) {
    return {name.size() + 3, *rank};
  }
  if (!is_word(name)) {
    return {};
  }
  const bool is_number = name.find_first_not_of(digits) == name.npos && name.size() < digits_max;
  if (is_number && rest.size() > 2) {  // without a text, it is the title of a part of torchrun's summary
    return {name.size() + 3, static_cast<Rank>(number_at(name).value_or(-1))};
  }
  const std::string_view local = name.substr(name.find_last_not_of(digits) + 1);  // npos + 1 is 0
  const bool is_local = !local.empty() && local.size() < std::min(name.size(), digits_max);
  return {name.size() + 3, -1, is_local ? static_cast<Rank>(number_at(local).value_or(-1)) : -1};
}

// The prefixes that stand before torch's own, and the ranks behind them: a prefix of one rank is that rank's.
class LearnedPrefixes {
 public:
  void learn(std::string_view line) {
    take_time(line);
    const std::optional<TorchPrefix> torch = torch_prefix(line);
    if (!torch) {
      learn_summary(line);
      return;
    }
    std::string_view before = line.substr(0, torch->begin);
    learn_job(torch->rank, ray_class(before));
    for (std::size_t place = 0; place < before.size(); ++place) {
      if (time_length(before.substr(place)) > 0) {
        before = before.substr(0, place);
      }
    }
    constexpr std::size_t prefixes_max = 65'536;
    if (without_blanks(before).empty() || ranks_.size() >= prefixes_max) {
      return;
    }
    const Prefix prefix = known_prefix(before);
    learn_first(torch->rank, prefix.local_rank);
    are_ranks_ = are_ranks_ && (prefix.rank < 0 || prefix.rank == torch->rank);
    const auto [known, is_new] = ranks_.emplace(before, torch->rank);
    known->second = known->second == torch->rank ? known->second : several;
    lengths_.insert(before.size());
  }

  // The job of a line with this prefix; empty if the log has only one.
  std::string job(std::string_view prefix) const {
    return has_jobs_ ? std::string(ray_class(prefix)) : std::string();
  }

  // The prefix at the beginning of a line, the longest one. Behind another, a local rank may be one of another node.
  Prefix at(std::string_view line, bool is_behind_another) const {
    for (const std::size_t length : lengths_) {
      const auto known = length <= line.size() ? ranks_.find(line.substr(0, length)) : ranks_.end();
      if (known != ranks_.end()) {
        return {length, known->second};
      }
    }
    const Prefix prefix = known_prefix(line);
    if (!is_behind_another && prefix.local_rank >= 0 && first_of_node_.value_or(several) >= 0) {
      return {prefix.length, *first_of_node_ + prefix.local_rank};
    }
    return {prefix.length, are_ranks_ ? prefix.rank : -1};
  }

 private:
  static constexpr Rank several = -1;

  // torchrun's summary: "  rank      : 3 (local_rank: 1)".
  void learn_summary(std::string_view line) {
    constexpr std::string_view word = "(local_rank: ";
    const std::size_t end = line.find(word);
    const std::size_t colon = line.substr(0, end).rfind(": ");
    if (end != line.npos && colon != line.npos && without_blanks(line.substr(0, colon)) == "rank") {
      const std::optional<std::int64_t> rank = number_at(line.substr(colon + 2));
      const std::optional<std::int64_t> local = number_at(line.substr(end + word.size()));
      learn_first(static_cast<Rank>(rank.value_or(-1)), static_cast<Rank>(local.value_or(-1)));
    }
  }

  // One job may have a class for each rank, but no rank in two.
  void learn_job(Rank rank, std::string_view job) {
    if (!job.empty()) {
      has_jobs_ = has_jobs_ || jobs_.emplace(rank, job).first->second != job;
    }
  }

  void learn_first(Rank rank, Rank local_rank) {
    if (rank >= 0 && local_rank >= 0) {
      const Rank first = rank - local_rank;
      first_of_node_ = first_of_node_.value_or(first) == first ? first : several;
    }
  }

  std::map<Rank, std::string_view> jobs_;  // the first of each rank
  bool has_jobs_ = false;                  // several
  std::map<std::string_view, Rank> ranks_;
  std::set<std::size_t, std::greater<>> lengths_;
  // The rank whose local rank is 0; `several` if the log is of several nodes.
  std::optional<Rank> first_of_node_;
  bool are_ranks_ = true;  // the numbers of srun and Open MPI; else they are those of nodes
};

// Who wrote a line.
struct Writer {
  Rank rank = -1;
  std::string name;  // its prefixes, if they do not tell the rank; its job, if they do

  friend auto operator<=>(const Writer&, const Writer&) = default;
};

// Removes all prefixes of a line.
Writer take_prefixes(std::string_view& line, const LearnedPrefixes& learned) {
  if (const std::optional<TorchPrefix> torch = torch_prefix(line)) {
    std::string job = learned.job(line.substr(0, torch->begin));
    line.remove_prefix(torch->end);
    const auto again = [&line] { return torch_prefix(line).value_or(TorchPrefix{1, 0, -1}); };
    for (TorchPrefix same = again(); same.begin == 0 && same.rank == torch->rank; same = again()) {
      line.remove_prefix(same.end);  // of a line that c10d and Python both label
    }
    return {torch->rank, std::move(job)};
  }
  constexpr int prefixes_max = 3;
  Writer writer;
  for (int i = 0; i < prefixes_max; ++i) {
    take_time(line);
    const Prefix prefix = learned.at(line, i > 0);
    if (prefix.length == 0) {
      break;
    }
    writer.rank = prefix.rank;  // of "0: [default3]:", the first names a node
    writer.name += line.substr(0, prefix.length);
    line.remove_prefix(prefix.length);
  }
  take_logging_header(line);
  return writer.rank < 0 ? std::move(writer) : Writer{writer.rank, learned.job(writer.name)};
}

}  // namespace

std::vector<LogStream> log_streams(std::string_view bytes, Rank file_rank) {
  LearnedPrefixes learned;
  for (Lines lines(bytes); lines.next();) {
    learned.learn(lines.line());
  }
  std::map<Writer, std::vector<LogLine>> by_writer;
  for (Lines lines(bytes); lines.next();) {
    std::string_view text = lines.line();
    Writer writer = take_prefixes(text, learned);
    writer = writer.rank >= 0 || file_rank < 0 ? std::move(writer) : Writer{file_rank, ""};
    by_writer[std::move(writer)].push_back({lines.number(), text});
  }
  std::vector<LogStream> streams;
  for (auto& [writer, lines] : by_writer) {
    streams.push_back({writer.rank, std::move(lines), writer.rank < 0 ? std::string() : writer.name});
  }
  return streams;
}

bool has_prefix(std::string_view line) {
  const std::size_t length = line.size();
  take_prefixes(line, LearnedPrefixes());
  return line.size() < length;
}

bool names_only_others(std::string_view bytes, Rank rank) {
  constexpr std::array<std::string_view, 3> words = {"[Rank ", " Rank ", "task "};  // of c10d and srun
  bool names_one = false;
  const auto is_own = [&](std::optional<Rank> named) {
    names_one = names_one || named.value_or(-1) >= 0;
    return named == rank;
  };
  for (Lines lines(bytes); lines.next();) {
    std::string_view text = lines.line();
    if (is_own(take_prefixes(text, LearnedPrefixes()).rank)) {
      return false;
    }
    const bool has_words = contains(text, " Watchdog caught ") || text.starts_with("srun: error: ");
    if (has_words &&
        std::ranges::any_of(words, [&](std::string_view word) { return is_own(rank_after(text, word)); })) {
      return false;
    }
  }
  return names_one;
}

std::optional<Rank> rank_named_in(std::string_view bytes) {
  std::optional<Rank> named;
  for (Lines lines(bytes); lines.next();) {
    const std::optional<TorchPrefix> torch = torch_prefix(lines.line());
    if (torch && named.value_or(torch->rank) != torch->rank) {
      return std::nullopt;
    }
    named = torch ? std::optional(torch->rank) : named;
  }
  return named;
}

check::LogFact& add_fact(std::vector<check::LogFact>& facts, check::LogFact::Kind kind, RankSet ranks,
                         std::int64_t line) {
  check::LogFact& fact = facts.emplace_back();
  fact.kind = kind;
  fact.ranks = std::move(ranks);
  fact.line = line;
  return fact;
}

LogStream log_of_one(std::string_view bytes, Rank rank) {
  LogStream stream{rank, {}};
  for (Lines lines(bytes); lines.next();) {
    stream.lines.push_back({lines.number(), lines.line()});
  }
  return stream;
}

}  // namespace rollcall::traces
