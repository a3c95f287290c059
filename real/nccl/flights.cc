#ifdef ROLLCALL_HAS_NCCL

#include "real/nccl/flights.h"

#include <algorithm>
#include <tuple>

namespace rollcall::real {
namespace {

// Streams may wait for each other's calls in a cycle.
constexpr int deepest = 64;

auto key_of(const Work& work) { return std::tuple(work.group(), work.seq(), work.is_point_to_point()); }

}  // namespace

void Flights::add(Flight flight) {
  const std::lock_guard lock(mutex_);
  numbers_[key_of(flight.work)] = next_;
  open_.emplace(next_++, std::move(flight));
}

// A communicator's calls end in order, so calls behind one that still runs are not checked.
std::vector<Landing> Flights::poll(cudaEvent_t epoch) {
  std::vector<Landing> landings;
  std::vector<const NcclGroup*> going_on;
  for (auto flight = open_.begin(); flight != open_.end();) {
    const Flight& call = flight->second;
    const NcclGroup* const group = call.group;
    if (std::ranges::find(going_on, group) != going_on.end() || !gpu_.has_passed(call.ended)) {
      going_on.push_back(group);
      ++flight;
      continue;
    }
    for (const MemoryPool::Block& block : call.staging) {
      gpu_.pinned.give_back(block);
    }
    for (const MemoryPool::Block& block : call.scratch) {
      gpu_.memory.give_back(block);
    }
    if (epoch != nullptr) {
      const Duration from = gpu_.elapsed(epoch, call.begun);
      landings.push_back({call.work, from, from + gpu_.elapsed(call.begun, call.ended)});
    }
    numbers_.erase(key_of(call.work));
    const cudaEvent_t begun = call.begun;
    const cudaEvent_t ended = call.ended;
    {
      const std::lock_guard lock(mutex_);
      flight = open_.erase(flight);
    }
    gpu_.give_back(begun);
    gpu_.give_back(ended);
  }
  return landings;
}

std::optional<std::int64_t> Flights::number_of(const Work& work) const {
  const auto found = numbers_.find(key_of(work));
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Work> Flights::first_of(GroupId group) const {
  const auto first =
      std::ranges::find_if(open_, [&](const auto& entry) { return entry.second.work.group() == group; });
  return first == open_.end() ? std::nullopt : std::optional(first->second.work);
}

// A wait for a place is over if it no longer waits for a call.
bool Flights::is_over(const Wait& wait) const {
  return wait.number >= 0 ? is_over(wait.number) : !blocking(wait.awaited, wait.place, 1).has_value();
}

void Flights::note_wait(Stream stream, std::int64_t number) {
  std::vector<Wait>& waits = waits_[stream.id];
  std::erase_if(waits, [this](const Wait& wait) { return is_over(wait); });
  waits.push_back({advance(stream), number});
}

void Flights::note_wait(Stream stream, Stream awaited, std::int64_t position) {
  waits_[stream.id].push_back({advance(stream), -1, awaited, position});
}

Work Flights::blocking(std::int64_t number, int depth) const {
  const Flight& asked = open_.at(number);
  const auto first =
      std::ranges::find_if(open_, [&](const auto& entry) { return entry.second.group == asked.group; });
  const Flight& front = first->second;
  return depth > deepest ? front.work
                         : blocking(front.stream, front.position, depth + 1).value_or(front.work);
}

std::optional<Work> Flights::blocking(Stream stream, std::int64_t position, int depth) const {
  const auto waits = waits_.find(stream.id);
  if (waits == waits_.end()) {
    return std::nullopt;
  }
  for (const Wait& wait : waits->second) {
    if (wait.position > position) {
      break;
    }
    if (wait.number >= 0 && !is_over(wait.number)) {
      return blocking(wait.number, depth);
    }
    if (wait.number < 0 && depth <= deepest) {
      if (const std::optional<Work> work = blocking(wait.awaited, wait.place, depth + 1)) {
        return work;
      }
    }
  }
  return std::nullopt;
}

std::optional<Flight> Flights::overdue() const {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [number, flight] : open_) {
    if (now - flight.launched > flight.limit && !gpu_.has_passed(flight.ended)) {
      return flight;
    }
  }
  return std::nullopt;
}

}  // namespace rollcall::real

#endif
