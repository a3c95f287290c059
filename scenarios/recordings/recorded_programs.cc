#include "scenarios/recordings/recorded_programs.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/recordings/recorded_statements.h"
#include "sim/c10d/backend_traits.h"
#include "sim/diagnose/dump_case.h"

namespace rollcall::scenario {
namespace {

using check::Counterpart;
using check::DumpCall;
using check::DumpCase;
using check::DumpGroup;
using check::DumpOp;
using check::DumpRecord;
using check::GroupCalls;
using check::GroupMember;
using check::JobDump;
using check::RankOps;

// Makes text a valid name in a scenario.
std::string name_from(const std::string& text) {
  std::string name;
  for (const char c : text) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  }
  const bool begins_badly = name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0;
  return begins_badly ? "group_" + name : name;
}

class Importer {
 public:
  Importer(const JobDump& job, const Diagnosis& diagnosis, const RecordedProgramOptions& options)
      : job_(job), diagnosis_(diagnosis), options_(options), case_(job) {
    stands_still_ =
        diagnosis.finding.kind != FindingKind::no_fault && diagnosis.finding.kind != FindingKind::straggler;
    device_fails_ = diagnosis.finding.kind == FindingKind::stuck_device;
  }

  RecordedPrograms programs() {
    result_.world_size = diagnosis_.world_size;
    result_.programs.resize(static_cast<std::size_t>(result_.world_size));
    choose_backend();
    name_groups();
    for (const GroupCalls& group : case_.view.groups) {
      choose_calls(group);
    }
    for (const RankOps& ops : case_.view.ranks) {
      add_program(ops);
    }
    for (const Rank rank : diagnosis_.without_dump.to_vector()) {
      guess_program(rank);
    }
    return std::move(result_);
  }

 private:
  // The state of the calls at one position of a group.
  struct Position {
    bool kept = true;
    bool over = false;
    const DumpOp* op = nullptr;  // of some member
    const RankOps* ops = nullptr;
  };
  // A statement of a rank without a dump, and the time at which its peers made the call it belongs to.
  struct Guess {
    std::int64_t time = 0;
    OrderedJson statement;
  };

  RecordedStatements write() const { return {job_, names_, options_}; }

  void choose_backend() {
    result_.backend = default_backend(DeviceType::cuda).name;
    for (const DumpCall& call : job_.calls) {
      if (traits_of(call.backend).device == DeviceType::cpu) {
        result_.backend = call.backend;
      }
    }
  }

  void name_groups() {
    std::set<std::string> taken = {"world"};
    for (const DumpGroup& group : job_.groups) {
      const bool is_world = static_cast<Rank>(group.members.size()) == result_.world_size &&
                            (group.description == "default_pg" || group.name == "0");
      if (is_world) {
        names_.emplace_back("world");
        continue;
      }
      const bool describes =
          !group.description.empty() && group.description != "undefined" && group.description != "default_pg";
      std::string name = name_from(describes ? group.description : group.name);
      if (taken.contains(name)) {
        name = name_from(name + "_" + group.name);
      }
      for (int i = 2; taken.contains(name); ++i) {
        name = fmt::format("{}_{}", name, i);
      }
      taken.insert(name);
      names_.push_back(name);
      if (!group.members.empty()) {
        result_.groups.emplace(name, group.members);
      }
    }
  }

  // A position is left out if some member's recording has lost it, and, in a healthy job, if some member has
  // not reached it yet.
  void choose_calls(const GroupCalls& group) {
    std::map<std::int64_t, Position>& positions = positions_[group.group];
    for (const GroupMember& member : group.members) {
      for (std::size_t i = 0; i < member.collectives.size(); ++i) {
        Position& position = positions[member.op(i).position];
        position.over |= member.op(i).finished;
        if (position.op == nullptr) {
          position.op = &member.op(i);
          position.ops = member.ops;
        }
      }
    }
    for (auto& [number, position] : positions) {
      bool all_have = true;
      for (const GroupMember& member : group.members) {
        position.over |= member.finished >= number;
        all_have &= member.ops == nullptr || member.at(number) != nullptr;
      }
      const bool must_meet = position.over || !stands_still_;
      position.kept = all_have || !must_meet;
    }
  }

  // Two million calls consist of a few hundred different ones.
  void add(Rank rank, const OrderedJson& statement) {
    const auto number = static_cast<std::uint32_t>(result_.statements.size());
    const auto [known, is_new] = numbers_.emplace(statement.dump(), number);
    if (is_new) {
      result_.statements.push_back(statement);
    }
    result_.programs[static_cast<std::size_t>(rank)].push_back(known->second);
  }

  // ---- Ranks with a dump ----

