#pragma once

// TapeReplay: the story of a tape, told with sim/check's matchers and without an engine: no fibers, no backend's
// rules, no costs. Collectives meet by number, messages by the discipline of their backend, and a call on a stream
// comes to its turn when what the stream was told to wait for is complete.

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/check/evidence.h"
#include "sim/check/incidents.h"
#include "tests/conformance/op_tape.h"

namespace rollcall::conformance {

class TapeReplay {
 public:
  // Borrowed for the lifetime of the object. `backend`: "nccl" or "gloo".
  TapeReplay(const OpTape& tape, std::string backend);

  // Borrows from this object.
  check::Evidence evidence();

 private:
  struct Call {
    Op op;
    std::int64_t number = -1;  // the rank's
    std::int64_t batch = -1;
    std::vector<std::size_t> gate;  // the rank's calls that have to be complete before
    bool posted = false;
    bool done = false;
    std::int64_t seq = -1;
    check::MessageId message = check::no_message;
    Time at = 0;  // when it was issued; once done, when it was complete
  };
  struct Player {
    std::size_t next = 0;  // event
    bool inside = false;   // a group call that it has come to already
    Time now = 0;
    std::deque<Call> calls;
    std::size_t settled = 0;                                // so many of the first calls are posted and done,
    Time latest = 0;                                        // the last of them at this time
    std::map<std::uint8_t, std::vector<std::size_t>> held;  // by stream: the calls that it waits for
  };

  bool play(Rank rank);
  bool play_one(Rank rank, const TapeEvent& event);
  bool force_one();
  void take(Rank rank, const TapeEvent& event);
  bool post_ready(Rank rank);
  bool is_ready(const Player& self, std::size_t index) const;
  void post_collective(Rank rank, std::size_t index);
  void meet(GroupId group, std::int64_t seq);
  bool pair_messages();
  bool enter_group_call(Rank rank, const TapeEvent& event);
  void finish(Call& call, Time at);
  void end(Rank rank);
  void wait_in(Rank rank, const Call& call);
  void wait_in_event(Rank rank, const TapeEvent& event);
  check::MessageMatcher& messages_of(GroupId group);
  check::GroupMatcher& others_of(GroupId group, check::Channel channel);
  std::int64_t number_of(std::vector<RankList> lists, GroupId parent);
  Player& player(Rank rank) { return players_[static_cast<std::size_t>(rank)]; }

  const OpTape& tape_;
  std::string backend_;
  bool queues_;  // waits hold up streams, and not hosts
  std::vector<Player> players_;
  std::deque<check::GroupMatcher> matchers_;
  std::vector<std::unique_ptr<check::MessageMatcher>> messengers_;
  std::vector<std::array<std::unique_ptr<check::GroupMatcher>, check::group_channel_count>> others_;
  std::vector<check::GroupEvidence> groups_;
  std::unique_ptr<check::IncidentLog> incidents_;
  std::map<std::pair<GroupId, check::MessageId>, std::pair<Rank, std::size_t>> posters_;
  using CallIndex = std::pair<Rank, std::size_t>;
  std::map<std::pair<GroupId, std::int64_t>, std::vector<CallIndex>> slots_;  // who has come
  std::vector<check::RankStatus> status_;
  std::vector<check::Exception> exceptions_;
  std::vector<check::StoreWait> store_waits_;
  std::vector<std::vector<RankList>> rank_lists_;
};

}  // namespace rollcall::conformance
