#include "scenarios/run/golden.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <ostream>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "viz/base/text_style.h"
#include "viz/base/write_file.h"

namespace rollcall::scenario {
namespace {

constexpr std::string_view first_line = "# rollcall golden 1: the calls of every rank, in order";

// "all_reduce on world (float32 x 4, SUM) from gradients", "send to rank 5 on world (float32 x 4, tag 7)".
std::string call_text(const Span& span, const Timeline& timeline) {
  const bool is_message = span.kind == Span::Kind::message;
  std::string text(timeline.name(span.name));
  if (is_message && span.peer >= 0) {
    text += fmt::format(" {} rank {}", text.find("send") != std::string::npos ? "to" : "from", span.peer);
  }
  text += fmt::format(" on {}", timeline.name(span.group));
  std::string arguments = span.numel > 0 ? fmt::format("{} x {}", to_string(span.dtype), span.numel) : "";
  if (const std::string& more = timeline.name(span.arguments); !more.empty()) {
    arguments += (arguments.empty() ? "" : ", ") + more;
  }
  text += arguments.empty() ? "" : fmt::format(" ({})", arguments);
  text += span.async_op ? ", async" : "";
  text += span.label == 0 ? "" : fmt::format(" from {}", timeline.name(span.label));
  text += span.end == Span::open ? ", never returns" : "";
  return viz::printable(text);
}

std::vector<std::vector<std::string>> calls_by_rank(const Report& report) {
  std::vector<std::vector<const Span*>> spans(static_cast<std::size_t>(report.world_size));
  for (const Span& span : report.timeline.spans()) {
    if (span.moves_data()) {
      spans[static_cast<std::size_t>(span.rank)].push_back(&span);
    }
  }
  std::vector<std::vector<std::string>> calls;
  for (std::vector<const Span*>& own : spans) {
    std::ranges::stable_sort(own, {}, [&](const Span* span) {
      return std::tuple(span->start, span->kind, report.timeline.name(span->group), span->seq);
    });
    std::vector<std::string>& texts = calls.emplace_back();
    std::ranges::transform(own, std::back_inserter(texts),
                           [&](const Span* span) { return call_text(*span, report.timeline); });
  }
  return calls;
}

// Every rank's list, without copies of shared ones.
std::map<Rank, const std::vector<std::string>*> by_rank(const std::vector<RankCalls>& calls) {
  std::map<Rank, const std::vector<std::string>*> lists;
  for (const RankCalls& each : calls) {
    for (Rank rank : each.ranks.to_vector()) {
      lists[rank] = &each.calls;
    }
  }
  return lists;
}

// A range in which two lists differ: old calls [old_begin, old_end) became new ones.
struct Change {
  std::size_t old_begin = 0, old_end = 0;
  std::size_t new_begin = 0, new_end = 0;
};

using Calls = std::vector<std::string>;

// Computes the longest common subsequence, after equal parts at both ends are cut off. If a side has more than `most`
// calls, the middle is one change: a finer one would not be readable.
std::vector<Change> changes_between(const Calls& before, const Calls& after) {
  constexpr std::size_t most = 2000;
  std::size_t head = 0;
  while (head < before.size() && head < after.size() && before[head] == after[head]) {
    ++head;
  }
  std::size_t tail = 0;
  while (tail < before.size() - head && tail < after.size() - head &&
         before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) {
    ++tail;
  }
  const std::size_t rows = before.size() - head - tail;
  const std::size_t columns = after.size() - head - tail;
  if (rows == 0 && columns == 0) {
    return {};
  }
  if (rows == 0 || columns == 0 || rows > most || columns > most) {
    return {{head, head + rows, head, head + columns}};
  }
  // length[i][j]: length of the common subsequence of the parts that begin at i and j.
  std::vector<std::vector<std::uint32_t>> length(rows + 1, std::vector<std::uint32_t>(columns + 1));
  for (std::size_t i = rows; i-- > 0;) {
    for (std::size_t j = columns; j-- > 0;) {
      length[i][j] = before[head + i] == after[head + j] ? length[i + 1][j + 1] + 1
                                                         : std::max(length[i + 1][j], length[i][j + 1]);
    }
  }
  std::vector<Change> changes;
  for (std::size_t i = 0, j = 0; i < rows || j < columns;) {
    if (i < rows && j < columns && before[head + i] == after[head + j]) {
      ++i, ++j;
      continue;
    }
    if (changes.empty() || changes.back().old_end != head + i || changes.back().new_end != head + j) {
      changes.push_back({head + i, head + i, head + j, head + j});
    }
    const bool drops = j == columns || (i < rows && length[i + 1][j] >= length[i][j + 1]);
    drops ? changes.back().old_end = head + ++i : changes.back().new_end = head + ++j;
  }
  return changes;
}

// "barrier on world", "3 calls: a; b; c". If there are more than a few, the first ones and the number.
std::string calls_phrase(const Calls& calls, std::size_t begin, std::size_t end) {
  if (end - begin == 1) {
    return calls[begin];
  }
  if (begin == end) {
    return {};
  }
  constexpr std::size_t most = 3;
  const std::size_t shown = std::min(end - begin, most);
  const auto first = calls.begin() + static_cast<std::ptrdiff_t>(begin);
  return fmt::format("{} calls: {}{}", end - begin,
                     fmt::join(first, first + static_cast<std::ptrdiff_t>(shown), "; "),
                     end - begin > most ? "; ..." : "");
}

std::string change_text(const RankSet& ranks, const Change& change, const Calls& before, const Calls& after) {
  const std::string who = ranks_phrase(ranks);
  const bool one = ranks.size() == 1;
  const std::string where = change.new_begin == 0 ? "at the beginning"
                                                  : fmt::format("after call {} ({})", change.new_begin,
                                                                after[change.new_begin - 1]);
  const std::string dropped = calls_phrase(before, change.old_begin, change.old_end);
  if (change.new_begin == change.new_end) {
    return fmt::format("{} no longer {} {}, {}", who, one ? "calls" : "call", dropped, where);
  }
  const std::string added = calls_phrase(after, change.new_begin, change.new_end);
  if (change.old_begin == change.old_end) {
    return fmt::format("{} now also {} {}, {}", who, one ? "calls" : "call", added, where);
  }
  return fmt::format("{} now {} {}, instead of {}, {}", who, one ? "calls" : "call", added, dropped, where);
}

}  // namespace

std::vector<RankCalls> calls_of(const Report& report) {
  std::map<Calls, std::size_t> known;  // index into `all`
  std::vector<RankCalls> all;
  Rank rank = 0;
  for (Calls& calls : calls_by_rank(report)) {
    const auto [entry, is_new] = known.try_emplace(calls, all.size());
    if (is_new) {
      all.push_back({{}, std::move(calls)});
    }
    all[entry->second].ranks.insert(rank++);
  }
  return all;
}

std::string golden_text(const std::vector<RankCalls>& calls) {
  std::string text = fmt::format("{}\n", first_line);
  for (const RankCalls& each : calls) {
    text += fmt::format("\nranks {}\n", to_string(each.ranks));
    for (const std::string& call : each.calls) {
      text += fmt::format("  {}\n", call);
    }
  }
  return text;
}

namespace {

// "0-3,8", as golden_text writes it.
RankSet parse_rank_set(std::string_view text, std::size_t line) {
  RankSet ranks;
  const auto fail = [line] {
    throw std::runtime_error(fmt::format("line {}: expected ranks such as 0-3,8", line));
  };
  const auto number = [&] {
    Rank rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error != std::errc() || rank < 0) {
      fail();
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return rank;
  };
  while (!text.empty()) {
    const Rank first = number();
    Rank last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = number();
    }
    if (last < first || last - first > 10'000'000) {
      fail();
    }
    ranks.insert(RankSet::range(first, last));
    if (!text.empty() && text.front() != ',') {
      fail();
    }
    text.remove_prefix(text.empty() ? 0 : 1);
  }
  return ranks;
}

}  // namespace

