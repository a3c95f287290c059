#include "scenarios/variants/what_if.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/run/runner.h"
#include "scenarios/variants/scenario_tree.h"
#include "sim/explore/schedules.h"

namespace rollcall::scenario {
namespace {

constexpr std::size_t crashes_per_rank_max = 200;

struct Disturbance {
  std::string what;
  std::string where;
  OrderedJson scenario;
};

std::string rank_word(Rank rank) { return fmt::format("rank {}", rank); }

// The first loop over inputs in a tree, or null.
OrderedJson* input_loop(OrderedJson& tree) {
  if (tree.is_object() && tree.contains("for_each_input") && tree.contains("do")) {
    return &tree;
  }
  if (tree.is_structured()) {
    for (OrderedJson& member : tree) {
      if (OrderedJson* found = input_loop(member)) {
        return found;
      }
    }
  }
  return nullptr;
}

class Disturber {
 public:
  Disturber(const Scenario& scenario, OrderedJson tree) : scenario_(scenario), tree_(std::move(tree)) {
    tree_.erase("expect");
  }

  // All disturbances except deaths.
  std::vector<Disturbance> all() {
    for_each_rank([this](Rank rank) { add_inputs(rank, -1); });
    for_each_rank([this](Rank rank) { add_inputs(rank, 1); });
    for_each_rank([this](Rank rank) { skip_input(rank); });
    for_each_rank([this](Rank rank) { exit_early(rank); });
    for_each_rank([this](Rank rank) { slow_down(rank); });
    return std::move(made_);
  }

  // Disturbances in which a rank dies at each of these times.
  std::vector<Disturbance> deaths(Rank rank, const std::set<Time>& times) {
    for (const Time time : times) {
      OrderedJson tree = tree_;
      add_fault(tree, {{"kind", "crash"}, {"ranks", rank}, {"at", fmt::format("{}ns", time)}});
      add("dies", fmt::format("rank {} at {} ns", rank, time), std::move(tree));
    }
    return std::move(made_);
  }

 private:
  template <typename Make>
  void for_each_rank(const Make& make) {
    for (Rank rank = 0; rank < scenario_.options.world_size; ++rank) {
      make(rank);
    }
  }

  void add(std::string what, std::string where, OrderedJson tree) {
    made_.push_back({std::move(what), std::move(where), std::move(tree)});
  }

  void add_inputs(Rank changed, std::int64_t more) {
    if (!tree_.contains("inputs") || scenario_.inputs.of(changed) + more < 0) {
      return;
    }
    OrderedJson tree = tree_;
    tree["inputs"] = OrderedJson::array();
    for_each_rank([&](Rank rank) {
      tree["inputs"].push_back(scenario_.inputs.of(rank) + (rank == changed ? more : 0));
    });
    add(fmt::format("inputs {} 1", more < 0 ? "-" : "+"), rank_word(changed), std::move(tree));
  }

  // Changes the loop over inputs by a statement for only this rank and this input.
  template <typename Change>
  void change_loop(const std::string& what, Rank rank, const Change& change) {
    OrderedJson tree = tree_;
    OrderedJson* loop = nullptr;
    if (tree.contains("program")) {
      loop = input_loop(tree["program"]);
    }
    if (loop != nullptr && scenario_.inputs.of(rank) > 0) {
      const std::string input = (*loop)["for_each_input"].get<std::string>();
      change((*loop)["do"],
             fmt::format("rank == {} && {} == {}", rank, input, scenario_.inputs.of(rank) / 2));
      add(what, rank_word(rank), std::move(tree));
    }
  }

  void skip_input(Rank rank) {
    change_loop("skips an input", rank, [](OrderedJson& block, const std::string& here) {
      OrderedJson branch = {{"if", here}, {"do", OrderedJson::array()}};
      branch["else"] = block;
      block = OrderedJson::array({branch});
    });
  }

  void exit_early(Rank rank) {
    change_loop("exits early", rank, [](OrderedJson& block, const std::string& here) {
      const OrderedJson leave = {{"exit", true}};
      const OrderedJson branch = {{"if", here}, {"do", OrderedJson::array({leave})}};
      block.insert(block.begin(), branch);
    });
  }

  void slow_down(Rank rank) {
    OrderedJson tree = tree_;
    add_fault(tree, {{"kind", "slow"}, {"ranks", rank}, {"factor", 10}});
    add("10 times slower", rank_word(rank), std::move(tree));
  }

  static void add_fault(OrderedJson& tree, OrderedJson fault) {
    if (!tree.contains("faults")) {
      tree["faults"] = OrderedJson::array();
    }
    tree["faults"].push_back(std::move(fault));
  }

  const Scenario& scenario_;
  OrderedJson tree_;
  std::vector<Disturbance> made_;
};

// By rank: when its calls begin.
std::vector<std::set<Time>> call_times(const Report& report) {
  std::vector<std::set<Time>> times(static_cast<std::size_t>(report.world_size));
  for (const Span& span : report.timeline.spans()) {
    std::set<Time>& own = times[static_cast<std::size_t>(span.rank)];
    if (own.size() < crashes_per_rank_max) {
      own.insert(span.start);
    }
  }
  return times;
}

Survival survive(const Disturbance& disturbance, const std::string& file, std::optional<std::uint64_t> seed) {
  Survival survival;
  survival.what = disturbance.what;
  survival.where = disturbance.where;
  const Scenario scenario = parse_scenario(disturbance.scenario.dump(), file);
  sim::Options options = scenario.options;
  options.seed = seed.value_or(options.seed);
  const Report report = sim::run_schedules([&](sim::Decisions& decisions) {
                          return run_once(scenario, options, decisions);
                        }).report;
  survival.verdict = verdict_word(report.verdict);
  if (const Finding* finding = finding_of(report.verdict)) {
    survival.kind = finding->kind;
    survival.headline = finding->headline;
  }
  return survival;
}

}  // namespace

WhatIf what_if(const std::string& address, const WhatIfOptions& options) {
  const Scenario scenario = load_scenario(address);
  WhatIf result;
  result.undisturbed = run(scenario, {.seed = options.seed, .timeline = options.crash_each});
  Disturber disturber(scenario, tree_of(address, scenario));
  std::vector<Disturbance> disturbances = disturber.all();
  if (options.crash_each) {
    const std::vector<std::set<Time>> times = call_times(result.undisturbed);
    for (Rank rank = 0; rank < scenario.options.world_size; ++rank) {
      std::ranges::move(disturber.deaths(rank, times[static_cast<std::size_t>(rank)]),
                        std::back_inserter(disturbances));
    }
  }
  for (const Disturbance& each : disturbances) {
    if (options.interrupted != nullptr && *options.interrupted != 0) {
      result.interrupted = true;
      break;
    }
    result.survivals.push_back(survive(each, scenario.file, options.seed));
    if (options.progress) {
      options.progress(result.survivals.size(), disturbances.size());
    }
  }
  return result;
}

}  // namespace rollcall::scenario
