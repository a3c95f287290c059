#include "sim/diagnose/dump_case.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/diagnose/dump_compare.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

std::size_t open_calls(const RankOps& ops) {
  return static_cast<std::size_t>(std::ranges::count(ops.ops, false, &DumpOp::finished));
}

// Nobody reads chains of thousands of nodes.
constexpr std::size_t chain_max = 64;

void set_arguments(const DumpCase& job, const DumpRecord& record, Call& call) {
  const DumpCall& recorded = job.view.job.calls[record.call];
  call.numel = recorded_elements(recorded);
  call.dtype = recorded.dtype();
  if (recorded.is_message()) {
    const Rank group_rank = recorded.op == "send" ? recorded.destination : recorded.source;
    call.peer = job.view.member_of(record.group, group_rank);
  }
  if (const DumpFrame* frame = user_frame(job.view.job, record)) {
    call.label = frame->function;
    call.site = fmt::format("{}:{}", frame->file, frame->line);
  }
  call.group = group_phrase(job.view.job.groups[record.group]);
}

std::string wait_line(const DumpCase& job, const WaitNode& node) {
  const RankSet waiting = ranks_of(node);
  return fmt::format("{} in {} for {}", with_verb(waiting, "waits", "wait"),
                     call_phrase(name_node(job, node)), ranks_phrase(blockers_of(node)));
}

// The nodes that lead to the culprits, the nearest first: those that wait for the culprits only, then those that
// wait for these, and so on.
class Approach {
 public:
  Approach(const DumpCase& job, const RankSet& culprits)
      : job_(job), waiters_(job.waits.nodes.size()), seen_(job.waits.nodes.size(), false) {
    for (std::size_t i = 0; i < job.waits.nodes.size(); ++i) {
      for (const Blocker& blocker : job.waits.nodes[i].blockers) {
        if (const auto place = job.waits.node_of.find(blocker.rank); place != job.waits.node_of.end()) {
          waiters_[place->second].push_back(i);
        }
      }
    }
    enter(culprits, true);
    follow();
    enter(culprits, false);  // cycles
    follow();
  }

  const std::vector<std::size_t>& order() const { return order_; }

 private:
  void enter(const RankSet& culprits, bool waits_for_no_other) {
    for (std::size_t i = 0; i < job_.waits.nodes.size(); ++i) {
      const RankSet blockers = blockers_of(job_.waits.nodes[i]);
      if (blockers.meets(culprits) && (!waits_for_no_other || culprits.contains(blockers))) {
        add(i);
      }
    }
  }

  void add(std::size_t node) {
    if (!seen_[node]) {
      seen_[node] = true;
      order_.push_back(node);
    }
  }

  void follow() {
    for (; next_ < order_.size(); ++next_) {
      for (const std::size_t waiter : waiters_[order_[next_]]) {
        add(waiter);
      }
    }
  }

  const DumpCase& job_;
  std::vector<std::vector<std::size_t>> waiters_;  // by node: the nodes that wait for its ranks
  std::vector<bool> seen_;
  std::vector<std::size_t> order_;
  std::size_t next_ = 0;
};

std::string shapes_phrase(const DumpCall& call) {
  const auto list = [](const std::vector<std::vector<std::int64_t>>& shapes) {
    std::vector<std::string> texts;
    for (const std::vector<std::int64_t>& shape : shapes) {
      texts.push_back(fmt::format("[{}]", fmt::join(shape, ", ")));
    }
    return fmt::format("{}", fmt::join(texts, " "));
  };
  return call.inputs == call.outputs ? list(call.inputs)
                                     : fmt::format("{} -> {}", list(call.inputs), list(call.outputs));
}

}  // namespace

DumpCase::DumpCase(const JobDump& job)
    : view(job),
      messages(view),
      waits(find_waits(view, messages)),
      roots(find_roots(waits)),
      progress(progress_of(view, waits, roots)) {}

std::string group_phrase(const DumpGroup& group) {
  const bool says_nothing = group.description.empty() || group.description == "undefined";
  return says_nothing ? "group " + group.name : group.description;
}

Call name_message(const DumpCase& job, const RankOps& ops, std::uint32_t index) {
  const DumpRecord& record = ops.dump->records[index];
  const DumpCall& recorded = job.view.job.calls[record.call];
  Call call;
  call.op = recorded.op;
  call.seq = record.message_seq();
  set_arguments(job, record, call);
  return call;
}