std::vector<RankCalls> parse_golden(const std::string& text) {
  std::vector<RankCalls> all;
  std::size_t number = 0;
  for (std::string_view line : viz::split_lines(text)) {
    ++number;
    line = line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
    if (number == 1 && line != first_line) {
      throw std::runtime_error(fmt::format("line 1: expected \"{}\"", first_line));
    }
    if (line.empty() || line.front() == '#') {
      continue;
    }
    if (line.starts_with("ranks ")) {
      all.push_back({parse_rank_set(line.substr(6), number), {}});
    } else if (line.starts_with("  ") && !all.empty()) {
      all.back().calls.emplace_back(line.substr(2));
    } else {
      throw std::runtime_error(fmt::format("line {}: expected \"ranks ...\" or an indented call", number));
    }
  }
  return all;
}

std::vector<std::string> differences(const std::vector<RankCalls>& golden,
                                     const std::vector<RankCalls>& now) {
  const auto before = by_rank(golden);
  const auto after = by_rank(now);
  if (before.size() != after.size()) {
    return {fmt::format("the golden file has {} ranks, but the run has {}", before.size(), after.size())};
  }
  // Ranks whose lists were equal and still are: they changed in the same way.
  std::map<std::pair<const Calls*, const Calls*>, RankSet> alike;
  std::vector<std::pair<const Calls*, const Calls*>> order;
  for (const auto& [rank, calls] : after) {
    const auto old = before.find(rank);
    if (old == before.end()) {
      return {fmt::format("rank {} is not in the golden file", rank)};
    }
    if (*old->second != *calls) {
      RankSet& ranks = alike[{old->second, calls}];
      if (ranks.empty()) {
        order.emplace_back(old->second, calls);
      }
      ranks.insert(rank);
    }
  }
  std::vector<std::string> sentences;
  for (const auto& pair : order) {
    for (const Change& change : changes_between(*pair.first, *pair.second)) {
      sentences.push_back(change_text(alike[pair], change, *pair.first, *pair.second));
    }
  }
  return sentences;
}

