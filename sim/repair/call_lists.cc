#include "sim/repair/call_lists.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/report/rank_set.h"

namespace rollcall::check {
namespace {

// The index of `value`, which is added if it is new.
template <typename T>
std::size_t ordinal_of(std::vector<T>& values, T value) {
  const auto found = std::ranges::find(values, value);
  if (found != values.end()) {
    return static_cast<std::size_t>(found - values.begin());
  }
  values.push_back(value);
  return values.size() - 1;
}

// What is called, without its group and peer. Whether its rank waits for it at once is not part of it: in a recording,
// the call in which a rank got stuck has no wait.
std::string shape_text(const ProgramCall& call) {
  const bool has_place = has_root(call.kind) && !is_point_to_point(call.kind);
  return fmt::format("{} {} {} {} {} {} {} {}", to_string(call.kind), call.numel, call.dtype,
                     has_reduce_op(call.kind) ? static_cast<int>(call.reduce) : -1,
                     has_place ? call.root : -1, call.tag, call.batch >= 0, call.label);
}

// True if both have the same `shape_text`.
bool are_one_shape(const ProgramCall& a, const ProgramCall& b) {
  return a.kind == b.kind && a.numel == b.numel && a.reduce == b.reduce && a.root == b.root &&
         a.tag == b.tag && (a.batch >= 0) == (b.batch >= 0) && a.dtype == b.dtype && a.label == b.label;
}

constexpr Symbol shapes_max = 1U << 16U;
constexpr std::size_t ordinals_max = 1U << 8U;

Symbol pack(Symbol shape, std::size_t group, std::size_t peer) {
  return shape << 16U | static_cast<Symbol>(std::min(group, ordinals_max - 1)) << 8U |
         static_cast<Symbol>(std::min(peer, ordinals_max - 1));
}

}  // namespace

Symbol Places::next(const ListedCall& call) {
  const std::size_t group = ordinal_of(groups_, call.group);
  const std::size_t peer = call.peer < 0 ? 0 : 1 + ordinal_of(peers_, call.peer);
  return pack(call.shape, group, peer);
}

CallLists::CallLists(std::span<const RankProgram> programs) {
  for (const RankProgram& program : programs) {
    expects(static_cast<std::size_t>(program.rank) == lists_.size(),
            "every rank's program is there, in order");
    list(program);
  }
  classify();
}

std::size_t CallLists::calls() const {
  std::size_t count = 0;
  for (const CallList& list : lists_) {
    count += list.calls.size();
  }
  return count;
}

std::vector<Symbol> CallLists::places_of(Rank rank) const {
  std::vector<Symbol> places;
  std::ranges::transform(of(rank).calls, std::back_inserter(places), &ListedCall::place);
  return places;
}

bool CallLists::call_alike(Rank a, Rank b) const {
  return class_of_[static_cast<std::size_t>(a)] == class_of_[static_cast<std::size_t>(b)] &&
         of(a).program->is_whole == of(b).program->is_whole;
}

bool CallLists::is_member(Rank rank, std::uint32_t group) const {
  return groups_[group].empty() || std::ranges::binary_search(groups_[group], rank);
}

bool CallLists::are_as_large(std::uint32_t a, std::uint32_t b) const {
  return are_by_use_ || members(a).size() == members(b).size();
}

bool CallLists::may_be_as_large(std::uint32_t lacking, std::uint32_t group) const {
  const std::size_t known = members(lacking).size();
  return known == members(group).size() || (are_by_use_ && known < members(group).size());
}

ListedCall CallLists::listed(Rank rank, const ProgramCall& call) const {
  ListedCall listed;
  const auto shape = shapes_.find(shape_text(call));
  listed.shape = shape == shapes_.end() ? shapes_max - 1 : shape->second;
  listed.peer = is_point_to_point(call.kind) ? call.peer : -1;
  listed.group = group_count();  // one that the rank has not called on
  const CallList& own = of(rank);
  for (std::size_t i = 0; i < own.calls.size(); ++i) {
    const ProgramCall& known = own.program->calls[i];
    if (known.group == call.group && known.group_made_by == call.group_made_by) {
      listed.group = own.calls[i].group;
      break;
    }
  }
  return listed;
}

// Takes the parts from the other ranks' calls with this number: what they give to `rank`, and what they take from it.
void CallLists::take_parts_of_others(Rank rank, std::uint32_t group, std::int64_t seq,
                                     ProgramCall& call) const {
  std::vector<Rank> members = this->members(group);
  if (members.empty()) {
    members = RankSet::range(0, static_cast<Rank>(lists_.size()) - 1).to_vector();
  }
  const auto own = static_cast<std::size_t>(std::ranges::find(members, rank) - members.begin());
  call.given_parts.assign(members.size(), 0);
  call.filled_parts.assign(members.size(), 0);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const CallList& other = of(members[i]);
    for (std::size_t at = 0; at < other.calls.size(); ++at) {
      const ProgramCall& its = other.program->calls[at];
      if (other.calls[at].group == group && its.seq == seq && its.kind == call.kind &&
          std::min(its.given_parts.size(), its.filled_parts.size()) > own) {
        call.given_parts[i] = its.filled_parts[own];
        call.filled_parts[i] = its.given_parts[own];
      }
    }
  }
  call.numel = std::reduce(call.given_parts.begin(), call.given_parts.end());
}