Call name_call(const DumpCase& job, const RankOps& ops, const DumpOp& op) {
  const DumpRecord& record = ops.record_of(op);
  if (op.kind == DumpOp::Kind::message) {
    return name_message(job, ops, op.record);
  }
  Call call;
  call.op = job.view.job.calls[record.call].op;
  call.seq = seq_of(job.view.calls_of(op.group), op.position);
  set_arguments(job, record, call);
  if (op.kind == DumpOp::Kind::batch) {
    call.op = "batch_isend_irecv";
    call.seq = record.message_seq();
  }
  return call;
}

Call name_node(const DumpCase& job, const WaitNode& node) {
  return name_call(job, *job.view.ops_of(node.ranks.front()), *node.ops.front());
}

const DumpCall& recorded_call(const DumpCase& job, const WaitNode& node) {
  return job.view.job.calls[job.view.ops_of(node.ranks.front())->record_of(*node.ops.front()).call];
}

// A dump may claim anything, so this guards against overflow.
std::int64_t elements_of(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::int64_t total = 0;
  for (const std::vector<std::int64_t>& shape : shapes) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
      if (__builtin_mul_overflow(count, extent, &count)) {
        return -1;
      }
    }
    if (__builtin_add_overflow(total, count, &total)) {
      return -1;
    }
  }
  return total;
}

std::int64_t recorded_elements(const DumpCall& call) { return elements_of(call.common_shapes()); }

std::string arguments_phrase(const DumpCall& call) {
  const std::string dtype = call.dtype();
  const bool says_nothing = call.inputs.empty() && call.outputs.empty() && dtype.empty();
  return says_nothing ? call.op : fmt::format("{} of {} {}", call.op, shapes_phrase(call), dtype);
}

RankSet ranks_without_dump(const JobDump& job) {
  RankSet members;
  for (const DumpGroup& group : job.groups) {
    members.insert(RankSet::of(group.members));
  }
  RankSet present;
  for (const RankDump& dump : job.ranks) {
    present.insert(dump.rank);
  }
  // A rank that never used a group is not listed in it. The ranks below the last known one exist nevertheless.
  if (std::ranges::any_of(job.groups, &DumpGroup::is_by_use)) {
    members.insert(RankSet::range(0, present.ranges().back().last));
  }
  return difference(members, present);
}

RankSet ranks_without_messages(const DumpCase& job) {
  RankSet ranks;
  RankSet empty;  // these do not say which recorder wrote them
  RankSet others;
  for (const RankOps& ops : job.view.ranks) {
    RankSet& set = ops.dump->skips_messages ? ranks : ops.dump->records.empty() ? empty : others;
    set.insert(RankSet{ops.dump->rank});
  }
  ranks.insert(others.empty() && !ranks.empty() ? empty : RankSet());
  return ranks;
}

bool has_unrecorded_messages(const DumpCase& job) {
  return std::ranges::any_of(job.view.ranks, [](const RankOps& ops) {
    return std::ranges::any_of(ops.dump->records,
                               [](const DumpRecord& record) { return record.unrecorded > 0; });
  });
}

RankSet ranks_of(const WaitNode& node) { return RankSet::of(node.ranks); }

RankSet ranks_in(const std::map<Rank, std::size_t>& node_of) {
  RankSet ranks;
  for (const auto& [rank, node] : node_of) {
    ranks.insert(rank);
  }
  return ranks;
}

RankSet ranks_past(const DumpCase& job, const WaitNode& node) {
  RankSet past;
  for (const GroupMember& member : job.view.calls_of(node.group).members) {
    if (const DumpOp* op = member.at(node.position); op != nullptr && op->finished) {
      past.insert(member.rank);
    }
  }
  return past;
}

RankSet blockers_of(const WaitNode& node) {
  RankSet ranks;
  for (const Blocker& blocker : node.blockers) {
    ranks.insert(blocker.rank);
  }
  return ranks;
}

RankSet blockers_of(const WaitNode& node, Blocker::Why why) {
  RankSet ranks;
  for (const Blocker& blocker : node.blockers) {
    if (blocker.why == why) {
      ranks.insert(blocker.rank);
    }
  }
  return ranks;
}

void set_group(const DumpCase& job, std::uint32_t group, Diagnosis& diagnosis) {
  const DumpGroup& place = job.view.job.groups[group];
  diagnosis.group_name = place.name;
  diagnosis.group_description = place.description;
  diagnosis.group_ranks = RankSet::of(place.members);
}

