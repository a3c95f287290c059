#pragma once

// CallLists: the calls of all ranks of a job, in a form in which ranks can be compared. Peers of one role make the same
// calls on other groups and with other partners: a call's `place` says which of the rank's own groups and partners it
// is on, counted by first use, so that peers have equal places.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/match/outlook.h"

namespace rollcall::check {

using Symbol = std::uint32_t;

struct ListedCall {
  Symbol shape = 0;         // what is called: operation, size, label, ...; not where
  std::uint32_t group = 0;  // each group of the job has one number
  Rank peer = -1;           // of a message, global
  Symbol place = 0;         // shape, own group, own partner
  bool is_fixed = false;    // cannot be edited: it makes or destroys a group
};

struct CallList {
  const RankProgram* program = nullptr;
  std::vector<ListedCall> calls{};
};

// Ranks that make the same calls, ascending; the first represents all.
using CallClass = std::vector<Rank>;

// Gives calls of one rank their places.
class Places {
 public:
  Symbol next(const ListedCall& call);

 private:
  std::vector<std::uint32_t> groups_;  // in order of first use
  std::vector<Rank> peers_;            // likewise
};

class CallLists {
 public:
  // Of every rank of the job, ascending; borrowed.
  explicit CallLists(std::span<const RankProgram> programs);

  std::size_t calls() const;  // of all ranks
  const CallList& of(Rank rank) const { return lists_[static_cast<std::size_t>(rank)]; }
  std::vector<Symbol> places_of(Rank rank) const;
  const std::vector<CallClass>& classes() const { return classes_; }
  // True if both make the same calls in the same places, and both lists are whole or neither is.
  bool call_alike(Rank a, Rank b) const;
  std::uint32_t group_count() const { return static_cast<std::uint32_t>(groups_.size()); }
  // Global ranks of a group; empty: the world.
  const std::vector<Rank>& members(std::uint32_t group) const { return groups_[group]; }
  bool is_member(Rank rank, std::uint32_t group) const;
  // True if the groups have equally many members, as far as known.
  bool are_as_large(std::uint32_t a, std::uint32_t b) const;
  // The same, if `lacking` may have members that have not called on it.
  bool may_be_as_large(std::uint32_t lacking, std::uint32_t group) const;
  // The shape in a place.
  static Symbol shape_in(Symbol place) { return place >> 16U; }
  // `call`, which `rank` would make, as a listed call without its place.
  ListedCall listed(Rank rank, const ProgramCall& call) const;
  // `model`, a call of another rank, as a call of `rank` on `group` and with `peer`.
  ProgramCall as_call_of(Rank rank, const ProgramCall& model, std::uint32_t group, Rank peer) const;

 private:
  std::vector<std::uint32_t> group_numbers(const std::vector<ProgramGroup>& groups);
  std::uint32_t new_group(const std::vector<Rank>& ranks);
  void take_parts_of_others(Rank rank, std::uint32_t group, std::int64_t seq, ProgramCall& call) const;
  Symbol shape_of(const ProgramCall& call);  // of the call that comes next in the last list
  void list(const RankProgram& program);
  void classify();

  std::vector<CallList> lists_;
  std::vector<CallClass> classes_;
  std::vector<std::size_t> class_of_;  // by rank
  std::vector<std::vector<Rank>> groups_;
  bool are_by_use_ = false;
  std::map<std::pair<std::vector<Rank>, std::string>, std::uint32_t> group_names_;  // numbers
  std::map<std::vector<Rank>, std::vector<std::uint32_t>> groups_of_;               // by members
  std::map<std::string, Symbol> shapes_;
};

}  // namespace rollcall::check
