#include "scenarios/compare/excuses.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <string_view>

#include <fmt/core.h>

#include "sim/c10d/backend_traits.h"

namespace rollcall::compare {
namespace {

struct Excuse {
  std::string because;
  std::string_view from = "verdict";  // the first claim it applies to; it also applies to all later ones
  bool is_lack = false;               // see Claim
};

RankSet crashed_ranks(const Facts& facts) {
  RankSet ranks;
  for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
    if (facts.ranks[rank].state == to_string(RankClass::State::crashed)) {
      ranks.insert(static_cast<Rank>(rank));
    }
  }
  return ranks;
}

// The real ranks lack something: a call (sim/c10d/backend.cc), a way to make groups, or a type of elements. The
// simulator raises this error only where torch does.
std::optional<Excuse> lacks_something(const Facts& simulated, const Facts& real) {
  constexpr std::string_view refusal = "NotImplementedError: ";
  for (std::size_t rank = 0; rank < real.ranks.size(); ++rank) {
    const std::string& error = real.ranks[rank].error;
    const bool is_expected = rank < simulated.ranks.size() && simulated.ranks[rank].error == error;
    if (error.starts_with(refusal) && !is_expected) {
      return Excuse{.because = fmt::format("real ranks cannot do this: {}", error.substr(refusal.size())),
                    .is_lack = true};
    }
  }
  return std::nullopt;
}

std::optional<Excuse> was_stopped(const Facts&, const Facts& real) {
  return real.stopped ? std::optional(Excuse{"the real run reached its deadline; use a longer one"})
                      : std::nullopt;
}

// The calls that did meet may show what is wrong before the deadline, while other ranks are still on their way.
std::optional<Excuse> was_stopped_at_work(const Facts& simulated, const Facts& real) {
  const auto is_at_work = [](const RankFact& rank) {
    return rank.state == to_string(RankClass::State::running);
  };
  if (simulated.verdict != real.verdict || !std::ranges::any_of(real.ranks, is_at_work)) {
    return std::nullopt;
  }
  return Excuse{"real ranks were still at work when the run reached its deadline; use a longer one", "ranks"};
}

// A race says that some run goes wrong, not that this one does.
std::optional<Excuse> is_a_race(const Facts& simulated, const Facts& real) {
  if (simulated.verdict != "race" || real.verdict == "race") {
    return std::nullopt;
  }
  return Excuse{"a race shows only in some runs, and in this one other ranks or threads came first"};
}

// A simulated message is delivered, so that the report covers the whole program.
std::optional<Excuse> lost_a_message(const Facts& simulated, const Facts& real) {
  constexpr FindingKind kind = FindingKind::drop_before_wait;
  if (simulated.kind != kind || real.kind != kind) {
    return std::nullopt;
  }
  return Excuse{"the simulator goes on as if the message had not been lost", "ranks"};
}

// The first message is received first, and everything after it may depend on that.
std::optional<Excuse> received_from_others(const Facts& simulated, const Facts& real) {
  constexpr std::string_view from_anyone = "completed, from ";
  for (std::size_t rank = 0; rank < std::min(simulated.ranks.size(), real.ranks.size()); ++rank) {
    const auto& a = simulated.ranks[rank].calls;
    const auto& b = real.ranks[rank].calls;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i].outcome != b[i].outcome && a[i].outcome.starts_with(from_anyone) &&
          b[i].outcome.starts_with(from_anyone)) {
        return Excuse{
            fmt::format("rank {}, call {} received from another rank: a receive from any source takes the "
                        "message that arrives first",
                        rank, i)};
      }
    }
  }
  return std::nullopt;
}

// Applies from the first abort on. A rank that would abort on its own may learn of another rank's end before it does.
std::optional<Excuse> lost_a_rank(const Facts& simulated, const Facts& real) {
  const RankSet crashed = crashed_ranks(real);
  const RankSet predicted = crashed_ranks(simulated);
  const auto is_predicted = [&](Rank rank) { return predicted.contains(rank); };
  if (crashed.empty() || !std::ranges::all_of(crashed.to_vector(), is_predicted)) {
    return std::nullopt;
  }
  return Excuse{
      fmt::format("how far the others get before they learn that {} ended is a race", ranks_phrase(crashed)),
      "place"};
}