const WaitNode& telling_node(const DumpCase& job, const RankSet& culprits) {
  const auto members = [&job](const WaitNode& node) {
    return job.view.job.groups[node.group].members.size();
  };
  const WaitNode* best = &job.waits.nodes.front();
  std::size_t most_open = 0;
  for (const WaitNode& node : job.waits.nodes) {
    const bool is_owed = std::ranges::any_of(node.blockers, [&](const Blocker& blocker) {
      return culprits.contains(blocker.rank) && blocker.why != Blocker::Why::held_up;
    });
    if (!is_owed) {
      continue;
    }
    for (const Rank rank : node.ranks) {
      const std::size_t open = open_calls(*job.view.ops_of(rank));
      if (open > most_open || (open == most_open && members(node) < members(*best))) {
        most_open = open;
        best = &node;
      }
    }
  }
  return *best;
}

void set_place(const DumpCase& job, const WaitNode& node, const RankSet& missing, Diagnosis& diagnosis) {
  diagnosis.finding.at = Place{name_node(job, node), ranks_of(node), missing};
  diagnosis.is_message = node.kind != DumpOp::Kind::collective;
  set_group(job, node.group, diagnosis);
}

Diagnosis never_used(const DumpCase& job, const WaitNode& node, const RankSet& outsiders) {
  Diagnosis diagnosis = diagnosis_of(FindingKind::partial_subgroup, Confidence::low, outsiders);
  set_place(job, node, outsiders, diagnosis);
  diagnosis.finding.headline =
      fmt::format("{} never used {}, which the other members wait in", ranks_phrase(outsiders),
                  group_phrase(job.view.job.groups[node.group]));
  diagnosis.finding.advice = "call new_group and the group's collectives on every member, in one order";
  return diagnosis;
}

namespace {

// The nodes of a cycle, each followed by one that it waits for where possible; the culprits' node comes first.
std::vector<std::size_t> walked(const DumpCase& job, std::vector<std::size_t> cycle,
                                const RankSet& culprits) {
  std::vector<std::size_t> way;
  const auto holds_culprit = [&](std::size_t node) {
    return std::ranges::any_of(job.waits.nodes[node].ranks,
                               [&](Rank rank) { return culprits.contains(rank); });
  };
  auto next = std::ranges::find_if(cycle, holds_culprit);
  while (!cycle.empty()) {
    const std::size_t node = next == cycle.end() ? cycle.front() : *next;
    way.push_back(node);
    std::erase(cycle, node);
    next = std::ranges::find_if(cycle, [&](std::size_t other) {
      return std::ranges::any_of(job.waits.nodes[node].blockers, [&](const Blocker& blocker) {
        const auto place = job.waits.node_of.find(blocker.rank);
        return place != job.waits.node_of.end() && place->second == other;
      });
    });
  }
  return way;
}

// The waits from the farthest one to the culprits; a cycle is walked around once.
std::vector<std::size_t> chain_of(const DumpCase& job, const RankSet& culprits) {
  std::vector<std::size_t> order = Approach(job, culprits).order();
  std::vector<std::size_t> around;
  for (const std::vector<std::size_t>& cycle : job.roots.cycles) {
    const bool is_met = std::ranges::any_of(
        cycle, [&](std::size_t node) { return std::ranges::find(order, node) != order.end(); });
    if (is_met) {
      const std::vector<std::size_t> way = walked(job, cycle, culprits);
      around.insert(around.end(), way.begin(), way.end());
    }
  }
  std::erase_if(order, [&](std::size_t node) { return std::ranges::find(around, node) != around.end(); });
  std::ranges::reverse(order);
  order.insert(order.end(), around.begin(), around.end());
  const std::size_t left_out = order.size() - std::min(order.size(), chain_max);
  order.erase(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(left_out));
  return order;
}

}  // namespace

void add_victims(const DumpCase& job, Diagnosis& diagnosis) {
  const RankSet& culprits = diagnosis.finding.culprits;
  for (const WaitNode& node : job.waits.nodes) {
    const RankSet victims = difference(ranks_of(node), culprits);
    if (!victims.empty()) {
      diagnosis.victims.push_back({victims, name_node(job, node), blockers_of(node)});
    }
    if (const RankSet held = intersection(ranks_of(node), culprits); !held.empty()) {
      diagnosis.held.push_back({held, name_node(job, node), blockers_of(node)});
    }
  }
  for (const std::size_t node : chain_of(job, culprits)) {
    diagnosis.finding.chain.push_back(wait_line(job, job.waits.nodes[node]));
  }
}

}  // namespace rollcall::check
