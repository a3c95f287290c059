#include "sim/explore/explore.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <utility>

#include <fmt/core.h>

#include "sim/explore/sampler.h"
#include "sim/fibers/rank_scheduler.h"

namespace rollcall::sim {
namespace {

// The findings of one thread.
struct Part {
  Tally tally;
  Mailboxes mailboxes;       // all that its runs have shown
  bool is_complete = false;  // nothing is left of the tree
  bool is_drawn = false;     // at random, at least in part
  bool is_bounded = false;
  bool has_looked_at_clock = false;
  bool was_ordered_by_clock = false;
  bool has_let_overtake = false;
  bool has_drawn_delays = false;
  bool ranks_decide = false;
  std::optional<bool> is_usual_ok{};
  bool is_lost = false;  // states should have been compared, but could not be
  // A run received from any source, or looked at the clock, where the usual one does not.
  bool was_surprised = false;
  std::size_t decisions_max = 0;
};

void add(Part& sum, Part part) {
  sum.tally.merge(std::move(part.tally));
  sum.mailboxes.merge(part.mailboxes);
  sum.is_complete = sum.is_complete && part.is_complete;
  sum.is_drawn = sum.is_drawn || part.is_drawn;
  sum.is_bounded = sum.is_bounded || part.is_bounded;
  sum.has_looked_at_clock = sum.has_looked_at_clock || part.has_looked_at_clock;
  sum.was_ordered_by_clock = sum.was_ordered_by_clock || part.was_ordered_by_clock;
  sum.has_let_overtake = sum.has_let_overtake || part.has_let_overtake;
  sum.has_drawn_delays = sum.has_drawn_delays || part.has_drawn_delays;
  sum.ranks_decide = sum.ranks_decide || part.ranks_decide;
  sum.is_usual_ok = sum.is_usual_ok ? sum.is_usual_ok : part.is_usual_ok;
  sum.is_lost = sum.is_lost || part.is_lost;
  sum.was_surprised = sum.was_surprised || part.was_surprised;
  sum.decisions_max = std::max(sum.decisions_max, part.decisions_max);
}

class Search {
 public:
  // `orders_calls` and `draws_delays` as Decisions has them. Schedules are numbered from `first_number` on.
  Search(const RunSchedule& run, const ExploreOptions& options, bool orders_calls, bool draws_delays,
         std::uint64_t first_number = 0)
      : run_(run),
        options_(options),
        orders_calls_(orders_calls),
        draws_delays_(draws_delays),
        first_number_(first_number) {}

  // Searches at most `most` schedules, depth first. If states are compared, runs that are cut count as well.
  Part depth_first(std::int64_t most, int jobs, bool compares_states = false) {
    return on_threads(jobs, [&](std::uint32_t worker, std::uint32_t workers) {
      const std::int64_t share = most / workers + (worker < most % workers ? 1 : 0);
      return walk_tree(share, {options_.shard.index * workers + worker, options_.shard.count * workers},
                       compares_states);
    });
  }

  // Samples schedules at random, from number `first` on.
  Part sample(std::int64_t first, std::int64_t most, std::size_t expected_decisions) {
    return on_threads(options_.jobs, [&](std::uint32_t worker, std::uint32_t workers) {
      return options_.scheduler == Scheduler::pct
                 ? draw<PriorityDecisions>(first + worker, most, workers, expected_decisions)
                 : draw<RandomDecisions>(first + worker, most, workers, expected_decisions);
    });
  }

  bool is_interrupted() const { return options_.interrupted != nullptr && *options_.interrupted != 0; }

 private:
  // All threads must search with the same knowledge of the ranks that receive from any source, or their parts would not
  // fit together. Runs show which ranks do, usually the first one.
  template <typename Work>
  Part on_threads(int jobs, const Work& work) {
    const auto workers = static_cast<std::uint32_t>(std::max(jobs, 1));
    while (true) {
      std::vector<Part> parts(workers);
      run_on_threads(workers, [&](std::uint32_t worker) { parts[worker] = work(worker, workers); });
      Part sum = std::move(parts.front());
      for (std::uint32_t worker = 1; worker < workers; ++worker) {
        add(sum, std::move(parts[worker]));
      }
      was_surprised_ = was_surprised_ || sum.was_surprised;
      sum.was_surprised = was_surprised_;
      if (sum.mailboxes == known_ || is_interrupted()) {
        return sum;
      }
      known_ = sum.mailboxes;
    }
  }

