#include "sim/judge/complete_parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/judge/suspects.h"
#include "sim/wording/phrasing.h"
#include "sim/wording/wording_messages.h"

namespace rollcall::check {
namespace {

// The fields that have to agree for a send and a recv to meet.
struct Address {
  Rank from = 0;
  Rank to = 0;
  std::string group;
  std::int32_t tag = 0;
  friend auto operator<=>(const Address&, const Address&) = default;
};

// A send without a recv and a recv without a send that would meet if one argument were different.
struct Misfit {
  Address send;
  Address recv;

  bool same_ends() const { return send.from == recv.from && send.to == recv.to; }
  bool same_sender() const { return send.from == recv.from && send.to != recv.to; }
  bool same_receiver() const { return send.to == recv.to && send.from != recv.from; }
};

// By address: the number of sends minus the number of recvs. Null if a rank receives from any source, or if a program
// is not known to its end.
std::optional<std::map<Address, std::int64_t>> balance_of(const std::vector<RankProgram>& programs) {
  std::map<Address, std::int64_t> balance;
  for (const RankProgram& program : programs) {
    if (!program.is_whole) {
      return std::nullopt;
    }
    for (const ProgramCall& call : program.calls) {
      if (!is_point_to_point(call.kind)) {
        continue;
      }
      if (call.peer < 0) {
        return std::nullopt;
      }
      const bool sends = call.kind == OpKind::send;
      balance[{sends ? program.rank : call.peer, sends ? call.peer : program.rank, call.group, call.tag}] +=
          sends ? 1 : -1;
    }
  }
  return balance;
}

std::vector<Misfit> misfits_of(const std::map<Address, std::int64_t>& balance) {
  std::vector<Misfit> misfits;
  for (const auto& [send, sends] : balance) {
    for (const auto& [recv, recvs] : balance) {
      const Misfit misfit{send, recv};
      if (sends > 0 && recvs < 0 && (misfit.same_ends() || misfit.same_sender() || misfit.same_receiver())) {
        misfits.push_back(misfit);
      }
    }
  }
  return misfits;
}

// The stuck messages of a verdict, each with the rank that made it.
std::vector<std::pair<Rank, Call>> stuck_messages(const Verdict& verdict) {
  std::vector<std::pair<Rank, Call>> messages;
  const auto add = [&](const RankSet& ranks, const Call& call) {
    const auto kind = parse_op_kind(call.op);
    if (kind && is_point_to_point(*kind) && call.peer >= 0 && !ranks.empty()) {
      messages.emplace_back(ranks.first(), call);
    }
  };
  if (const auto* deadlock = std::get_if<Deadlock>(&verdict)) {
    if (deadlock->finding.at && deadlock->finding.kind != FindingKind::rank_crashed) {
      add(deadlock->finding.at->waiting, deadlock->finding.at->call);
    }
    for (const Place& place : deadlock->cycle) {
      add(place.waiting, place.call);
    }
  } else if (const auto* leak = std::get_if<ResourceLeak>(&verdict)) {
    for (const Variant& variant : leak->calls) {
      add(variant.ranks, variant.call);
    }
  }
  return messages;
}

bool is_end(const Address& address, Rank rank, const Call& call) {
  const bool sends = call.op == "send";
  return address.from == (sends ? rank : call.peer) && address.to == (sends ? call.peer : rank);
}

RankSet culprits_of(const std::vector<Misfit>& misfits) {
  RankSet culprits;
  for (const Misfit& misfit : misfits) {
    if (!misfit.same_receiver()) {
      culprits.insert(misfit.send.from);
    }
    if (!misfit.same_sender()) {
      culprits.insert(misfit.recv.to);
    }
  }
  return culprits;
}

// The rank that all pairs of ranks have in common whose sends and recvs are not equally many. Null if there is no such
// rank, or if it could be either one of a pair.
std::optional<Rank> only_uneven_rank(const std::map<Address, std::int64_t>& balance) {
  std::set<std::pair<Rank, Rank>> pairs;
  for (const auto& [address, difference] : balance) {
    if (difference != 0) {
      pairs.insert(std::minmax(address.from, address.to));
    }
  }
  if (pairs.size() < 2) {
    return std::nullopt;
  }
  for (const Rank rank : {pairs.begin()->first, pairs.begin()->second}) {
    if (std::ranges::all_of(pairs,
                            [&](const auto& pair) { return pair.first == rank || pair.second == rank; })) {
      return rank;
    }
  }
  return std::nullopt;
}

// True if the rank's program has calls after this one. A recorded program may end where its rank got stuck.
bool goes_on_after(const std::vector<RankProgram>& programs, const std::pair<Rank, Call>& stuck) {
  const auto& [rank, call] = stuck;
  const auto program = std::ranges::find(programs, rank, &RankProgram::rank);
  if (program == programs.end()) {
    return false;
  }
  const auto made = std::ranges::find_if(program->calls, [&](const ProgramCall& each) {
    return to_string(each.kind) == call.op && each.peer == call.peer && each.group == call.group &&
           each.seq == call.seq;
  });
  return made != program->calls.end() && made + 1 != program->calls.end();
}

// The user has no send or recv to change: torch makes them, as the schedules of the stages say. A rank that leaves the
// pattern of its calls is no suspect: a stage does so because its neighbor has another schedule.
void explain_schedules(const std::vector<RankProgram>& programs,
                       const std::vector<std::pair<Rank, Call>>& stuck, Finding& finding) {
  word_schedules(finding);
  finding.suspects.clear();
  finding.suspicion.clear();
  const bool are_known =
      std::ranges::all_of(stuck, [&](const auto& message) { return goes_on_after(programs, message); });
  const auto balance = are_known ? balance_of(programs) : std::nullopt;
  const std::optional<Rank> uneven = balance ? only_uneven_rank(*balance) : std::nullopt;
  if (uneven) {
    finding.culprits = {*uneven};
    finding.tie = false;
    finding.cause +=
        fmt::format("; rank {} does not exchange as many with its neighbors as they do with it", *uneven);
  }
}

void word_ends(const Misfit& misfit, Finding& finding) {
  const auto& [send, recv] = misfit;
  const bool tags = send.group == recv.group;
  finding.headline =
      tags ? fmt::format("rank {} sends to rank {} with tag {}, but rank {} receives with tag {}", send.from,
                         send.to, send.tag, send.to, recv.tag)
           : fmt::format("rank {} sends to rank {} on {}, but rank {} receives on {}", send.from, send.to,
                         send.group, send.to, recv.group);
  finding.cause = fmt::format("messages meet only with the same group and tag, and these differ in the {}",
                              tags ? "tag" : "group");
  finding.advice = fmt::format("give both ends the same {}", tags ? "tag" : "group");
}

void word_sender(const Misfit& misfit, Finding& finding) {
  const auto& [send, recv] = misfit;
  finding.headline = fmt::format("rank {} sends to rank {} what rank {} receives from it ({})", send.from,
                                 send.to, recv.to, call_phrase(finding.at->call));
  finding.cause = fmt::format(
      "rank {} has no recv for this, and the recv of rank {} has no send: with a different dst the two would "
      "match",
      send.to, recv.to);
  finding.advice =
      fmt::format("let rank {} send to rank {}, or add a recv on rank {} and drop that of rank {}", send.from,
                  recv.to, send.to, recv.to);
}

void word_receiver(const Misfit& misfit, Finding& finding) {
  const auto& [send, recv] = misfit;
  finding.headline = fmt::format("rank {} receives from rank {}, but it is rank {} that sends to it ({})",
                                 recv.to, recv.from, send.from, call_phrase(finding.at->call));
  finding.cause = fmt::format(
      "rank {} has no send for this, and the send of rank {} has no recv: with a different src the two would "
      "match",
      recv.from, send.from);
  finding.advice =
      fmt::format("let rank {} receive from rank {}, or add a send on rank {} and drop that of rank {}",
                  recv.to, send.from, recv.from, send.from);
}

}  // namespace

bool has_stuck_messages(const Verdict& verdict) { return !stuck_messages(verdict).empty(); }

void find_wrong_peer(Verdict& verdict, const std::vector<RankProgram>& programs) {
  const std::vector<std::pair<Rank, Call>> stuck = stuck_messages(verdict);
  if (std::ranges::any_of(stuck, [](const auto& message) { return is_of_schedule(message.second); })) {
    explain_schedules(programs, stuck, *finding_of(verdict));
    return;
  }
  const auto balance = balance_of(programs);
  const std::vector<Misfit> misfits = balance ? misfits_of(*balance) : std::vector<Misfit>();
  const auto explains = [](const Misfit& misfit, const std::pair<Rank, Call>& message) {
    return is_end(message.second.op == "send" ? misfit.send : misfit.recv, message.first, message.second);
  };
  const auto shown = std::ranges::find_if(misfits, [&](const Misfit& misfit) {
    return std::ranges::any_of(stuck, [&](const auto& message) { return explains(misfit, message); });
  });
  if (shown == misfits.end()) {
    return;
  }
  Finding& finding = *finding_of(verdict);
  blame_alone(culprits_of(misfits), finding);
  const auto own = std::ranges::find_if(stuck, [&](const auto& message) {
    return explains(*shown, message) && finding.culprits.contains(message.first);
  });
  if (own != stuck.end()) {
    finding.at = Place{own->second, {own->first}, {own->second.peer}};
  }
  finding.tie = std::ranges::any_of(misfits, &Misfit::same_ends) ||
                (std::ranges::any_of(misfits, &Misfit::same_sender) &&
                 std::ranges::any_of(misfits, &Misfit::same_receiver));
  finding.kind = std::holds_alternative<Deadlock>(verdict) ? FindingKind::wrong_peer : finding.kind;
  shown->same_ends() ? word_ends(*shown, finding)
                     : (shown->same_sender() ? word_sender : word_receiver)(*shown, finding);
}

}  // namespace rollcall::check
