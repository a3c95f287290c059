#include "sim/explore/state_table.h"

#include <algorithm>
#include <utility>

#include "sim/base/encoding.h"
#include "sim/base/expects.h"

namespace rollcall::sim {
namespace {

// The bytes that an entry takes besides its text.
constexpr std::size_t per_entry = 64;

}  // namespace

std::uint32_t StateTable::number_of(std::string text) {
  const std::size_t size = text.size();
  const auto [entry, is_new] =
      numbers_.try_emplace(std::move(text), static_cast<std::uint32_t>(numbers_.size()) + 1);
  bytes_ += is_new ? size + per_entry : 0;
  return entry->second;
}

void StateTable::learned(Rank rank, std::string_view what) {
  const auto at = static_cast<std::size_t>(rank);
  learned_.resize(std::max(learned_.size(), at + 1));
  Encoder text;
  text(true, learned_[at]);
  text.bytes += what;
  learned_[at] = number_of(std::move(text.bytes));
}

void StateTable::holds(Rank rank, std::string_view state) {
  const auto at = static_cast<std::size_t>(rank);
  learned_.resize(std::max(learned_.size(), at + 1));
  Encoder text;
  text(false);
  text.bytes += state;
  learned_[at] = number_of(std::move(text.bytes));
}

StateTable::Found StateTable::find(std::string_view held) {
  while (!learned_.empty() && learned_.back() == 0) {
    learned_.pop_back();
  }
  Encoder text;
  text(learned_);
  text.bytes += held;
  const std::size_t size = text.bytes.size();
  const auto [entry, is_new] =
      states_.try_emplace(std::move(text.bytes), static_cast<StateId>(behind_.size()));
  if (is_new) {
    behind_.emplace_back();
    bytes_ += size + per_entry;
  }
  return {entry->second, is_new};
}

void StateTable::finish(StateId id, Calls calls) {
  expects(id < behind_.size(), "a state that is finished was found");
  expects(!behind_[id], "a state is finished once");
  bytes_ += calls.size() * per_entry;
  behind_[id] = std::move(calls);
}

// Not by call.id alone: a rank's request may be a different one if the rank has done something else before it.
StateTable::CallId StateTable::id_of(const Contender& call) {
  Encoder text;
  text(call.id, call.kind, call.rank, call.source, call.group, call.access);
  text(call.objects);
  const auto [entry, is_new] =
      call_ids_.try_emplace(std::move(text.bytes), static_cast<CallId>(calls_.size()));
  if (is_new) {
    calls_.push_back(call);
    bytes_ += per_entry;
  }
  return entry->second;
}

}  // namespace rollcall::sim
