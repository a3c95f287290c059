#include "scenarios/run/search_results.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/report_reader.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "sim/explore/explore.h"
#include "sim/explore/schedules.h"
#include "viz/json/json_report.h"

namespace rollcall::scenario {
namespace {

struct Part {
  std::string file;
  Report report;  // with a search
  sim::Slice shard{};
  bool is_whole = true;  // nothing in its part is left
};

// Far more than any search explores; sums of them still fit.
bool is_count(std::int64_t value) { return value >= 0 && value <= 1'000'000'000'000'000; }

bool has_sane_counts(const Report& report) {
  const auto is_counted = [](const auto& each) { return is_count(each.count); };
  return is_count(report.schedules) && is_count(report.search->distinct) && is_count(report.search->cut) &&
         std::ranges::all_of(report.search->outcomes, is_counted) &&
         std::ranges::all_of(report.search->failures, is_counted);
}

// Empty if it is not one.
std::optional<Report> read_result(const NamedResult& named) {
  try {
    std::optional<Report> report = read_report(check_source(named.name, named.json));
    return report && report->search && has_sane_counts(*report) ? std::move(report) : std::nullopt;
  } catch (const InvalidScenario&) {
    return std::nullopt;
  }
}

Part part_of(const NamedResult& named) {
  std::optional<Report> report = read_result(named);
  if (!report) {
    throw NotOneSearch(fmt::format("'{}' is not a result of `rollcall explore --format json`", named.name));
  }
  Part part{named.name, *std::move(report)};
  for (const std::string& bound : part.report.search->bounds) {  // other bounds mean that something is left
    const std::optional<sim::Slice> shard = sim::shard_of_bound(bound);
    part.shard = shard.value_or(part.shard);
    part.is_whole = part.is_whole && shard;
  }
  return part;
}

void require_one_search(const std::vector<Part>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& first = parts.front();
    if (parts[i].shard.count != first.shard.count || parts[i].report.scenario != first.report.scenario) {
      throw NotOneSearch(
          fmt::format("'{}' and '{}' come from different searches", first.file, parts[i].file));
    }
    if (i > 0 && parts[i].shard.index == parts[i - 1].shard.index) {
      throw NotOneSearch(fmt::format("'{}' and '{}' are the same shard", parts[i - 1].file, parts[i].file));
    }
  }
}

// Adds the counts of entries that are alike, and appends the others.
template <typename Entry, typename AreAlike>
void add_counts(std::vector<Entry>& sum, const std::vector<Entry>& more, const AreAlike& are_alike) {
  for (const Entry& each : more) {
    const auto known = std::ranges::find_if(sum, [&](const Entry& other) { return are_alike(other, each); });
    if (known == sum.end()) {
      sum.push_back(each);
    } else {
      known->count += each.count;
    }
  }
}

// The report of the first part that fails, with the search of all parts.
Report join(const std::vector<Part>& parts) {
  const auto fails = [](const Part& part) { return finding_of(part.report.verdict) != nullptr; };
  const auto failing = std::ranges::find_if(parts, fails);
  Report joined = (failing == parts.end() ? parts.front() : *failing).report;
  SearchResult sum;
  sum.space = 0;
  sum.interrupted = joined.search->interrupted;
  joined.schedules = 0;
  for (const Part& part : parts) {
    const SearchResult& search = *part.report.search;
    add_counts(sum.outcomes, search.outcomes,
               [](const auto& a, const auto& b) { return a.verdict == b.verdict && a.kind == b.kind; });
    add_counts(sum.failures, search.failures, [](const auto& a, const auto& b) {
      return a.verdict == b.verdict && a.kind == b.kind && a.headline == b.headline;
    });
    joined.schedules += part.report.schedules;
    sum.distinct += search.distinct;
    sum.cut += search.cut;
    sum.differences_are_races = sum.differences_are_races || search.differences_are_races;
    sum.space = std::max(sum.space, search.space);
  }
  const std::int64_t whole = std::ranges::count_if(parts, &Part::is_whole);
  const std::size_t all = parts.front().shard.count;
  joined.exhaustive = parts.size() == all && static_cast<std::size_t>(whole) == all;
  if (!joined.exhaustive) {
    sum.bounds = {fmt::format("{} of {} shards given, {} of them complete", parts.size(), all, whole)};
  }
  joined.search = std::move(sum);
  return joined;
}

std::string summary_of(const Report& joined) {
  std::string text = fmt::format("{}: {} schedules{}\n", joined.scenario, joined.schedules,
                                 joined.exhaustive ? "; the search was exhaustive" : "");
  for (const rollcall::Outcome& outcome : joined.search->outcomes) {
    text += fmt::format("  {} x {} ({})\n", outcome.count, outcome.verdict, to_string(outcome.kind));
  }
  for (const FoundFailure& failure : joined.search->failures) {
    text += fmt::format("{}\n  replay: {}\n", failure.headline, failure.replay);
  }
  for (const std::string& bound : joined.search->bounds) {
    text += fmt::format("not all: {}\n", bound);
  }
  return text;
}

}  // namespace

MergedResult merge_results(const std::vector<NamedResult>& results) {
  std::vector<Part> parts;
  std::ranges::transform(results, std::back_inserter(parts), part_of);
  std::ranges::stable_sort(parts, {}, [](const Part& part) { return part.shard.index; });
  require_one_search(parts);
  const Report joined = join(parts);
  const std::vector<rollcall::Outcome>& outcomes = joined.search->outcomes;
  const bool is_race = joined.search->differences_are_races && !sim::agree(outcomes);
  const std::string verdict(is_race ? "race" : verdict_word(joined.verdict));
  auto json = nlohmann::ordered_json::parse(viz::json_report(joined));
  json["verdict"] = verdict;  // as one search would call it, though each part had a single outcome
  // A part without schedules expects nothing.
  const bool is_expected = std::ranges::all_of(parts, [](const Part& part) {
    return part.report.schedules == 0 || part.report.expected.value_or(false);
  });
  return {json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n",
          summary_of(joined), is_expected, verdict, kind_of(joined.verdict)};
}

MergedResult merge_results(const std::vector<std::string>& files) {
  std::vector<NamedResult> results;
  for (const std::string& file : files) {
    results.push_back({file, std::string(read_source(file).text())});
  }
  return merge_results(results);
}

}  // namespace rollcall::scenario
