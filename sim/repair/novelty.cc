#include "sim/repair/novelty.h"

namespace rollcall::check {
namespace {

constexpr Symbol anything = 0xfffffffe;

std::uint64_t hash_of(Symbol a, Symbol b, Symbol c) {
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  for (const Symbol symbol : {a, b, c}) {
    hash = (hash ^ symbol) * 0xbf58476d1ce4e5b9;
    hash ^= hash >> 29U;
  }
  return hash;
}

}  // namespace

Novelty::Novelty(const CallLists& lists) : lists_(lists) {
  for (const CallClass& each : lists.classes()) {
    add(each.front(), lists_.places_of(each.front()), static_cast<std::int64_t>(each.size()));
  }
}

std::int64_t Novelty::times(Symbol last, Symbol next) const {
  const auto found = times_.find(hash_of(anything, last, next));
  return found == times_.end() ? 0 : found->second;
}

void Novelty::add(Rank rank, const std::vector<Symbol>& places, std::int64_t times) {
  Symbol before = nothing;
  Symbol last = nothing;
  const auto count = [&](Symbol a, Symbol b, Symbol c) {
    std::int64_t& known = times_[hash_of(a, b, c)];
    different_ -= known > 0 ? 1 : 0;
    known += times;
    different_ += known > 0 ? 1 : 0;
  };
  const auto note = [&](Symbol next) {
    count(before, last, next);
    count(anything, last, next);
    count(anything, anything, CallLists::shape_in(next));
    before = last;
    last = next;
  };
  for (const Symbol place : places) {
    note(place);
  }
  if (lists_.of(rank).program->is_whole) {
    note(nothing);
  }
}

std::int64_t Novelty::count_with(std::span<const Change> changes) {
  for (const Change& change : changes) {
    add(change.rank, lists_.places_of(change.rank), -change.ranks);
    add(change.rank, change.places, change.ranks);
  }
  const std::int64_t result = different_;
  for (const Change& change : changes) {
    add(change.rank, change.places, -change.ranks);
    add(change.rank, lists_.places_of(change.rank), change.ranks);
  }
  return result;
}

}  // namespace rollcall::check