// Replaces all errors of Gloo's transport (tcp/pair.cc, tcp/unbound_buffer.cc) with one text.
std::string without_transport(const std::string& text) {
  static const std::regex transport(
      R"((\[gloo/transport/tcp/\w+\.cc\] (Timed out waiting|Connection closed by peer)|)"
      R"(Application timeout caused pair closure)[^\n"]*)");
  return std::regex_replace(normalized_error(text), transport, "transport error");
}

bool same_but_for_transport(const RankFact& a, const RankFact& b) {
  const auto same_line = [](const std::string& x, const std::string& y) {
    return x == y || without_transport(x) == without_transport(y);
  };
  const auto same_call = [&](const CallFact& x, const CallFact& y) {
    return x.call == y.call && same_line(x.outcome, y.outcome);
  };
  return a.state == b.state && same_line(a.error, b.error) &&
         std::ranges::equal(a.calls, b.calls, same_call) && std::ranges::equal(a.output, b.output, same_line);
}

bool has_timed_out(const RankFact& rank) {
  return std::ranges::any_of(rank.calls, [](const CallFact& call) {
    return call.outcome.find("Timed out waiting") != std::string::npos;
  });
}

// When a rank's wait has timed out, it closes its connections, and the others, whose waits end at the same moment, may
// see either error.
std::optional<Excuse> timed_out(const Facts& simulated, const Facts& real) {
  if (!std::ranges::any_of(simulated.ranks, has_timed_out) ||
      !std::ranges::equal(simulated.ranks, real.ranks, same_but_for_transport)) {
    return std::nullopt;
  }
  return Excuse{"which transport error a rank sees when others also time out is a race", "errors"};
}

// Ranks that pass different lists overwrite each other's addresses in the store (ProcessGroupGloo.cpp connects all
// members of a list under its group's name).
std::optional<Excuse> made_other_groups(const Facts& simulated, const Facts& real) {
  constexpr FindingKind kind = FindingKind::group_args_mismatch;
  if (simulated.kind != kind || real.kind != kind) {
    return std::nullopt;
  }
  return Excuse{"which address a rank with another list reads, and so which connection fails, is a race",
                "ranks"};
}

// Ranks that loop forever are stopped somewhere.
std::optional<Excuse> ran_into_a_limit(const Facts& simulated, const Facts& real) {
  if (simulated.verdict != "limit_reached" || real.verdict != "limit_reached") {
    return std::nullopt;
  }
  return Excuse{"each real rank counts its own steps; simulated ranks share one count", "ranks"};
}

// True if calls differ only in whether they had completed when their rank ended prematurely.
bool same_but_for_the_end(const RankFact& a, const RankFact& b) {
  const bool ended_early = a.state == b.state && (a.state == to_string(RankClass::State::raised) ||
                                                  a.state == to_string(RankClass::State::crashed));
  const auto was_under_way = [](const CallFact& call) {
    return call.outcome == "pending" || call.outcome == "completed";
  };
  return std::ranges::equal(a.calls, b.calls, [&](const CallFact& first, const CallFact& second) {
    return first.call == second.call && (first.outcome == second.outcome ||
                                         (ended_early && was_under_way(first) && was_under_way(second)));
  });
}

// A host that runs ahead of its GPU may end before it learns what its GPU has completed.
std::optional<Excuse> ended_ahead_of_its_gpu(const Facts& simulated, const Facts& real) {
  if (traits_of(real.backend).device != DeviceType::cuda ||
      !std::ranges::equal(simulated.ranks, real.ranks, same_but_for_the_end)) {
    return std::nullopt;
  }
  return Excuse{"which calls a GPU had completed when its rank raised or died is chance", "calls"};
}

