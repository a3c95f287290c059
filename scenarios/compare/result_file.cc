#include "scenarios/compare/result_file.h"

#include <charconv>
#include <fstream>

#include <sys/utsname.h>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "real/backends/doctor.h"
#include "scenarios/format/version.h"

namespace rollcall::compare {
namespace {

using Json = nlohmann::ordered_json;

constexpr int format_version = 1;

Json call_to_json(const CallFact& call) {
  return {{"call", call.call},
          {"outcome", call.outcome},
          {"digest", fmt::format("{:016x}", call.digest)},
          {"order_matters", call.order_matters}};
}

CallFact call_from_json(const Json& json) {
  CallFact call{json.at("call"), json.at("outcome"), 0, json.at("order_matters")};
  const std::string digest = json.at("digest");
  const auto [end, error] = std::from_chars(digest.data(), digest.data() + digest.size(), call.digest, 16);
  if (error != std::errc() || end != digest.data() + digest.size()) {
    throw std::runtime_error(fmt::format("\"{}\" is not a digest", digest));
  }
  return call;
}

Json rank_to_json(const RankFact& rank) {
  Json json{{"state", rank.state}, {"error", rank.error}, {"output", rank.output}, {"calls", Json::array()}};
  for (const CallFact& call : rank.calls) {
    json["calls"].push_back(call_to_json(call));
  }
  return json;
}

Json times_to_json(const CallTimes& times) {
  return {{"op", to_string(times.kind)},
          {"dtype", to_string(times.dtype)},
          {"reduce", to_string(times.reduce)},
          {"bytes", times.bytes},
          {"ranks", times.ranks},
          {"nodes", times.nodes},
          {"times_us", times.times}};
}

CallTimes times_from_json(const Json& json) {
  const auto kind = parse_op_kind(json.at("op").get<std::string>());
  const auto dtype = parse_dtype(json.at("dtype").get<std::string>());
  const auto reduce = parse_reduce_op(json.at("reduce").get<std::string>());
  CallTimes times{.bytes = json.at("bytes"),
                  .ranks = json.at("ranks"),
                  .nodes = json.at("nodes"),
                  .times = json.at("times_us")};
  if (!kind || !dtype || !reduce || times.times.empty() || times.nodes < 1 || times.ranks < times.nodes) {
    throw std::runtime_error("it has times of a call that this program does not know");
  }
  times.kind = *kind;
  times.dtype = *dtype;
  times.reduce = *reduce;
  return times;
}

// The word is empty if nothing is wrong.
FindingKind kind_from_json(const std::string& word) {
  const std::optional<FindingKind> kind = word.empty() ? FindingKind::ok : parse_finding_kind(word);
  return kind ? *kind : throw std::runtime_error("it has a finding that this program does not know");
}

Facts facts_from_json(const Json& json) {
  if (json.at("schema_version") != format_version) {
    throw std::runtime_error("its version is not the one this program reads");
  }
  Facts facts{.scenario = json.at("scenario"),
              .backend = json.at("backend"),
              .verdict = json.at("verdict"),
              .kind = kind_from_json(json.at("kind")),
              .culprits = json.at("culprits"),
              .place = json.at("place"),
              .stopped = json.at("stopped"),
              .ranks = {}};
  for (const Json& rank : json.at("ranks")) {
    facts.ranks.push_back({rank.at("state"), rank.at("error"), rank.at("output"), {}});
    for (const Json& call : rank.at("calls")) {
      facts.ranks.back().calls.push_back(call_from_json(call));
    }
  }
  facts.no_times = json.at("time_reason");
  for (const Json& times : json.value("times", Json::array())) {
    facts.times.push_back(times_from_json(times));
  }
  if (facts.ranks.empty()) {
    throw std::runtime_error("it has no ranks");
  }
  return facts;
}

}  // namespace

Json machine() {
  utsname name = {};
  ::uname(&name);
  Json libraries = Json::object();
  for (const real::Diagnosis& diagnosis : real::examine()) {
    libraries[diagnosis.subject] = diagnosis.state;
  }
  return {{"system", fmt::format("{} {} {}", name.sysname, name.release, name.machine)},
          {"libraries", std::move(libraries)}};
}

std::string write_result(const Facts& facts, const std::string& deadline) {
  Json json{{"schema_version", format_version},
            {"rollcall", version()},
            {"machine", machine()},
            {"scenario", facts.scenario},
            {"backend", facts.backend},
            {"deadline", deadline},
            {"time_valid", facts.no_times.empty()},
            {"time_reason", facts.no_times},
            {"verdict", facts.verdict},
            {"kind", facts.kind == FindingKind::ok ? "" : to_string(facts.kind)},
            {"culprits", facts.culprits},
            {"place", facts.place},
            {"stopped", facts.stopped},
            {"ranks", Json::array()}};
  for (const RankFact& rank : facts.ranks) {
    json["ranks"].push_back(rank_to_json(rank));
  }
  json["times"] = Json::array();
  for (const CallTimes& times : facts.times) {
    json["times"].push_back(times_to_json(times));
  }
  return json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

Facts read_result(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw InvalidResult(fmt::format("{}: cannot be read", path));
  }
  try {
    return facts_from_json(Json::parse(file));
  } catch (const std::exception& error) {
    throw InvalidResult(fmt::format("{}: not a result file: {}", path, error.what()));
  }
}

}  // namespace rollcall::compare
