#include "sim/c10d/store_state.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/expects.h"

namespace rollcall {

std::vector<std::string> StoreState::missing(const std::vector<std::string>& keys) const {
  std::vector<std::string> missing;
  std::ranges::copy_if(keys, std::back_inserter(missing),
                       [this](const std::string& key) { return !values_.contains(key); });
  return missing;
}

std::vector<std::string> StoreState::awaited_by(const StoreCall& call) const {
  const bool waits = call.kind == StoreCall::Kind::get || call.kind == StoreCall::Kind::wait;
  return waits ? missing(call.keys) : std::vector<std::string>();
}

StoreReply StoreState::apply(const StoreCall& call) {
  using Kind = StoreCall::Kind;
  switch (call.kind) {
    case Kind::set:
      put(call.keys.front(), call.value);
      return {};
    case Kind::get:
      return {.value = values_.at(call.keys.front())};
    case Kind::add:
      return {.number = add(call.keys.front(), call.amount)};
    case Kind::wait:
      return {};
    case Kind::check:
      return {.number = missing(call.keys).empty() ? 1 : 0};
    case Kind::compare_set:
      return {.value = compare_set(call)};
    case Kind::delete_key:
      return {.number = erase(call.keys.front()) ? 1 : 0};
    case Kind::num_keys:
      return {.number = count(call.prefix)};
  }
  expects(false, "a call on the store is of one of its kinds");
  return {};
}

std::int64_t StoreState::count(const std::string& prefix) const {
  const auto first = values_.lower_bound(prefix);
  const auto is_other = [&prefix](const auto& entry) { return !entry.first.starts_with(prefix); };
  return prefix.empty() ? std::ssize(values_)
                        : std::distance(first, std::find_if(first, values_.end(), is_other));
}

void StoreState::put(const std::string& key, std::string value) {
  const auto [entry, is_new] = values_.try_emplace(key);
  bytes_ += std::ssize(value) - std::ssize(entry->second) + (is_new ? std::ssize(key) : 0);
  entry->second = std::move(value);
}

bool StoreState::erase(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    return false;
  }
  bytes_ -= std::ssize(found->first) + std::ssize(found->second);
  values_.erase(found);
  return true;
}

// Numbers are kept as text, and parsed up to the first character that is not part of one.
std::int64_t StoreState::add(const std::string& key, std::int64_t amount) {
  std::int64_t before = 0;
  const auto found = values_.find(key);
  if (found != values_.end() && !found->second.empty()) {
    const std::string& text = found->second;
    if (std::from_chars(text.data(), text.data() + text.size(), before).ec != std::errc()) {
      throw ValueError("stoll");
    }
  }
  // Wraps around, as the store's own addition does.
  const auto sum =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(before) + static_cast<std::uint64_t>(amount));
  put(key, std::to_string(sum));
  return sum;
}

std::string StoreState::compare_set(const StoreCall& call) {
  const auto found = values_.find(call.keys.front());
  if (found == values_.end() && !call.expected.empty()) {
    return call.expected;
  }
  if (found != values_.end() && found->second != call.expected) {
    return found->second;
  }
  put(call.keys.front(), call.value);
  return call.value;
}

}  // namespace rollcall