  Part walk_tree(std::int64_t most, const Slice& slice, bool compares_states) {
    Part part;
    SearchTree tree(orders_calls_, draws_delays_,
                    {.reduces = options_.reduces,
                     .deviations_max = options_.deviations_max,
                     .slice = slice,
                     .compares_states = compares_states});
    tree.know(known_);
    part.mailboxes = known_;
    const auto done = [&] { return part.tally.schedules() + (compares_states ? part.tally.cut() : 0); };
    for (bool is_first = true; done() < most && !is_interrupted(); is_first = false) {
      tree.begin();
      Report report = run_(tree);
      if (!tree.knows_all_shown()) {
        part.mailboxes = tree.shown();
        part.was_surprised = !is_first;
        return part;
      }
      if (is_first) {  // even if the usual schedule belongs to another slice
        part.is_usual_ok = kind_of(report.verdict) == FindingKind::ok;
      }
      const bool is_new = note(part, tree);
      part.was_surprised = part.was_surprised || (is_new && !is_first);
      part.is_lost = tree.is_lost();
      if (part.is_lost) {
        return part;
      }
      if (!tree.was_cut() && !tree.was_skipped()) {
        // The usual schedule comes first. Of several threads, the one with the lower number does.
        const auto number =
            is_first ? 0 : static_cast<std::uint64_t>(part.tally.schedules()) * slice.count + slice.index + 1;
        count(part, number, tree, std::move(report));
        tell(part, tree.share_done(), slice.count);
      } else if (tree.was_cut()) {
        part.tally.count_cut();
      }
      if (!tree.advance()) {
        part.is_complete = true;
        // A run that was cut because it equals another one except for its length could have reached a limit.
        part.is_lost = compares_states && std::ranges::any_of(part.tally.endings(), [](const Ending& ending) {
                         return ending.verdict == "limit_reached";
                       });
        break;
      }
    }
    part.is_bounded = tree.is_bounded();
    return part;
  }

  template <typename Log>
  Part draw(std::int64_t first, std::int64_t most, std::uint32_t step, std::size_t expected) {
    Part part;
    Log log(orders_calls_, draws_delays_);
    log.know(known_);
    for (std::int64_t i = first; i < most && !is_interrupted(); i += step) {
      const std::uint64_t number =
          static_cast<std::uint64_t>(i) * options_.shard.count + options_.shard.index;
      log.begin(derived_seed(options_.seed, number), options_.deviations_max, expected);
      Report report = run_(log);
      note(part, log);
      expected = std::max(expected, log.schedule().decisions);
      count(part, number, log, std::move(report));
      tell(part, 0, step);
    }
    part.mailboxes = log.shown();
    part.is_drawn = true;
    return part;
  }

  // Every run shows how the program has to be searched, even if it belongs to another slice: all slices have to be
  // searched alike. Returns true if this run was the first to show something.
  static bool note(Part& part, const DecisionLog& log) {
    const auto set = [](bool& known, bool is) { return is && !std::exchange(known, true); };
    const bool clock = set(part.has_looked_at_clock, log.has_looked_at_clock());
    const bool order = set(part.was_ordered_by_clock, log.was_ordered_by_clock());
    const bool delays = set(part.has_drawn_delays, log.has_drawn_delays());
    set(part.has_let_overtake, log.has_let_overtake());
    set(part.ranks_decide, log.met(Decision::Kind::branch) || log.met(Decision::Kind::thread));
    return clock || order || delays;
  }

  void count(Part& part, std::uint64_t number, const DecisionLog& log, Report report) {
    part.decisions_max = std::max(part.decisions_max, log.schedule().decisions);
    part.tally.count(first_number_ + number, log.schedule(), log.deciders(), log.space(), std::move(report));
  }

  // `share`: the part that a thread has seen of its slice, which is one of `slices`.
  void tell(const Part& part, double share, std::uint32_t slices) {
    const std::int64_t done = ++done_;
    if (options_.progress && done % 64 == 0) {
      constexpr double most = 1e15;
      const double all = share > 0 ? static_cast<double>(part.tally.schedules()) * slices / share : 0;
      options_.progress(done, all < most ? static_cast<std::int64_t>(all) : 0);
    }
  }

