#pragma once

// TapeReplay: replays a tape with sim/match's matchers and without an engine: no fibers, no backend's rules, no costs.
// Collectives meet by number, messages by their backend's rules, and a call on a stream gets its turn when everything
// that the stream was told to wait for is over. If a rank on the tape leaves a call that by these rules never ends, the
// replay lets it leave at the tape's time.

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/match/evidence.h"
#include "sim/match/incidents.h"
#include "tests/conformance/op_tape.h"
#include "tests/conformance/tape_device.h"

namespace rollcall::conformance {

// Facts about the machine that are not on the tape.
struct TapeMachine {
  std::string backend = "nccl";  // or "gloo"
  int comm_slots = 0;            // how many collectives a GPU runs at once; 0: any number
  bool check_leaks = false;      // groups have to be destroyed
  std::vector<Rank> hosts{};     // by rank
  std::vector<Device> gpus{};    // by rank: its own GPU; empty if ranks own none
  TorchRelease torch = newest_torch;
  bool new_group_waits_for_all = false;
};

class TapeReplay {
 public:
  // `tape` is borrowed for the lifetime of the object.
  TapeReplay(const OpTape& tape, TapeMachine machine);

  // Returns the evidence at the time when nothing could move, or all ranks were done. It borrows from this object.
  check::Evidence evidence();

 private:
  using Number = TapeDevice::Number;
  struct Player {
    std::size_t next = 0;  // event
    bool entered = false;  // it has already reached this group call
    bool dead = false;
    TapeDevice device;
  };

  void play_all();
  void settle(Time now);
  bool play(Rank rank, Time now);
  bool play_one(Rank rank, const TapeEvent& event, Time now);
  bool is_through(Rank rank);
  bool has_waited(Player& self, const TapeEvent& event);
  std::optional<Time> next_time(Time now) const;
  bool let_one_go(Time now);
  void let_go(Rank rank, const TapeEvent& event);
  bool is_stuck(Time now) const;
  void note_timeout(Rank rank, const TapeEvent& event);
  void note_late_call(const Op& op, std::int64_t seq, Time at);
  bool let_die(Time now);
  void die(Rank rank);

  void take(Rank rank, const TapeEvent& event);
  void refuse(Rank rank, const TapeEvent& event);
  Rank user_of_gpu(Rank rank, const Op& op) const;
  void find_shared_gpus();
  bool start_calls(Rank rank);
  void start_collective(Rank rank, Number number);
  void meet(GroupId group, std::int64_t seq);
  bool pair_messages();
  bool enter_group_call(Rank rank, const TapeEvent& event);

  void end(Rank rank);
  void wait_in(Rank rank, std::optional<Number> call);
  void wait_in_event(Rank rank, const TapeEvent& event);
  std::optional<Number> call_of(const Player& self, const TapeEvent& event) const;
  void find_leaks();

  check::MessageMatcher& messages_of(GroupId group);
  check::GroupMatcher& others_of(GroupId group, check::Channel channel);
  std::int64_t number_of(std::vector<RankList> lists, GroupId parent);
  Player& player(Rank rank) { return players_[static_cast<std::size_t>(rank)]; }
  const std::deque<TapeEvent>& events_of(Rank rank) const {
    return tape_.ranks[static_cast<std::size_t>(rank)].events;
  }
  Rank world_size() const { return static_cast<Rank>(players_.size()); }

  const OpTape& tape_;
  TapeMachine machine_;
  bool queues_;  // waits block streams, not hosts
  std::vector<Player> players_;
  std::deque<check::GroupMatcher> matchers_;
  std::vector<std::unique_ptr<check::MessageMatcher>> messengers_;
  std::vector<std::array<std::unique_ptr<check::GroupMatcher>, check::group_channel_count>> others_;
  std::vector<check::GroupEvidence> groups_;
  std::unique_ptr<check::IncidentLog> incidents_;
  using CallOfRank = std::pair<Rank, Number>;
  std::map<std::pair<GroupId, check::MessageId>, CallOfRank> posters_;
  std::pair<Rank, std::int64_t> batch_{-1, -1};  // the batch whose messages are planned, and
  std::vector<check::MessageMatcher*> batched_;  // where
  std::map<std::pair<GroupId, std::int64_t>, std::vector<CallOfRank>> slots_;  // the calls that have arrived
  std::map<std::pair<GroupId, Rank>, Device> devices_;  // by group and global rank: the first one used
  std::vector<check::DeviceIncident> refused_;          // calls whose GPU may belong to another rank
  std::optional<check::TimeoutIncident> timeout_;       // the first
  std::map<GroupId, std::vector<Rank>> destroyed_;
  std::vector<check::RankStatus> status_;
  std::vector<check::Exception> exceptions_;
  std::vector<check::StoreWait> store_waits_;
  check::KeySetters key_setters_;
  std::vector<check::Leak> leaks_;
  std::vector<std::vector<RankList>> rank_lists_;
};

}  // namespace rollcall::conformance
