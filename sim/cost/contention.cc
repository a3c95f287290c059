#include "sim/cost/contention.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace rollcall::cost {

namespace {

constexpr Duration longest = std::numeric_limits<Duration>::max() / 4;

// duration * factor / whole, without overflow for durations below a year.
Duration scaled(Duration duration, std::int64_t factor, std::int64_t whole) {
  Duration large = 0;
  if (__builtin_mul_overflow(duration / whole, factor, &large) || large > longest) {
    return longest;
  }
  return large + duration % whole * factor / whole;
}

}  // namespace

int multiprocessors(int compute_capability) {
  // NVIDIA's architecture white papers of V100, A100, Ada (L40S), H100 (SXM), Blackwell (B200) and Blackwell Ultra.
  constexpr std::pair<int, int> by_capability[] = {{103, 160}, {100, 148}, {90, 132}, {89, 142}, {80, 108}};
  for (const auto& [capability, count] : by_capability) {
    if (compute_capability >= capability) {
      return count;
    }
  }
  return 80;
}

Contention::Contention(Rank ranks, int multiprocessors)
    : multiprocessors_(multiprocessors),
      ports_(static_cast<std::size_t>(ranks)),
      channels_(static_cast<std::size_t>(ranks)) {}

Time Contention::Job::end() const { return std::min(latest, since + scaled(left, speed.slowness, whole)); }

void Contention::start(const Key& key, Time now, Duration alone, const Demand& demand) {
  load(demand, 1);
  has_changed_ = true;
  jobs_.push_back({.key = key, .demand = demand, .start = now, .alone = alone, .left = alone, .since = now});
}

void Contention::start_work(const Key& key, Time now, Duration alone, Time latest) {
  has_changed_ = true;
  jobs_.push_back({.key = key,
                   .demand = {},
                   .start = now,
                   .latest = latest,
                   .alone = alone,
                   .left = alone,
                   .since = now});
}

void Contention::load(const Demand& demand, int sign) {
  if (demand.gpus != nullptr) {
    for (const Rank rank : *demand.gpus) {
      ports_[static_cast<std::size_t>(rank)] += sign * demand.port_share;
      channels_[static_cast<std::size_t>(rank)] += sign * demand.channels;
    }
  }
  if (demand.nics != nullptr) {
    for (const std::int32_t nic : *demand.nics) {
      const auto at = static_cast<std::size_t>(nic);
      nics_.resize(std::max(nics_.size(), at + 1));
      nics_[at] += sign * demand.nic_share;
    }
  }
}

Contention::Speed Contention::speed_of(const Job& job) const {
  if (job.demand.gpus == nullptr) {
    const int held = std::min(channels_[static_cast<std::size_t>(job.key.rank)], multiprocessors_ - 1);
    return held == 0 ? Speed{}
                     : Speed{whole * multiprocessors_ / (multiprocessors_ - held), Cause::multiprocessors};
  }
  Speed speed;
  if (jobs_.size() == 1) {
    return speed;
  }
  for (const Rank rank : *job.demand.gpus) {
    if (job.demand.port_share > 0 && ports_[static_cast<std::size_t>(rank)] > speed.slowness) {
      speed = {ports_[static_cast<std::size_t>(rank)], Cause::port};
    }
  }
  for (const std::int32_t nic : *job.demand.nics) {
    if (job.demand.nic_share > 0 && nics_[static_cast<std::size_t>(nic)] > speed.slowness) {
      speed = {nics_[static_cast<std::size_t>(nic)], Cause::nic};
    }
  }
  return speed;
}

std::vector<Contention::Change> Contention::settle(Time now) {
  std::vector<Change> changes;
  if (!has_changed_) {
    return changes;
  }
  has_changed_ = false;
  for (Job& job : jobs_) {
    const Speed speed = speed_of(job);
    if (speed.slowness == job.speed.slowness) {
      continue;
    }
    job.left = std::max<Duration>(0, job.left - scaled(now - job.since, whole, job.speed.slowness));
    job.since = now;
    job.speed = speed;
    if (speed.slowness > job.worst.slowness) {
      job.worst = speed;
    }
    changes.push_back({job.key, job.end()});
  }
  return changes;
}

std::optional<Contention::Past> Contention::finish(const Key& key) {
  const auto found = std::ranges::find(jobs_, key, &Job::key);
  if (found == jobs_.end()) {
    return std::nullopt;
  }
  load(found->demand, -1);
  has_changed_ = true;
  constexpr std::string_view reasons[] = {"", "for calls that share a GPU's port",
                                          "for calls that share a NIC",
                                          "for NCCL's kernels on its multiprocessors"};
  const Past past{found->start, found->alone, reasons[static_cast<std::size_t>(found->worst.cause)]};
  jobs_.erase(found);
  return past;
}

}  // namespace rollcall::cost