// Ranks that share a GPU pretend to be on hosts of their own, or NCCL would refuse it (nccl_backend.cc). A rank there
// destroyed a group while the other member slept (NCCL 2.28.9); on one host, people saw it wait.
std::optional<Excuse> was_on_other_hosts(const Facts& simulated, const Facts& real) {
  if (real.no_times != shared_gpu) {
    return std::nullopt;
  }
  if (simulated.kind == FindingKind::duplicate_gpu && real.kind != simulated.kind) {
    return Excuse{
        "ranks that share a GPU here pretend to be on hosts of their own, so NCCL does not refuse it"};
  }
  if (simulated.place.starts_with(to_string(OpKind::destroy_process_group)) && real.kind != simulated.kind) {
    return Excuse{
        "ranks that share a GPU here pretend to be on hosts of their own, and between hosts destroying a "
        "group does not wait for its members"};
  }
  return std::nullopt;
}

// NCCL does not compare calls: those of ranks that move fewer bytes than the others may complete, and so may whole
// calls that happen to move as many. A network may notice messages that are too long.
std::optional<Excuse> met_on_nccl(const Facts& simulated, const Facts& real) {
  constexpr std::string_view mismatch = "mismatch";
  if (traits_of(real.backend).device != DeviceType::cuda || simulated.verdict != mismatch ||
      real.verdict != mismatch) {
    return std::nullopt;
  }
  return Excuse{"which ranks of calls that do not fit go on is chance: NCCL does not compare calls", "ranks"};
}

// True if a send that waits in the simulator has ended on the real ranks.
bool ended_before_its_receive(const RankFact& simulated, const RankFact& real) {
  for (std::size_t i = 0; i < std::min(simulated.calls.size(), real.calls.size()); ++i) {
    const CallFact& a = simulated.calls[i];
    const CallFact& b = real.calls[i];
    const bool is_send = a.call.starts_with("send(") || a.call.starts_with("isend(");
    if (is_send && a.call == b.call && a.outcome == "pending" && b.outcome == "completed") {
      return true;
    }
  }
  return false;
}

// A send ends when NCCL's buffers have its message, and small ones fit.
std::optional<Excuse> sent_into_buffers(const Facts& simulated, const Facts& real) {
  const std::string because =
      "messages that fit NCCL's buffers are sent before their receives; larger ones are not";
  if (traits_of(real.backend).device != DeviceType::cuda) {
    return std::nullopt;
  }
  if (simulated.kind != real.kind) {
    return simulated.kind == FindingKind::send_send ? std::optional(Excuse{because}) : std::nullopt;
  }
  for (std::size_t rank = 0; rank < std::min(simulated.ranks.size(), real.ranks.size()); ++rank) {
    if (ended_before_its_receive(simulated.ranks[rank], real.ranks[rank])) {
      return Excuse{because, "ranks"};
    }
  }
  return std::nullopt;
}

constexpr auto excuses = {
    was_on_other_hosts, met_on_nccl,      sent_into_buffers,    lacks_something,       was_stopped,
    is_a_race,          lost_a_message,   received_from_others, lost_a_rank,           timed_out,
    made_other_groups,  ran_into_a_limit, was_stopped_at_work,  ended_ahead_of_its_gpu};

}  // namespace

void excuse_differences(const Facts& simulated, const Facts& real, std::vector<Claim>& claims) {
  for (const auto excuse_of : excuses) {
    const std::optional<Excuse> excuse = excuse_of(simulated, real);
    if (!excuse) {
      continue;
    }
    for (auto claim = std::ranges::find(claims, excuse->from, &Claim::about); claim != claims.end();
         ++claim) {
      if (claim->judgement == Claim::Judgement::differs) {
        claim->judgement = Claim::Judgement::cannot_be_judged;
        claim->because = excuse->because;
        claim->is_lack = excuse->is_lack;
      }
    }
  }
}

}  // namespace rollcall::compare
