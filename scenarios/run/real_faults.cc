#include "scenarios/run/real_faults.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <unistd.h>

#include "scenarios/run/runner.h"
#include "sim/base/error.h"
#include "sim/c10d/forwarding_backend.h"
#include "sim/engine/compute_times.h"

namespace rollcall::scenario {
namespace {

constexpr const char* deadly = "SIGKILL";

// The death of a rank that does not end on its own before.
struct PlannedDeath {
  std::int64_t call = 0;   // the last one that the rank begins, counted from 0
  Duration after = 0;      // how long it has been in that call by then, in simulated time
  bool completes = false;  // the others complete the call: the rank dies as it ends
};

// Counts the calls that a rank makes in the same order wherever it runs. Calls that depend on how fast others are
// (asking whether a call has completed, waiting for any of several) are not counted.
class CountedCalls : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  Work issue(const Op& op) override {
    return counted([&] { return inner().issue(op); }, op.async_op ? Kind::other : Kind::blocking_issue);
  }
  std::vector<Work> issue_batch(std::span<const Op> ops) override {
    return counted([&] { return inner().issue_batch(ops); });
  }
  void wait(const Work& work) override {
    counted([&] { inner().wait(work); }, Kind::wait, &work);
  }
  void wait_for(const Work& work, Duration timeout) override {
    counted([&] { inner().wait_for(work, timeout); }, Kind::wait, &work);
  }
  void compute(Duration duration) override {
    counted([&] { inner().compute(duration); });
  }
  ProcessGroup manage(GroupCall call) override {
    return counted([&] { return inner().manage(std::move(call)); });
  }
  void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) override {
    counted([&] { inner().monitored_barrier(op, limits); });
  }
  StoreReply store(const StoreCall& call) override {
    return counted([&] { return inner().store(call); });
  }

 protected:
  enum class Kind : std::uint8_t { blocking_issue, wait, other };

  virtual void begins(Kind kind, const Work* waited) = 0;
  virtual void ended(const Work* waited) = 0;

 private:
  template <typename Run>
  auto counted(Run&& run, Kind kind = Kind::other, const Work* waited = nullptr) -> decltype(run()) {
    begins(kind, waited);
    try {
      if constexpr (std::is_void_v<decltype(run())>) {
        run();
        ended(waited);
      } else {
        auto result = run();
        ended(waited);
        return result;
      }
    } catch (const Error&) {
      ended(nullptr);
      throw;
    }
  }
};

using CallSlot = std::pair<GroupId, std::int64_t>;

std::optional<CallSlot> slot_of(const Work* work) {
  return work != nullptr && !work->is_point_to_point() ? std::optional(CallSlot(work->group(), work->seq()))
                                                       : std::nullopt;
}

// What a simulated rank was doing when it died.
struct LastCall {
  std::int64_t calls = 0;         // number of calls begun
  bool is_open = false;           // the last has not ended
  bool is_blocking_wait = false;  // the last one waits for what the one before it issued
  Time since = 0;                 // when the last one began, or for a blocking wait, the one before it
  std::optional<CallSlot> waits_for{};
  std::set<CallSlot> completed{};  // collectives that were waited for
};

class Watched final : public CountedCalls {
 public:
  Watched(Backend& backend, LastCall& last) : CountedCalls(backend), last_(last) {}

 private:
  void begins(Kind kind, const Work* waited) override {
    last_.is_blocking_wait = kind == Kind::wait && was_ == Kind::blocking_issue;
    last_.since = last_.is_blocking_wait ? last_.since : inner().now();
    last_.waits_for = slot_of(waited);
    last_.is_open = true;
    ++last_.calls;
    was_ = kind;
  }
  void ended(const Work* waited) override {
    last_.is_open = false;
    if (const std::optional<CallSlot> slot = slot_of(waited)) {
      last_.completed.insert(*slot);
    }
  }

  LastCall& last_;
  Kind was_ = Kind::other;
};

