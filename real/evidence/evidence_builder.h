#pragma once

// EvidenceBuilder: replays the logs of a run through the matchers of sim/match.

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "real/rank/options.h"
#include "real/rank/run_log.h"
#include "sim/base/scope_table.h"
#include "sim/c10d/store_state.h"
#include "sim/match/evidence.h"
#include "sim/match/run_notes.h"
#include "sim/report/report.h"
#include "sim/report/timeline.h"

namespace rollcall::real {

// How far the logs are replayed.
struct Extent {
  // A rank whose call failed because others were gone or silent counts as waiting in it forever: the verdict
  // is about the moment before any rank noticed.
  bool until_noticed = false;
  // A dead rank's last calls that had not completed count as never made: its part of them never arrived.
  bool without_last_calls_of_dead = false;
};

class EvidenceBuilder {
 public:
  // Borrowed for the lifetime of the object.
  EvidenceBuilder(const Options& options, const std::vector<GroupMembers>& groups, const RunLog& log,
                  Extent extent);

  // Borrows from this object.
  const check::Evidence& evidence() const { return evidence_; }

  std::int64_t calls() const { return calls_; }  // of all ranks, accepted by the backend
  Timeline take_timeline() { return std::move(timeline_); }

  // How the call that a rank waits in may end.
  enum class Outlook : std::uint8_t {
    hopeless,  // it needs a rank that will not make it
    doubtful,  // all made it, but they disagree, or one has given up: the backend may notify the others
    good,      // all made it, or the call gives up on its own: it will end
  };
  Outlook outlook(const check::RankStatus& status) const;

  // What ended the run, if its supervisor did: it took too long to connect, or to run.
  check::LimitIncident limit() const;

  // By GroupId: those that existed at the start, then those that the ranks made.
  const std::deque<GroupMembers>& groups() const { return groups_; }

  static constexpr std::int64_t no_seq = -1;

  struct Call {
    Op op;
    std::int64_t seq = -1;  // no_seq: the backend refused it, or the replay leaves it out
    check::MessageId message = check::no_message;
    std::optional<StoreCall> store{};
    std::optional<Duration> limit{};
    std::size_t span = 0;
    bool done = false;
  };
  // In the order in which the rank made them.
  const std::vector<Call>& calls_of(Rank rank) const { return states_[static_cast<std::size_t>(rank)].calls; }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr GroupId unknown_group = static_cast<GroupId>(-1);
  struct RankState {
    std::vector<Call> calls;                             // by number
    std::vector<bool> left_out;                          // by number
    std::vector<std::pair<std::int64_t, Time>> dropped;  // messages whose handles it let go of, and when
    bool is_over = false;                                // later records are left out
    bool lost_peer = false;                              // its last error was that others are gone or silent
    std::string last_output;
    std::vector<GroupId> groups;  // by the rank's own number: split_group gives ranks different ones
    std::size_t batch =
        none;  // the first record of the batch whose groups are being connected; none: there is none
    std::vector<GroupId>
        unconnected;  // groups of that batch that are not connected yet, in the order of connection
  };

  // Calls of one rank that are counted together and complete in order.
  using Queue = std::tuple<GroupId, check::Channel, bool>;
  // A slot or a message, among those of all groups.
  using Place = std::tuple<GroupId, check::Channel, std::int64_t, check::MessageId>;

  static Queue queue_of(const Op& op);
  static Place place_of(const Call& call);
  void add_group(GroupMembers members, Duration timeout, bool is_connected = false);
  void choose_calls(Rank rank);
  void replay(Rank rank, std::size_t index);
  void issue(Rank rank, std::size_t index);
  std::vector<std::size_t> records_of_call(Rank rank, std::size_t index) const;
  void await_communicators(Rank rank, const std::vector<std::size_t>& batch);
  void come_first(GroupId group, Rank member, ScopeId scope, Site site);
  void tell_batches(const Op& op);
  void connect(Rank rank);
  void wait_to_connect(Rank rank, GroupId group);
  void observe(Rank rank, const Record& record);
  void take_call(Rank rank, const Record& record);
  void arrive(Call& call, Time at);
  void make_groups(Rank rank, const Call& call, const std::string& name);
  void wait(Rank rank, const Record& record);
  void complete(Rank rank, const Record& record);
  void complete_message(Call& call, const Record& record);
  void complete_slot(const Call& call);
  void complete_store_call(Rank rank, const Call& call, const Record& record);
  void find_lost_messages();
  void find_store_waits();
  void fail(Rank rank, const Record& record);
  void record_death(Rank rank, const Death& death);
  void post(Call& call, Time at);
  void inspect_messages(GroupId group, Time at);
  void give_up(const Call& call);
  void note_refused_device(Rank rank, const Call& call, const Record& record);
  void note_timeout(Rank rank, const Call& call, Time at);
  bool gives_up_in_time(const Call& call) const;
  bool is_gone(Rank rank) const;
  void note_absent_ranks();
  void apply_deadline();
  Op restore(Rank rank, const LoggedOp& logged);
  ScopeId restore_scope(const LoggedOp& logged);
  const TensorList* stand_ins(const std::optional<std::vector<Shape>>& shapes, const Op& op);
  Storage* stand_in(const std::optional<Shape>& shape, const Op& op);
  void open_span(Rank rank, Call& call, Time at);
  void end_unwatched_spans();
  std::string open_call_of(Rank rank) const;

  RankState& state_of(Rank rank) { return states_[static_cast<std::size_t>(rank)]; }
  check::MessageMatcher& messages_of(GroupId group);
  check::GroupMatcher& matcher_of(GroupId group, check::Channel channel);

  const Options& options_;
  std::deque<GroupMembers> groups_;  // addresses are stable
  std::vector<Duration> timeouts_;   // of a group's operations, by GroupId; 0: the backend's default
  std::map<std::pair<Place, std::int64_t>, std::vector<GroupId>> made_;  // by call and number of its lists
  std::vector<std::vector<bool>>
      has_called_;  // by GroupId and member: a collective or a batch, where groups connect lazily
  const RunLog& log_;
  Extent extent_;
  ScopeTable scopes_;
  std::set<std::string> files_;  // of sites; addresses are stable
  std::deque<Tensor> tensors_;   // stand-ins without values
  std::deque<TensorList> lists_;
  std::deque<SplitSizes> splits_;
  std::vector<std::array<std::unique_ptr<check::GroupMatcher>, check::group_channel_count>>
      matchers_;  // by GroupId, then channel; null while there are no calls
  std::vector<std::unique_ptr<check::MessageMatcher>> messengers_;  // likewise; null before the first one
  std::vector<check::GroupEvidence> group_evidence_;                // likewise
  std::map<Place, Rank> completions_;  // of a slot: how many members have completed it
  std::set<Place> ending_;             // where a rank waits no longer than the run may last
  std::set<Place> broken_;  // which a rank has given up: the other end of a message, or the whole slot
  std::map<std::pair<GroupId, std::int64_t>, Time> refused_at_;  // calls refused for where a tensor is
  check::RunNotes notes_{group_evidence_, scopes_};
  std::vector<check::RankStatus> status_;  // by global rank
  std::vector<RankState> states_;          // likewise
  StoreState store_;
  std::vector<Span> spans_;
  Timeline timeline_;
  check::Evidence evidence_;
  std::int64_t calls_ = 0;
};

}  // namespace rollcall::real