  const RunSchedule& run_;
  const ExploreOptions& options_;
  bool orders_calls_;
  bool draws_delays_;
  std::uint64_t first_number_;
  Mailboxes known_;
  bool was_surprised_ = false;
  std::atomic<std::int64_t> done_ = 0;
};

std::vector<std::string> bounds_of(const Part& part, const ExploreOptions& options, bool draws_delays) {
  std::vector<std::string> bounds;
  if (part.is_drawn) {
    bounds.push_back(fmt::format("schedules were drawn at random: {} runs, {} different schedules",
                                 part.tally.schedules(), part.tally.distinct()));
  } else if (!part.is_complete) {
    bounds.push_back(fmt::format("{} schedules were tried, and there are more", part.tally.schedules()));
  }
  if (part.is_bounded) {
    bounds.push_back(fmt::format("only schedules with at most {} {} from the default one were tried",
                                 *options.deviations_max, *options.deviations_max == 1 ? "step" : "steps"));
  }
  if (draws_delays) {
    bounds.push_back("jitter was tried at the seed's value, its minimum and its maximum");
  }
  if (part.was_ordered_by_clock) {
    bounds.push_back(
        "simulated times decided which thread's call ends first, whether a timeout or a death comes before "
        "a call, or whether a message is received before its handle is dropped");
  }
  if (part.has_let_overtake) {
    bounds.push_back(
        "messages ran beside other calls of their group, which NCCL runs one after the other: ranks may wait "
        "for each other there");
  }
  if (options.shard.count > 1 && part.was_surprised) {
    bounds.push_back(
        "a schedule receives from anyone, or looks at the clock, where the usual one does not, so the parts "
        "may not fit together");
  }
  if (options.shard.count > 1) {
    bounds.push_back(to_bound(options.shard));
  }
  return bounds;
}

// How many schedules one thread tries before there are several, and before states are compared, which costs more per
// schedule. So a search that ends here gives the same report with any number of threads.
constexpr std::int64_t few = 500;

Part search(Search& search, const ExploreOptions& options) {
  const bool walks = options.scheduler == Scheduler::automatic || options.scheduler == Scheduler::dfs;
  if (!walks) {
    return search.sample(0, options.schedules, 1);
  }
  const bool is_mixed = options.scheduler == Scheduler::automatic && options.schedules > 1;
  const std::int64_t most = is_mixed ? (options.schedules + 1) / 2 : options.schedules;
  const auto is_over = [&](const Part& part) { return part.is_complete || search.is_interrupted(); };
  Part part = search.depth_first(std::min(most, few), 1);
  if (!is_over(part) && most > few && options.reduces && !options.deviations_max) {
    part = search.depth_first(2 * options.schedules, options.jobs, true);  // most of them end early
  }
  if (part.is_lost || (!is_over(part) && most > few)) {
    part = search.depth_first(most, options.jobs);
  }
  const std::int64_t left = options.schedules - part.tally.schedules();
  if (is_mixed && !part.is_complete && !part.is_bounded && left > 0) {
    // Numbered after all of the tree's.
    constexpr std::int64_t behind = std::int64_t{1} << 40;
    add(part, search.sample(behind, behind + left, part.decisions_max));
    part.is_complete = false;
  }
  return part;
}

// Calls that are held back shift the times at which ranks do what follows, so where the clock matters, what their usual
// order leads to may not be among the outcomes: half of the schedules are left to it.
Part search_in_both_ways(const RunSchedule& run, const ExploreOptions& options, bool draws_delays) {
  ExploreOptions half = options;
  half.schedules = (options.schedules + 1) / 2;
  Search usual(run, half, false, draws_delays);
  Part sum = search(usual, half);
  sum.tally.end_search();
  half.schedules = std::max<std::int64_t>(1, options.schedules - sum.tally.schedules());
  constexpr std::uint64_t behind_the_usual = std::uint64_t{1} << 41;
  Search ordered(run, half, true, draws_delays, behind_the_usual);
  Part second = search(ordered, half);
  second.tally.end_search();
  add(sum, std::move(second));
  return sum;
}

}  // namespace

std::string to_bound(const Slice& shard) {
  return fmt::format("this is part {} of {}", shard.index + 1, shard.count);
}

std::optional<Slice> shard_of_bound(const std::string& bound) {
  Slice shard;
  const bool is_one = std::sscanf(bound.c_str(), "this is part %u of %u", &shard.index, &shard.count) == 2;
  --shard.index;
  return is_one && to_bound(shard) == bound ? std::optional(shard) : std::nullopt;
}

Exploration explore(const RunSchedule& run, const ExploreOptions& options) {
  // Without time limits, jitter changes nothing and is not worth a decision.
  for (const bool draws_delays : {false, true}) {
    Search searcher(run, options, true, draws_delays);
    Part part = search(searcher, options);
    if (!draws_delays && part.has_looked_at_clock && !searcher.is_interrupted() && part.has_drawn_delays) {
      continue;
    }
    if (part.was_ordered_by_clock && !searcher.is_interrupted()) {
      part = search_in_both_ways(run, options, draws_delays);
    }
    Exploration result;
    result.bounds = bounds_of(part, options, draws_delays);
    result.interrupted = searcher.is_interrupted();
    result.exhaustive = result.bounds.empty();
    result.ranks_decide = part.ranks_decide;
    result.is_usual_ok = part.is_usual_ok;
    result.tally = std::move(part.tally);
    return result;
  }
  return {};
}

}  // namespace rollcall::sim