ProgramCall CallLists::as_call_of(Rank rank, const ProgramCall& model, std::uint32_t group, Rank peer) const {
  ProgramCall call = model;
  call.peer = peer;
  const CallList& own = of(rank);
  const auto alike = std::ranges::find_if(own.program->calls, [&](const ProgramCall& known) {
    return !known.given_parts.empty() && known.kind == call.kind && known.numel == call.numel &&
           known.label == call.label;
  });
  if (alike != own.program->calls.end()) {  // the sizes of the parts depend on the rank
    call.given_parts = alike->given_parts;
    call.filled_parts = alike->filled_parts;
  } else if (!call.given_parts.empty()) {
    take_parts_of_others(rank, group, model.seq, call);
  }
  for (std::size_t i = 0; i < own.calls.size(); ++i) {
    const ProgramCall& known = own.program->calls[i];
    if (own.calls[i].group == group && !is_about_groups(known.kind)) {
      call.group = known.group;
      call.group_index = known.group_index;
      call.group_made_by = known.group_made_by;
      return call;
    }
  }
  for (const CallList& other : lists_) {  // by its name: the rank has called nothing on it
    const auto known = std::ranges::find(other.calls, group, &ListedCall::group);
    if (known != other.calls.end()) {
      call.group = other.program->calls[static_cast<std::size_t>(known - other.calls.begin())].group;
      break;
    }
  }
  call.group_made_by = -1;
  return call;
}

// A rank's groups are those of other ranks that have the same members and the same name. Ranks may also give one group
// different names; those are the same in the order in which their ranks list them.
std::vector<std::uint32_t> CallLists::group_numbers(const std::vector<ProgramGroup>& groups) {
  constexpr std::uint32_t open = 0xffffffff;
  std::vector<std::uint32_t> numbers;
  for (const ProgramGroup& group : groups) {
    const auto known = group_names_.find({group.ranks, group.name});
    numbers.push_back(known == group_names_.end() ? open : known->second);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (numbers[i] != open) {
      continue;
    }
    const std::vector<std::uint32_t>& alike = groups_of_[groups[i].ranks];
    const auto free = std::ranges::find_if(
        alike, [&](std::uint32_t number) { return std::ranges::find(numbers, number) == numbers.end(); });
    numbers[i] = free == alike.end() ? new_group(groups[i].ranks) : *free;
    group_names_.try_emplace({groups[i].ranks, groups[i].name}, numbers[i]);
  }
  return numbers;
}

std::uint32_t CallLists::new_group(const std::vector<Rank>& ranks) {
  const std::uint32_t number = group_count();
  groups_.push_back(ranks);
  groups_of_[ranks].push_back(number);
  return number;
}

// Most ranks make the same calls as the first one.
Symbol CallLists::shape_of(const ProgramCall& call) {
  const CallList& first = lists_.front();
  const std::size_t at = lists_.back().calls.size();
  if (lists_.size() > 1 && at < first.calls.size() && are_one_shape(first.program->calls[at], call)) {
    return first.calls[at].shape;
  }
  const Symbol next = std::min(static_cast<Symbol>(shapes_.size()), shapes_max - 1);
  return shapes_.try_emplace(shape_text(call), next).first->second;
}

void CallLists::list(const RankProgram& program) {
  CallList& own = lists_.emplace_back();
  own.program = &program;
  Places places;
  // A program that names no groups makes all its calls on the world.
  const std::vector<ProgramGroup> world(1);
  const std::vector<std::uint32_t> numbers = group_numbers(program.groups.empty() ? world : program.groups);
  are_by_use_ = are_by_use_ || std::ranges::any_of(program.groups, &ProgramGroup::is_by_use);
  own.calls.reserve(program.calls.size());
  for (const ProgramCall& call : program.calls) {
    ListedCall listed;
    listed.shape = shape_of(call);
    listed.group = program.groups.empty() ? numbers.front() : numbers[call.group_index];
    listed.peer = is_point_to_point(call.kind) ? call.peer : -1;
    listed.is_fixed = is_about_groups(call.kind);
    listed.place = places.next(listed);
    own.calls.push_back(listed);
  }
}

void CallLists::classify() {
  std::map<std::vector<Symbol>, std::size_t> known;
  for (Rank rank = 0; rank < static_cast<Rank>(lists_.size()); ++rank) {
    const auto [found, is_new] = known.try_emplace(places_of(rank), classes_.size());
    if (is_new) {
      classes_.emplace_back();
    }
    classes_[found->second].push_back(rank);
    class_of_.push_back(found->second);
  }
}

}  // namespace rollcall::check
