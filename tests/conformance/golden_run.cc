#include "tests/conformance/golden_run.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

#include "sim/base/expects.h"
#include "sim/engine/simulate.h"
#include "sim/torch/torch_traits.h"
#include "tests/conformance/recorder.h"

namespace rollcall::golden {

namespace {

using nlohmann::json;

// (rank, group, message or collective, seq) of a call: messages are numbered separately.
using Slot = std::tuple<Rank, std::string, bool, std::int64_t>;

bool is_message(std::string_view op) { return op == "send" || op == "recv"; }

sim::Options options_of(const GoldenCase& golden, const Program& program) {
  sim::Options options{
      .world_size = golden.world_size,
      .backend = "gloo",
      .torch = golden.torch,
      .debug = golden.detail ? sim::DebugLevel::detail : sim::DebugLevel::off,
      .timeline = true,
      .timeout = golden.timeout,
      .finished_ranks_exit = golden.finished_ranks_exit,
      .tries_repairs = false,  // what the ranks do is compared, and not what would help them
  };
  for (std::size_t i = 0; i < program.groups.size(); ++i) {
    options.groups.push_back({.name = "g" + std::to_string(i + 1), .ranks = program.groups[i]});
  }
  return options;
}

bool nobody_waits(const Report& report) {
  return std::ranges::none_of(
      report.ranks, [](const RankClass& ranks) { return ranks.state == RankClass::State::waiting; });
}

// Returns the calls that never ended. A run is over when its ranks are; calls that all members had made by then would
// still have ended in processes that linger, as the golden ones did.
std::set<Slot> unfinished(const GoldenCase& golden, const Program& program, const Report& report) {
  const Timeline& timeline = report.timeline;
  std::set<Slot> slots;
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::size_t> callers;
  for (const Span& span : timeline.spans()) {
    if (span.moves_data() && span.end == Span::open) {
      const std::string group(timeline.name(span.group));
      const std::string op(timeline.name(span.name));
      slots.emplace(span.rank, group, is_message(op), span.seq);
      ++callers[{group, op, span.seq}];
    }
  }
  if (nobody_waits(report)) {
    std::erase_if(slots, [&](const Slot& slot) {
      const auto& [rank, group, is_message, seq] = slot;
      const std::size_t members = group == "world"
                                      ? static_cast<std::size_t>(golden.world_size)
                                      : program.groups.at(std::stoul(group.substr(1)) - 1).size();
      return !is_message && std::ranges::any_of(callers, [&](const auto& entry) {
        const auto& [key, count] = entry;
        return std::get<0>(key) == group && std::get<2>(key) == seq && count == members;
      });
    });
  }
  return slots;
}

// Returns "g1" for the label "g1[0,2]".
std::string group_name(const OpRecord& record) { return record.group.substr(0, record.group.find('[')); }

const char* outcome_of(RankClass::State state) {
  switch (state) {
    case RankClass::State::finished:
      return "completed";
    case RankClass::State::waiting:
      return "hang";
    case RankClass::State::raised:
      return "error";
    case RankClass::State::crashed:
      return "crash";
    case RankClass::State::running:
      return "running";
  }
  return "running";
}

// A transport error closes its group's connections, so nothing stays pending there, waited for or not.
bool has_broken(const RankLog& log, GroupId group) {
  return std::any_of(log.ops.begin(), log.ops.end(), [group](const OpRecord& record) {
    return record.group_id == group && !record.failed.empty();
  });
}

// Under DETAIL every call first runs a barrier and a comparison inside the call itself, so those two kinds of error
// belong to the call; any other error of waiting does not.
std::string raised_by_call(const OpRecord& record, bool detail) {
  bool is_check = record.failed.find("Detected mismatch between collectives") != std::string::npos ||
                  record.failed.find("monitoredBarrier") != std::string::npos;
  return record.raised.empty() && detail && is_check ? record.failed : record.raised;
}

// True if the harness never saw the call complete: torch ignores it, or makes it out of other calls.
bool never_says_so(const OpRecord& record, const TorchTraits& torch) {
  const bool is_made_of_others = row_of(record.kind).sizes == Sizes::divided && row_of(record.kind).reduces;
  return (record.meta && torch.ignores_meta_tensors) ||
         (is_made_of_others && torch.release > TorchRelease::v1_13);
}

json op_to_json(const OpRecord& record, bool detail, bool is_done) {
  json op{{"op", recorded_name(record)}, {"g", record.group},   {"numel", record.numel}, {"dtype", nullptr},
          {"async", record.async_op},    {"site", record.site}, {"i", record.index}};
  if (record.wait_all_ranks) {
    op["wait_all_ranks"] = *record.wait_all_ranks;
    op["async"] = nullptr;
  }
  if (record.is_message()) {
    op["tag"] = record.tag;
  } else {
    op["ci"] = record.collective_index;
  }
  if (record.peer) {
    op["peer"] = *record.peer;
  }
  if (record.dtype) {
    op["dtype"] = to_string(*record.dtype);
  }
  if (record.out_numel) {
    op["out_numel"] = *record.out_numel;
  }
  if (record.splits) {
    op["out_splits"] = record.splits->output;
    op["in_splits"] = record.splits->input;
  }
  if (record.reduce) {
    op["reduce"] = to_string(*record.reduce);
  }
  if (record.root) {
    op["root"] = *record.root;
  }
  if (record.input) {
    op["in"] = json::array();
    for (Bits bits : *record.input) {
      op["in"].push_back(element_to_json(bits, *record.dtype));
    }
  }
  std::string raised = raised_by_call(record, detail);
  if (!raised.empty()) {
    op["raised"] = raised;
  } else if (!is_done) {
    op["done"] = false;
  }
  return op;
}

json exception_to_json(const std::string& text) {
  std::size_t colon = text.find(": ");
  if (colon == std::string::npos) {
    return {{"type", text}, {"msg", ""}};  // died by a signal
  }
  return {{"type", text.substr(0, colon)}, {"msg", text.substr(colon + 2)}};
}

json stuck_to_json(const RankClass& state, const RankLog& log, const json& ops) {
  json stuck{{"op", nullptr}, {"i", nullptr}, {"pending", json::array()}};
  for (const json& op : ops) {
    if (!op.value("done", true)) {
      stuck["pending"].push_back(op["i"]);
    }
  }
  const std::optional<OpKind> kind = state.call ? parse_op_kind(state.call->op) : std::nullopt;
  if (!kind || is_about_groups(*kind) || is_about_store(*kind)) {
    return stuck;  // the harness recorded calls on groups, not the calls that create them
  }
  // The harness assumes that the rank waits for the last of them, because it cannot know.
  if (!stuck["pending"].empty()) {
    const OpRecord& record = log.ops[stuck["pending"].back().get<std::size_t>()];
    stuck["op"] = recorded_name(record);
    stuck["i"] = record.index;
    stuck["g"] = record.group;
    stuck["site"] = record.site;
  }
  return stuck;
}

json output_to_json(const Report& report, Rank rank, bool warnings) {
  json lines = json::array();
  for (const OutputLine& line : report.output) {
    if (line.rank != rank || line.warning != warnings) {
      continue;
    }
    if (warnings && line.text.starts_with("Warning: ")) {
      continue;  // torch's C++ writes these to stderr, past Python's warnings
    }
    if (warnings && line.text.starts_with("warning: ")) {
      continue;  // rollcall's own warnings about the order of groups
    }
    if (warnings) {
      std::string_view text = line.text;
      std::string_view type = "UserWarning";
      for (const std::string_view category : {"UserWarning", "FutureWarning"}) {
        if (text.starts_with(category) && text.substr(category.size()).starts_with(": ")) {
          type = category;
          text.remove_prefix(category.size() + 2);
        }
      }
      lines.push_back({{"type", type}, {"text", text}});
    } else {
      lines.push_back(line.text);
    }
  }
  return lines;
}

void put_unless_empty(json& rank, const char* key, json list) {
  if (!list.empty()) {
    rank[key] = std::move(list);
  }
}

// Keeps only the first and last operations of long runs, and no marks, as the files do.
void shorten_like(json& rank, const json& expected) {
  std::size_t kept = expected.at("ops").size();
  json& ops = rank["ops"];
  if (ops.size() <= kept || ops.size() != expected.at("ops_total").get<std::size_t>()) {
    return;
  }
  auto half = static_cast<std::ptrdiff_t>(kept / 2);
  ops.erase(ops.begin() + half, ops.end() - half);
  rank.erase("marks");
}

json rank_to_json(const GoldenCase& golden, const Report& report, Rank rank, const RankLog& log,
                  RankNotes& notes, const std::set<Slot>& open) {
  const RankClass& state = report.of(rank);
  bool is_dead = state.state == RankClass::State::crashed;  // and was asked for nothing after that
  json ops = json::array();
  for (const OpRecord& record : log.ops) {
    bool is_done = is_dead || has_broken(log, record.group_id) ||
                   !open.contains({rank, group_name(record), record.is_message(), record.seq});
    is_done = is_done && !never_says_so(record, traits_of(golden.torch));
    ops.push_back(op_to_json(record, golden.detail, is_done));
  }
  json result{{"rank", rank}, {"outcome", outcome_of(state.state)}, {"values", notes.values()}};
  if (state.state == RankClass::State::raised || is_dead) {
    result["exception"] = exception_to_json(state.exception);
  }
  if (state.state == RankClass::State::waiting) {
    result["stuck"] = stuck_to_json(state, log, ops);
  }
  put_unless_empty(result, "prints", output_to_json(report, rank, false));
  put_unless_empty(result, "warnings", output_to_json(report, rank, true));
  put_unless_empty(result, "caught", notes.caught());
  put_unless_empty(result, "marks", notes.marks());
  result["ops_total"] = ops.size();
  result["ops"] = std::move(ops);
  shorten_like(result, golden.document->at("ranks").at(static_cast<std::size_t>(rank)));
  return result;
}

// Returns the worst of the ranks' outcomes.
std::string worst_outcome(const json& ranks) {
  for (const char* outcome : {"crash", "hang", "error"}) {
    for (const json& rank : ranks) {
      if (rank["outcome"] == outcome) {
        return outcome;
      }
    }
  }
  return "completed";
}

}  // namespace

GoldenRun run_golden(const GoldenCase& golden, const Program& program) {
  auto ranks = static_cast<std::size_t>(golden.world_size);
  RunLog log(ranks);
  std::vector<RankNotes> notes(ranks);
  sim::Options options = options_of(golden, program);
  options.decorate = [&log](Backend& inner) { return std::make_unique<Recorder>(inner, log); };
  Report report = sim::run(options, [&](Rank rank) {
    auto index = static_cast<std::size_t>(rank);
    CaseContext context(rank, golden, log[index], notes[index]);
    program.body(context);
  });

  std::set<Slot> open = unfinished(golden, program, report);
  json document{{"ranks", json::array()}};
  for (Rank rank = 0; rank < golden.world_size; ++rank) {
    auto index = static_cast<std::size_t>(rank);
    document["ranks"].push_back(rank_to_json(golden, report, rank, log[index], notes[index], open));
  }
  document["outcome"] = worst_outcome(document["ranks"]);
  return {std::make_shared<const json>(std::move(document)), std::move(report)};
}

Report run_golden_on_tape(const GoldenCase& golden, const Program& program, conformance::OpTape& tape) {
  RunLog log(tape.ranks.size());
  std::vector<RankNotes> notes(tape.ranks.size());
  sim::Options options = options_of(golden, program);
  options.decorate = [&tape](Backend& inner) { return conformance::tape_around(inner, tape); };
  options.may_run_again = false;  // a tape does not say what a rank would have called next
  Report report = sim::run(options, [&](Rank rank) {
    conformance::run_on_tape(tape, [&] {
      const auto index = static_cast<std::size_t>(rank);
      CaseContext context(rank, golden, log[index], notes[index]);
      program.body(context);
    });
  });
  conformance::note_deaths(tape, report);
  return report;
}

}  // namespace rollcall::golden
