#pragma once

// A job for tests of the judge: the planned calls of each rank, run to the point where nothing moves, and recorded as a
// recorder would. The truth is in how the programs were changed, not in what the judge finds.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/diagnose/dump_builder.h"

namespace rollcall::check::test {

struct PlannedCall {
  std::string op;
  std::int64_t numel = 1;
  std::uint32_t group = 0;

  friend bool operator==(const PlannedCall&, const PlannedCall&) = default;
};

// Has tensor groups of `tensor` adjacent ranks (1: none), data groups across them, and the world.
class DumpJob {
 public:
  DumpJob(Rank world, Rank tensor, int steps) : dumps_(world), programs_(static_cast<std::size_t>(world)) {
    std::map<Rank, std::uint32_t> tensor_groups;
    std::map<Rank, std::uint32_t> data_groups;
    for (Rank first = 0; tensor > 1 && first < world; first += tensor) {
      std::vector<Rank> members;
      for (Rank rank = first; rank < first + tensor; ++rank) {
        members.push_back(rank);
      }
      tensor_groups[first / tensor] = dumps_.group("tp" + std::to_string(first), "mesh_tp", members);
    }
    for (Rank place = 0; tensor > 1 && place < tensor; ++place) {
      std::vector<Rank> members;
      for (Rank rank = place; rank < world; rank += tensor) {
        members.push_back(rank);
      }
      data_groups[place] = dumps_.group("dp" + std::to_string(place), "mesh_dp", members);
    }
    for (Rank rank = 0; rank < world; ++rank) {
      for (int step = 0; step < steps; ++step) {
        if (tensor > 1) {
          calls_of(rank).push_back({"all_gather", 8192, tensor_groups[rank / tensor]});
          calls_of(rank).push_back({"reduce_scatter", 8192, tensor_groups[rank / tensor]});
          calls_of(rank).push_back({"all_reduce", 16384, data_groups[rank % tensor]});
        } else {
          calls_of(rank).push_back({"all_reduce", 4096, 0});
          calls_of(rank).push_back({"all_reduce", 512, 0});
        }
        calls_of(rank).push_back({"all_reduce", 1, 0});
      }
    }
  }

  std::vector<PlannedCall>& calls_of(Rank rank) { return programs_[static_cast<std::size_t>(rank)]; }

  // Ranks issue up to `ahead` calls from the first one that does not finish.
  JobDump run(std::size_t ahead = 3) {
    std::vector<std::size_t> done(programs_.size(), 0);
    while (advance(done)) {
    }
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      const std::size_t issued = std::min(programs_[rank].size(), done[rank] + ahead);
      for (std::size_t i = 0; i < issued; ++i) {
        const PlannedCall& call = programs_[rank][i];
        dumps_.call(static_cast<Rank>(rank), call.op, call.numel, i < done[rank], call.group);
      }
    }
    dumps_.everyone_silent();
    return dumps_.job;
  }

 private:
  // Finishes every call that all members of its group have reached with equal arguments.
  bool advance(std::vector<std::size_t>& done) const {
    bool moved = false;
    for (std::uint32_t group = 0; group < dumps_.job.groups.size(); ++group) {
      const std::vector<Rank>& members = dumps_.job.groups[group].members;
      const PlannedCall* first = at(members.front(), done);
      const bool all_there = std::all_of(members.begin(), members.end(), [&](Rank rank) {
        const PlannedCall* call = at(rank, done);
        return call != nullptr && call->group == group && *call == *first;
      });
      if (all_there) {
        moved = true;
        for (const Rank rank : members) {
          ++done[static_cast<std::size_t>(rank)];
        }
      }
    }
    return moved;
  }

  const PlannedCall* at(Rank rank, const std::vector<std::size_t>& done) const {
    const auto index = static_cast<std::size_t>(rank);
    return done[index] < programs_[index].size() ? &programs_[index][done[index]] : nullptr;
  }

  DumpBuilder dumps_;
  std::vector<std::vector<PlannedCall>> programs_;
};

}  // namespace rollcall::check::test
