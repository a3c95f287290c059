#pragma once

// ListReplay: replays lists of calls. Every rank makes its calls in order, and a call is over when all its members have
// made it. Recordings end where their job stood still and do not say what a rank that was held up there would have
// called next: a call that waits for that rank may yet be answered.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/match/outlook.h"
#include "sim/repair/proposals.h"

namespace rollcall::check {

class ListReplay {
 public:
  // `programs`: of all ranks from 0, not whole; borrowed. Groups have different names, and calls that may meet have the
  // same `pairing`.
  struct Unknown {
    RankSet lists{};  // the calls of these ranks are unknown: a call that waits for them counts as answered
    RankSet ends{};   // these may be held up by calls that are not listed
  };
  ListReplay(std::span<const RankProgram> programs, const Unknown& unknown);

  // Where the lists hang, if no rank is held up by a call that is not listed.
  const Hang& hang() const { return hang_; }
  // True if every call of the lists is over, or may yet be.
  bool is_explained() const { return is_explained_; }
  // True if calls met that come from different lines of the program.
  bool has_odd() const { return odd_ > 0; }
  // By rank: how many calls of its list are over.
  const std::vector<std::size_t>& made() const { return made_; }

  // The same with these edits. Ranks that are held up in the unedited lists, or get calls at their end, may call
  // anything after their last call. If calls met that come from different lines of the program, the edits have to fix
  // most of that, too.
  bool is_explained_with(const CallEdits& edits) const;

 private:
  struct Item {
    OpKind kind = OpKind::barrier;
    bool goes_with_last = false;  // in one batch of messages
    std::uint32_t group = 0;
    Rank peer = -1;          // of a message
    std::uint32_t what = 0;  // equal for calls that agree
    std::uint32_t line = 0;  // of the program: equal for calls from one place
    std::size_t at = 0;      // index in its list
  };
  using Items = std::vector<Item>;
  class Run;

  void add_members(const std::string& group, const std::vector<Rank>& ranks);
  Item item_of(const ProgramCall& call, std::size_t at) const;
  Items items_with(Rank rank, const CallEdits& edits) const;

  std::span<const RankProgram> programs_;
  std::map<std::string, std::uint32_t> groups_;  // by name
  std::vector<std::vector<Rank>> members_;       // of groups
  std::map<std::string, std::uint32_t> what_;
  std::map<std::string, std::uint32_t> lines_;
  std::vector<bool> is_unknown_;  // by rank
  std::vector<Items> items_;      // by rank
  std::vector<bool> goes_on_;     // by rank: held up in the unedited lists, or by calls that are not listed
  std::vector<std::size_t> made_;
  Hang hang_;
  std::size_t odd_ = 0;  // meetings of calls from different lines
  bool is_explained_ = false;
};

}  // namespace rollcall::check
