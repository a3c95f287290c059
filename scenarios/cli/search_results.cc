#include "scenarios/cli/search_results.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/cli/cli.h"
#include "scenarios/json/source.h"
#include "sim/explore/explore.h"

namespace rollcall::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Part {
  std::string file;
  Json result;
  sim::Slice shard;
  bool is_whole = false;  // nothing in its part is left
};

// Reads the shard from its bounds; other bounds mean that something is left.
void read_bounds(Part& part) {
  part.is_whole = true;
  for (const Json& bound : part.result["coverage"].value("bounds", Json::array())) {
    const std::optional<sim::Slice> shard = sim::shard_of_bound(bound.get<std::string>());
    part.shard = shard.value_or(part.shard);
    part.is_whole = part.is_whole && shard;
  }
}

// Checks the types of the values that explore writes, if they exist.
using HasType = bool (*)(const Json& value);

bool is_text(const Json& value) { return value.is_string(); }
bool is_flag(const Json& value) { return value.is_boolean(); }
bool is_estimate(const Json& value) {
  return value.is_number() || value.is_null();
}  // null: an infinite number
// Far more than any search explores; sums of them still fit.
bool is_count(const Json& value) {
  constexpr std::uint64_t most = 1'000'000'000'000'000;
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= most;
}

bool have(const Json& object, std::initializer_list<const char*> keys, HasType has_type) {
  return object.is_object() && std::ranges::all_of(keys, [&](const char* key) {
           return !object.contains(key) || has_type(object[key]);
         });
}

bool is_list(const Json& result, const char* key, HasType each_is) {
  return result.contains(key) && result[key].is_array() && std::ranges::all_of(result[key], each_is);
}

bool is_outcome(const Json& outcome) {
  return have(outcome, {"count"}, is_count) && have(outcome, {"verdict", "kind"}, is_text);
}

bool is_failure(const Json& failure) {
  return is_outcome(failure) && have(failure, {"headline", "replay"}, is_text);
}

bool is_coverage(const Json& coverage) {
  return have(coverage, {"distinct_schedules", "cut_short"}, is_count) &&
         have(coverage, {"estimated_schedules"}, is_estimate) &&
         (!coverage.contains("bounds") || is_list(coverage, "bounds", is_text));
}

bool is_result(const Json& result) {
  return have(result, {"scenario", "verdict", "kind"}, is_text) &&
         have(result, {"exhaustive", "expected"}, is_flag) && is_list(result, "outcomes", is_outcome) &&
         is_list(result, "failures", is_failure) && result.contains("coverage") &&
         is_coverage(result["coverage"]) && result.contains("schedules") && is_count(result["schedules"]);
}

Part part_of(const NamedResult& named) {
  Part part{named.name, Json::parse(named.json, nullptr, false), {}, false};
  if (!is_result(part.result)) {
    throw UsageError(fmt::format("'{}' is not a result of `rollcall explore --format json`", named.name));
  }
  read_bounds(part);
  return part;
}

void require_one_search(const std::vector<Part>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& first = parts.front();
    const bool is_alike = parts[i].shard.count == first.shard.count &&
                          parts[i].result.value("scenario", "") == first.result.value("scenario", "");
    if (!is_alike) {
      throw UsageError(fmt::format("'{}' and '{}' come from different searches", first.file, parts[i].file));
    }
    if (i > 0 && parts[i].shard.index == parts[i - 1].shard.index) {
      throw UsageError(fmt::format("'{}' and '{}' are the same shard", parts[i - 1].file, parts[i].file));
    }
  }
}

// Adds the counts of entries that agree in `keys`, and appends the others.
void add_counts(Json& sum, const Json& more, const std::vector<std::string>& keys) {
  for (const Json& each : more) {
    const auto known = std::ranges::find_if(sum, [&](const Json& other) {
      return std::ranges::all_of(
          keys, [&](const std::string& key) { return other.value(key, "") == each.value(key, ""); });
    });
    if (known == sum.end()) {
      sum.push_back(each);
    } else {
      (*known)["count"] = known->value("count", std::int64_t{0}) + each.value("count", std::int64_t{0});
    }
  }
}

