#include "sim/diagnose/dump_replay.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "sim/diagnose/dump_ops.h"

namespace rollcall::check {

namespace {

// The calls that one rank has recorded of one group.
struct Share {
  std::map<std::int64_t, std::uint64_t> tokens;  // by number of the call
  bool is_window = false;
};

class Replay {
 public:
  explicit Replay(JobDump& job) : job_(job), tokens_(agreement_tokens(job)) {
    for (const RankDump& dump : job.ranks) {
      for (const DumpRecord& record : dump.records) {
        if (is_message(record)) {
          ++messages_[lane_of(record)][sends(record) ? 0 : 1];
        } else {
          Share& share = shares_[{record.group, dump.rank}];
          share.tokens[record.collective_seq] = tokens_[record.call];
          share.is_window = dump.is_window;
        }
      }
    }
  }

  void run() {
    for (RankDump& dump : job_.ranks) {
      if (dump.has_states) {
        continue;
      }
      std::map<std::pair<Lane, bool>, std::int64_t> seen;
      for (DumpRecord& record : dump.records) {
        const bool met =
            is_message(record)
                ? ++seen[{lane_of(record), sends(record)}] <= counterparts(record) || dump.is_window
                : is_met(record);
        record.state = met ? DumpRecord::State::completed : DumpRecord::State::scheduled;
      }
    }
  }

 private:
  using Lane = std::tuple<std::uint32_t, Rank, Rank>;

  bool is_message(const DumpRecord& record) const { return job_.calls[record.call].is_message(); }
  bool sends(const DumpRecord& record) const { return job_.calls[record.call].op == "send"; }
  Lane lane_of(const DumpRecord& record) const {
    const DumpCall& call = job_.calls[record.call];
    return {record.group, call.source, call.destination};
  }

  // How many calls the other end has made; INT64_MAX if its rank has left no recording.
  std::int64_t counterparts(const DumpRecord& record) const {
    const DumpCall& call = job_.calls[record.call];
    const std::vector<Rank>& members = job_.groups[record.group].members;
    const auto place = static_cast<std::size_t>(sends(record) ? call.destination : call.source);
    const bool is_known =
        place < members.size() && find_rank(job_.ranks, members[place], &RankDump::rank) != nullptr;
    return is_known ? messages_.at(lane_of(record))[sends(record) ? 1 : 0] : INT64_MAX;
  }

  bool is_met(const DumpRecord& record) const {
    const std::vector<Rank>& members = job_.groups[record.group].members;
    return std::ranges::all_of(members, [&](Rank rank) {
      const auto share = shares_.find({record.group, rank});
      if (share == shares_.end()) {
        return !has_recording(rank);
      }
      const auto& [tokens, is_window] = share->second;
      const auto call = tokens.find(record.collective_seq);
      if (call != tokens.end()) {
        return call->second == tokens_[record.call];
      }
      const bool is_before = record.collective_seq < tokens.begin()->first;
      return is_before || (is_window && record.collective_seq > tokens.rbegin()->first);
    });
  }

  bool has_recording(Rank rank) const {
    const RankDump* dump = find_rank(job_.ranks, rank, &RankDump::rank);
    return dump != nullptr && !dump->is_window;
  }

  JobDump& job_;
  std::vector<std::uint64_t> tokens_;
  std::map<std::pair<std::uint32_t, Rank>, Share> shares_;
  std::map<Lane, std::array<std::int64_t, 2>> messages_;  // sends and receives
};

}  // namespace

void replay_states(JobDump& job) {
  if (!std::ranges::all_of(job.ranks, &RankDump::has_states)) {
    Replay(job).run();
  }
}

}  // namespace rollcall::check