std::string golden_file(const Scenario& scenario) {
  if (scenario.expect.golden.empty() || scenario.parameters.empty()) {
    return scenario.expect.golden;
  }
  const std::filesystem::path path(scenario.expect.golden);
  std::string parameters = scenario.parameters;
  std::ranges::replace(parameters, '/', '_');
  const std::string name =
      fmt::format("{}[{}]{}", path.stem().string(), parameters, path.extension().string());
  return (path.parent_path() / name).generic_string();
}

std::vector<std::string> compare_golden(const std::string& file, const Report& report) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    return {fmt::format("golden: '{}' does not exist; `rollcall test --update-golden` writes it", file)};
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> sentences;
  try {
    sentences = differences(parse_golden(text), calls_of(report));
  } catch (const std::runtime_error& error) {
    return {fmt::format("golden: '{}', {}", file, error.what())};
  }
  constexpr std::size_t most = 20;
  const std::size_t count = sentences.size();
  if (count > most) {
    sentences.resize(most - 1);
    sentences.push_back(fmt::format("{} more differences", count - most + 1));
  }
  for (std::string& sentence : sentences) {
    sentence = "golden: " + sentence;
  }
  return sentences;
}

void update_golden(const std::string& file, const Report& report) {
  const std::string text = golden_text(calls_of(report));
  std::ifstream in(file, std::ios::binary);
  if (in && std::string{std::istreambuf_iterator<char>(in), {}} == text) {
    return;
  }
  if (const std::filesystem::path folder = std::filesystem::path(file).parent_path(); !folder.empty()) {
    std::error_code unable;  // then writing reports why
    std::filesystem::create_directories(folder, unable);
  }
  viz::write_file(file, [&text](std::ostream& out) { out << text; });
}

}  // namespace rollcall::scenario
