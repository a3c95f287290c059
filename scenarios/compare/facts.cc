#include "scenarios/compare/facts.h"

#include <algorithm>
#include <cstddef>
#include <regex>

#include <fmt/core.h>

#include "scenarios/compare/times.h"

namespace rollcall::compare {
namespace {

bool order_matters(const Op& op) {
  if (op.kind == OpKind::recv && op.root < 0) {
    return true;  // takes the message that arrives first
  }
  const bool mixes =
      op.reduce == ReduceOp::sum || op.reduce == ReduceOp::product || op.reduce == ReduceOp::avg;
  return has_reduce_op(op.kind) && is_floating(op.dtype) && mixes;
}

std::string state_of(const RankClass& state) {
  const std::string word(to_string(state.state));
  const bool is_in_call = state.state == RankClass::State::waiting && state.call;
  return is_in_call ? fmt::format("{} in {}", word, call_phrase(*state.call)) : word;
}

// Empty if a statement raised, because its place is not a call.
std::string place_of(const Place& place) {
  if (place.call.group.empty()) {
    return {};
  }
  std::string text = call_phrase(place.call);
  if (!place.waiting.empty()) {
    text += fmt::format(", {} there", ranks_phrase(place.waiting));
  }
  if (!place.missing.empty()) {
    text += fmt::format(", {} missing", ranks_phrase(place.missing));
  }
  return text;
}

// The outcome of a receive from any source.
std::string completed_from(Rank source) { return fmt::format("completed, from {}", source); }

std::vector<CallFact> calls_of(const std::vector<real::Record>& log) {
  std::vector<CallFact> calls;
  const auto call_at = [&](const real::Record& record) -> CallFact& {
    return calls[static_cast<std::size_t>(record.call)];
  };
  for (const real::Record& record : log) {
    switch (record.kind) {
      case real::Record::Kind::issue:
        calls.push_back({describe(record.op.op), "pending", 0, order_matters(record.op.op)});
        break;
      case real::Record::Kind::complete:
        call_at(record).outcome = record.source >= 0 ? completed_from(record.source) : "completed";
        call_at(record).digest = record.digest;
        break;
      case real::Record::Kind::result:
        call_at(record).digest = record.digest;
        break;
      case real::Record::Kind::refuse:
      case real::Record::Kind::fail:
        call_at(record).outcome = fmt::format("{}: {}", record.type, normalized_error(record.text));
        break;
      case real::Record::Kind::drop:
        call_at(record).outcome = "dropped";
        break;
      case real::Record::Kind::begin:
      case real::Record::Kind::wait:
      case real::Record::Kind::connect:
      case real::Record::Kind::print:
      case real::Record::Kind::warn:
      case real::Record::Kind::finish:
      case real::Record::Kind::raise:
      case real::Record::Kind::limit:
      case real::Record::Kind::observe:
      case real::Record::Kind::gone:
      case real::Record::Kind::die:
        break;
    }
  }
  return calls;
}

// Replaces matches only in texts that contain `sign`: the expression is tried at every character, and most texts have
// no
// match.
std::string replaced_where(const std::string& text, const char* sign, const std::regex& expression,
                           const char* replacement) {
  return text.find(sign) == std::string::npos ? text : std::regex_replace(text, expression, replacement);
}

// Shortens "../gloo/transport/tcp/pair.cc:598" to "gloo/transport/tcp/pair.cc". Words may be long, so each is scanned
// only
// once.
std::string with_short_sources(const std::string& text) {
  static const std::regex source(R"(gloo/\w+(?:/\w+)*\.(?:cc|h)(?=:\d))");
  std::string shortened;
  std::size_t done = 0;
  for (std::size_t at = 0; (at = text.find("gloo/", at)) != std::string::npos;) {
    std::smatch match;
    const auto from = text.begin() + static_cast<std::ptrdiff_t>(at);
    if (!std::regex_search(from, text.end(), match, source, std::regex_constants::match_continuous)) {
      at += 1;
      continue;
    }
    const std::size_t blank = text.find_last_of(" \t\n\r\f\v[", at);
    const std::size_t word = std::max(done, blank == std::string::npos ? 0 : blank + 1);
    const std::string name = match.str();
    shortened += text.substr(done, word - done) + name.substr(name.rfind("gloo/"));
    done = std::min(text.find_first_not_of("0123456789", at + name.size() + 1), text.size());
    at = done;
  }
  return shortened + text.substr(done);
}

}  // namespace

std::string normalized_error(std::string text) {
  static const std::regex address(R"(\s*\[[0-9a-fA-F.:]+\](?::\d+)?)");  // " [127.0.0.1]:34567"
  static const std::regex duration(R"(\b\d+ms\b)");
  // How a closed connection is reported depends on what was in the socket.
  static const std::regex closed(R"((?:Read|Write) error: (?:Connection reset by peer|Broken pipe))");
  // Which of several failures a rank in a monitored barrier sees first is a race.
  constexpr std::string_view original = "Original exception: \n";
  if (const std::size_t at = text.find(original); at != std::string::npos) {
    text.replace(at + original.size(), std::string::npos, "...");
  }
  text = with_short_sources(text);
  text = replaced_where(text, "[", address, "");
  text = replaced_where(text, " error: ", closed, "Connection closed by peer");
  return replaced_where(text, "ms", duration, "...ms");
}

Facts facts_of(const Report& report, const std::vector<std::vector<real::Record>>& logs) {
  Facts facts;
  facts.scenario = report.scenario;
  facts.backend = report.backend;
  facts.verdict = verdict_word(report.verdict);
  facts.culprits = "none";
  facts.has_calls = !logs.empty();
  if (const Finding* finding = finding_of(report.verdict)) {
    facts.kind = finding->kind;
    facts.culprits = to_string(finding->culprits);
    // The statement that raised is not a call, and only the simulator's interpreter knows it.
    const bool is_call = finding->at && !finding->at->call.group.empty();
    facts.place = is_call ? place_of(*finding->at) : "";
    facts.stopped = finding->kind == FindingKind::deadline || finding->kind == FindingKind::never_connected;
  }
  for (Rank rank = 0; rank < report.world_size; ++rank) {
    const RankClass& state = report.of(rank);
    facts.ranks.push_back(
        {.state = state_of(state),
         .error = normalized_error(state.exception),
         .output = {},
         .calls = logs.empty() ? std::vector<CallFact>() : calls_of(logs[static_cast<std::size_t>(rank)])});
  }
  for (const OutputLine& line : report.output) {
    facts.ranks[static_cast<std::size_t>(line.rank)].output.push_back(line.warning ? "warning: " + line.text
                                                                                   : line.text);
  }
  return facts;
}

Facts facts_of_run(const real::Run& run, Rank ranks_per_node) {
  std::vector<std::vector<real::Record>> logs;
  for (const real::RankLog& rank : run.log.ranks) {
    logs.push_back(rank.records);
  }
  Facts facts = facts_of(run.report, logs);
  facts.times = times_of(logs, ranks_per_node);
  return facts;
}

}  // namespace rollcall::compare