class FaultyRank final : public CountedCalls {
 public:
  FaultyRank(Backend& backend, const sim::Options& options, Rank rank, const PlannedDeath* death,
             double time_scale)
      : CountedCalls(backend),
        times_(options.slow, options.jitter, options.world_size, options.seed),
        rank_(rank),
        time_scale_(time_scale) {
    if (death != nullptr) {
      death_ = *death;
    }
  }

  void compute(Duration duration) override { CountedCalls::compute(times_.next(rank_, duration)); }

 private:
  void begins(Kind, const Work*) override {
    if (!death_ || calls_++ != death_->call) {
      return;
    }
    const auto pause =
        std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(death_->after) * time_scale_));
    if (death_->completes) {
      die_if_it_never_ends(pause);
    } else {
      std::this_thread::sleep_for(pause);
      throw ProcessKilled{deadly};
    }
  }
  void ended(const Work*) override {
    if (death_ && calls_ > death_->call) {
      throw ProcessKilled{deadly};
    }
  }

  // The other ranks may have everything they need from this one, while it still waits for them.
  static void die_if_it_never_ends(std::chrono::nanoseconds pause) {
    constexpr std::chrono::nanoseconds least = std::chrono::milliseconds(500);
    std::thread([pause = std::max(pause, least)] {
      std::this_thread::sleep_for(pause);
      ::kill(::getpid(), SIGKILL);
    }).detach();
  }

  sim::ComputeTimes times_;
  Rank rank_;
  double time_scale_;
  std::optional<PlannedDeath> death_;
  std::int64_t calls_ = 0;
};

Time death_of(const sim::Options& options, Rank rank) {
  Time at = options.limits.simulated_time;
  for (const sim::Crash& crash : options.crashes) {
    at = crash.ranks.contains(rank) ? std::min(at, crash.at) : at;
  }
  return at;
}

PlannedDeath plan(Rank rank, Time at, const std::deque<LastCall>& calls) {
  const LastCall& last = calls[static_cast<std::size_t>(rank)];
  if (last.calls == 0) {
    return {};
  }
  PlannedDeath death{.call = last.calls - 1, .after = std::max<Duration>(at - last.since, 0)};
  const auto completed = [&](const LastCall& other) {
    return last.waits_for && other.completed.contains(*last.waits_for);
  };
  death.completes = !last.is_open || std::ranges::any_of(calls, completed);
  if (last.is_blocking_wait && !death.completes) {
    --death.call;  // the call is not even issued, so no part of it reaches the others
  }
  return death;
}

std::map<Rank, PlannedDeath> planned_deaths(const Scenario& scenario) {
  std::map<Rank, PlannedDeath> deaths;
  if (scenario.options.crashes.empty()) {
    return deaths;
  }
  std::deque<LastCall> calls;  // by rank; first those of the schedule that the real ranks take
  const Report report = run(scenario, {.decorate = [&](Backend& backend) {
                              return std::make_unique<Watched>(backend, calls.emplace_back());
                            }});
  calls.resize(static_cast<std::size_t>(report.world_size));
  for (const sim::Crash& crash : scenario.options.crashes) {
    for (const Rank rank : crash.ranks.to_vector()) {
      if (report.of(rank).exception.starts_with(deadly)) {
        deaths.emplace(rank, plan(rank, death_of(scenario.options, rank), calls));
      }
    }
  }
  return deaths;
}

}  // namespace

std::function<std::unique_ptr<Backend>(Backend&, Rank)> real_faults(const Scenario& scenario,
                                                                    double time_scale) {
  const sim::Options& options = scenario.options;
  if (options.slow.empty() && options.jitter.empty() && options.crashes.empty()) {
    return {};
  }
  return [&options, deaths = planned_deaths(scenario), time_scale](Backend& backend, Rank rank) {
    const auto death = deaths.find(rank);
    return std::make_unique<FaultyRank>(backend, options, rank,
                                        death != deaths.end() ? &death->second : nullptr, time_scale);
  };
}

}  // namespace rollcall::scenario