double estimate_of(const Json& coverage) {
  const Json estimate = coverage.value("estimated_schedules", Json(0.0));
  return estimate.is_null() ? std::numeric_limits<double>::infinity() : estimate.get<double>();
}

bool is_race(const Json& outcomes) {
  const auto is_ok = [](const Json& outcome) { return outcome.value("verdict", "") == "ok"; };
  return std::ranges::any_of(outcomes, is_ok) && !std::ranges::all_of(outcomes, is_ok);
}

Json join(const std::vector<Part>& parts) {
  const auto failing =
      std::ranges::find_if(parts, [](const Part& part) { return part.result.value("verdict", "") != "ok"; });
  Json joined = (failing == parts.end() ? parts.front() : *failing).result;
  Json outcomes = Json::array();
  Json failures = Json::array();
  std::int64_t schedules = 0;
  std::int64_t distinct = 0;
  std::int64_t cut = 0;
  double estimated = 0;
  for (const Part& part : parts) {
    add_counts(outcomes, part.result["outcomes"], {"verdict", "kind"});
    add_counts(failures, part.result["failures"], {"verdict", "kind", "headline"});
    schedules += part.result.value("schedules", std::int64_t{0});
    const Json& coverage = part.result["coverage"];
    distinct += coverage.value("distinct_schedules", std::int64_t{0});
    cut += coverage.value("cut_short", std::int64_t{0});
    estimated = std::max(estimated, estimate_of(coverage));
  }
  const bool is_complete = parts.size() == parts.front().shard.count &&
                           std::ranges::all_of(parts, [](const Part& part) { return part.is_whole; });
  if (is_race(outcomes)) {
    joined["verdict"] = "race";  // as one search would call it, though each part had a single outcome
  }
  joined["outcomes"] = outcomes;
  joined["failures"] = failures;
  joined["schedules"] = schedules;
  joined["exhaustive"] = is_complete;
  joined["coverage"] = {
      {"distinct_schedules", distinct}, {"cut_short", cut}, {"estimated_schedules", estimated}};
  if (!is_complete) {
    joined["coverage"]["bounds"] = Json::array(
        {fmt::format("{} of {} shards given, {} of them complete", parts.size(), parts.front().shard.count,
                     std::ranges::count_if(parts, [](const Part& part) { return part.is_whole; }))});
  }
  return joined;
}

std::string summary_of(const Json& joined) {
  std::string text = fmt::format("{}: {} schedules{}\n", joined.value("scenario", ""),
                                 joined.value("schedules", std::int64_t{0}),
                                 joined.value("exhaustive", false) ? "; the search was exhaustive" : "");
  for (const Json& outcome : joined["outcomes"]) {
    text += fmt::format("  {} x {} ({})\n", outcome.value("count", std::int64_t{0}),
                        outcome.value("verdict", ""), outcome.value("kind", ""));
  }
  for (const Json& failure : joined["failures"]) {
    text += fmt::format("{}\n  replay: {}\n", failure.value("headline", ""), failure.value("replay", ""));
  }
  for (const Json& bound : joined["coverage"].value("bounds", Json::array())) {
    text += fmt::format("not all: {}\n", bound.get<std::string>());
  }
  return text;
}

}  // namespace

MergedResult merge_results(const std::vector<NamedResult>& results) {
  std::vector<Part> parts;
  std::ranges::transform(results, std::back_inserter(parts), part_of);
  std::ranges::stable_sort(parts, {}, [](const Part& part) { return part.shard.index; });
  require_one_search(parts);
  const Json joined = join(parts);
  // A part without schedules expects nothing.
  const bool is_expected = std::ranges::all_of(parts, [](const Part& part) {
    return part.result["schedules"] == 0 || part.result.value("expected", false);
  });
  return {joined.dump(2, ' ', true, Json::error_handler_t::replace) + "\n", summary_of(joined), is_expected,
          joined.value("verdict", ""), joined.value("kind", "")};
}

MergedResult merge_results(const std::vector<std::string>& files) {
  std::vector<NamedResult> results;
  for (const std::string& file : files) {
    results.push_back({file, std::string(scenario::read_source(file).text())});
  }
  return merge_results(results);
}

}  // namespace rollcall::cli