  void add_program(const RankOps& ops) {
    const bool stops = device_fails_ && diagnosis_.finding.culprits.contains(ops.dump->rank);
    for (const DumpOp& op : ops.ops) {
      if (stops && !op.finished) {
        return;  // its device does not reach this call, nor any later one
      }
      if (op.kind == DumpOp::Kind::collective) {
        add_collective(ops, op);
      } else {
        add_messages(ops, op);
      }
    }
  }

  void add_collective(const RankOps& ops, const DumpOp& op) {
    const Position& position = positions_[op.group].at(op.position);
    if (position.kept && is_member(op.group, ops.dump->rank)) {
      add(ops.dump->rank, write().collective(ops, op, position.over));
    }
  }

  bool is_member(std::uint32_t group, Rank rank) const {
    const std::vector<Rank>& members = job_.groups[group].members;
    return std::binary_search(members.begin(), members.end(), rank);
  }

  // If one of two ranks has lost its record of a message, the message no longer has another end.
  bool is_kept(const DumpOp& op, const Counterpart& other) const {
    const bool is_guessed = other.ops == nullptr && diagnosis_.without_dump.contains(other.rank);
    const bool must_meet = op.finished || !stands_still_;
    return other.rank >= 0 && (other.op != nullptr || is_guessed || !must_meet);
  }

  void add_messages(const RankOps& ops, const DumpOp& op) {
    std::vector<OrderedJson> messages;
    for (const std::uint32_t record : ops.parts_of(op)) {
      if (!job_.calls[ops.dump->records[record].call].is_message()) {
        continue;
      }
      const Counterpart other = case_.messages.counterpart(ops, record);
      if (is_kept(op, other)) {
        const bool waits = op.kind == DumpOp::Kind::message && !op.finished;
        messages.push_back(write().message(ops.dump->records[record], other.rank, waits));
        if (other.ops == nullptr) {
          guess_counterpart(ops, op, record, other.rank);
        }
      }
    }
    if (op.kind == DumpOp::Kind::batch && !messages.empty()) {
      add(ops.dump->rank, write().batch(messages, ops.record_of(op)));
      if (!op.finished) {
        add(ops.dump->rank, {{"wait", "batch"}});
      }
      return;
    }
    for (const OrderedJson& message : messages) {
      add(ops.dump->rank, message);
    }
  }

  // ---- Ranks without one ----

  // Adds the other end of a message. A culprit has not made those that its peers wait for.
  void guess_counterpart(const RankOps& ops, const DumpOp& op, std::uint32_t record, Rank rank) {
    if (!op.finished && diagnosis_.finding.culprits.contains(rank)) {
      return;
    }
    const DumpRecord& known = ops.dump->records[record];
    const bool sends = job_.calls[known.call].op == "recv";
    guesses_[rank].push_back(
        {known.created_ns,
         write().message(known, sends, ops.dump->rank, !op.finished && op.kind == DumpOp::Kind::message)});
  }

  // Adds the calls that its peers' calls pair with, in the order of the peers' clocks.
  void guess_program(Rank rank) {
    std::vector<Guess>& guesses = guesses_[rank];
    const bool is_culprit = diagnosis_.finding.culprits.contains(rank);
    for (const auto& [group, positions] : positions_) {
      if (!is_member(group, rank)) {
        continue;
      }
      for (const auto& [number, position] : positions) {
        if (position.kept && (position.over || !is_culprit)) {
          guesses.push_back({position.ops->record_of(*position.op).created_ns,
                             write().collective(*position.ops, *position.op, position.over)});
        }
      }
    }
    std::stable_sort(guesses.begin(), guesses.end(),
                     [](const Guess& a, const Guess& b) { return a.time < b.time; });
    for (const Guess& guess : guesses) {
      add(rank, guess.statement);
    }
    if (is_culprit) {
      add(rank, {{"raise", "left no dump"}});
    }
  }

  const JobDump& job_;
  const Diagnosis& diagnosis_;
  RecordedProgramOptions options_;
  DumpCase case_;
  bool stands_still_ = true;
  bool device_fails_ = false;
  std::vector<std::string> names_;  // by group
  std::map<std::uint32_t, std::map<std::int64_t, Position>> positions_;
  std::map<Rank, std::vector<Guess>> guesses_;
  std::map<std::string, std::uint32_t> numbers_;  // of statements
  RecordedPrograms result_;
};

}  // namespace

RecordedPrograms recorded_programs(const check::JobDump& job, const Diagnosis& diagnosis,
                                   const RecordedProgramOptions& options) {
  return Importer(job, diagnosis, options).programs();
}

}  // namespace rollcall::scenario
