#include "viz/ci/sarif.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "viz/kinds/explanations.h"

namespace rollcall::viz {

namespace {

using Json = nlohmann::ordered_json;
using Status = TestOutcome::Status;

std::string rule_of(const TestOutcome& outcome) {
  if (is_error(outcome.status)) {
    return outcome.status == Status::invalid ? "invalid_scenario" : "internal_error";
  }
  if (outcome.verdict.empty()) {
    return "too_slow";
  }
  return outcome.verdict == "ok" ? "not_as_expected" : outcome.kind.empty() ? outcome.verdict : outcome.kind;
}

// The meaning of a rule, also for the rules that no report has.
std::string meaning_of(const std::string& rule) {
  if (const Explanation* explanation = find_explanation(rule)) {
    return explanation->meaning;
  }
  static const std::map<std::string, std::string> meanings{
      {"invalid_scenario", "The file cannot be read as a scenario."},
      {"internal_error", "rollcall itself failed on the scenario."},
      {"too_slow", "The simulation did not finish within its time limit."},
      {"not_as_expected", "The run completed, but the scenario expects something else."}};
  const auto found = meanings.find(rule);
  return found == meanings.end() ? rule : found->second;
}

std::string title_of(const std::string& rule) {
  const Explanation* explanation = find_explanation(rule);
  return explanation == nullptr ? meaning_of(rule) : explanation->title;
}

// Percent-encodes a path (RFC 3986), except unreserved characters and slashes.
std::string uri(std::string path) {
  while (path.starts_with("./")) {
    path.erase(0, 2);
  }
  std::string out;
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    out += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

// FNV-1a (Fowler, Noll, and Vo), the same on every machine.
std::string fingerprint(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}:1", hash);
}

Json list_of(Json only) {
  Json list = Json::array();
  list.push_back(std::move(only));
  return list;
}

Json location(const SourcePlace& place, const std::string& message = {}) {
  const bool is_absolute = place.file.starts_with('/');
  Json artifact = {{"uri", (is_absolute ? "file://" : "") + uri(place.file)}};
  if (!is_absolute) {
    artifact["uriBaseId"] = "%SRCROOT%";
  }
  Json region = {{"startLine", std::max<std::int64_t>(place.line, 1)}};
  if (place.column > 0) {
    region["startColumn"] = place.column;
  }
  Json object = {
      {"physicalLocation", {{"artifactLocation", std::move(artifact)}, {"region", std::move(region)}}}};
  if (!message.empty()) {
    object["message"] = {{"text", message}};
  }
  return object;
}

Json thread_flow(const TestOutcome::Calls& calls, const std::string& file) {
  Json locations = Json::array();
  for (const TestOutcome::Calls::Call& call : calls.calls) {
    const SourcePlace place = call.place.file.empty() ? SourcePlace{file, 1, 0} : call.place;
    locations.push_back({{"location", location(place, call.text)}});
  }
  return {{"id", calls.ranks}, {"message", {{"text", calls.ranks}}}, {"locations", std::move(locations)}};
}

Json result_of(const TestOutcome& outcome, std::size_t rule_index) {
  const SourcePlace place = outcome.place.file.empty() ? SourcePlace{outcome.file, 1, 0} : outcome.place;
  const std::string replay = outcome.replay.empty() ? "" : "\nreplay: " + outcome.replay;
  Json result = {
      {"ruleId", rule_of(outcome)},
      {"ruleIndex", rule_index},
      {"level", "error"},
      {"message", {{"text", fmt::format("{}: {}{}", outcome.address(), outcome.reason(), replay)}}},
      {"locations", list_of(location(place))},
      {"partialFingerprints",
       {{"primaryLocationLineHash", fingerprint(rule_of(outcome) + "\n" + outcome.address())}}}};
  Json flows = Json::array();
  for (const TestOutcome::Calls& calls : outcome.calls) {
    if (!calls.calls.empty()) {
      flows.push_back(thread_flow(calls, outcome.file));
    }
  }
  if (!flows.empty()) {
    Json flow = Json::object();
    flow["threadFlows"] = std::move(flows);
    result["codeFlows"] = list_of(std::move(flow));
  }
  return result;
}

}  // namespace

std::string sarif_report(const TestRun& run, const std::string& version) {
  std::map<std::string, std::size_t> rules;  // each rule's index
  Json descriptions = Json::array();
  Json results = Json::array();
  for (const TestOutcome& outcome : run.outcomes) {
    if (outcome.status == Status::passed) {
      continue;
    }
    const std::string rule = rule_of(outcome);
    const auto [entry, is_new] = rules.try_emplace(rule, rules.size());
    if (is_new) {
      descriptions.push_back({{"id", rule},
                              {"shortDescription", {{"text", title_of(rule)}}},
                              {"fullDescription", {{"text", meaning_of(rule)}}},
                              {"defaultConfiguration", {{"level", "error"}}}});
    }
    results.push_back(result_of(outcome, entry->second));
  }
  Json driver = {{"name", "rollcall"}, {"version", version}};
  driver["rules"] = std::move(descriptions);
  Json tool = Json::object();
  tool["driver"] = std::move(driver);
  Json invocation = Json::object();
  invocation["executionSuccessful"] = !run.interrupted;
  Json only = {{"tool", std::move(tool)}, {"columnKind", "unicodeCodePoints"}};
  only["invocations"] = list_of(std::move(invocation));
  only["results"] = std::move(results);
  Json object = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}};
  object["runs"] = list_of(std::move(only));
  return object.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::viz
