// Searches that compare states find the same as a search that does not, in far fewer runs.

#include <algorithm>
#include <set>
#include <string>

#include <fmt/core.h>

#include "scenarios/format/scenario.h"
#include "scenarios/run/explore_scenario.h"
#include "scenarios/run/rank_frame.h"
#include "scenarios/run/runner.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/p2p.h"
#include "sim/explore/sampler.h"
#include "sim/explore/search_tree.h"
#include "sim/fibers/rank_scheduler.h"
#include "tests/catch.h"
#include "tests/environment.h"

namespace rollcall::scenario::states_test {
namespace {

struct Found {
  std::set<std::string> endings;
  std::int64_t runs = 0;
  bool is_complete = false;
  bool is_lost = false;
};

// Returns the verdict, the kind and the place, which a search counts.
std::string ending_of(const Report& report) {
  std::string ending = verdict_phrase(verdict_word(report.verdict), kind_of(report.verdict));
  if (const Finding* finding = finding_of(report.verdict); finding != nullptr && finding->at) {
    ending += " in " + call_phrase(finding->at->call);
  }
  return ending;
}

Found searched(const sim::RunSchedule& run, const sim::SearchTree::Options& options,
               std::int64_t most = 20'000) {
  Found found;
  sim::SearchTree tree(true, false, options);
  while (!found.is_complete && found.runs < most) {
    tree.begin();
    const Report report = run(tree);
    if (!tree.knows_all_shown()) {
      tree.restart();
      found = {};
      continue;
    }
    ++found.runs;
    found.is_lost = tree.is_lost();
    if (found.is_lost) {
      return found;
    }
    if (!tree.was_cut()) {
      found.endings.insert(ending_of(report));
    }
    found.is_complete = !tree.advance();
  }
  return found;
}

sim::RunSchedule runner_of(const Scenario& scenario) {
  return [&scenario](sim::Decisions& decisions) { return run_once(scenario, scenario.options, decisions); };
}

Scenario scenario_of(Rank ranks, const std::string& program) {
  return parse_scenario(fmt::format(R"({{ "version": 1, "name": "states", "world_size": {}, "backend": "gloo",
                                          "program": [ {} ] }})",
                                    ranks, program),
                        "states.json");
}

// A server that receives from all workers in each round, and then answers.
Scenario collecting(int workers, int rounds) {
  std::string answers;
  for (int worker = 1; worker <= workers; ++worker) {
    answers += fmt::format(R"(, {{ "send": {{ "numel": 1, "dst": {} }} }})", worker);
  }
  return scenario_of(workers + 1, fmt::format(R"({{ "repeat": {}, "do": [
    {{ "if": "rank == 0",
       "do": [ {{ "repeat": {}, "do": [ {{ "recv": {{ "numel": 1 }} }} ] }} {} ],
       "else": [ {{ "send": {{ "numel": 1, "dst": 0 }} }}, {{ "recv": {{ "numel": 1, "src": 0 }} }} ] }} ] }})",
                                              rounds, workers, answers));
}

// A server that answers whichever worker came first.
Scenario answering(int workers, int rounds) {
  return scenario_of(workers + 1, fmt::format(R"(
    {{ "if": "rank == 0",
       "do": [ {{ "repeat": {}, "do": [ {{ "recv": {{ "numel": 1, "as": "who" }} }},
                                        {{ "send": {{ "numel": 1, "dst": "who" }} }} ] }} ],
       "else": [ {{ "repeat": {}, "do": [ {{ "send": {{ "numel": 1, "dst": 0 }} }},
                                          {{ "recv": {{ "numel": 1, "src": 0 }} }} ] }} ] }})",
                                              workers * rounds, rounds));
}

// Ranks that receive from any source and from named ones, add the values, send the sum on, rely on a value, use the
// store, and wait now or later.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}

  Scenario scenario() {
    const int ranks = 3 + below(2);
    const int steps = ranks == 3 ? 8 + below(4) : 7 + below(4);
    std::vector<std::string> programs(static_cast<std::size_t>(ranks));
    const int server = below(ranks);
    for (int i = 0; i < steps; ++i) {
      const int receiver = below(3) > 0 ? server : below(ranks);
      const int sender = (receiver + 1 + below(ranks - 1)) % ranks;
      if (below(10) > 0) {
        programs[static_cast<std::size_t>(sender)] += sends(receiver, i);
      }
      if (below(10) > 0) {
        programs[static_cast<std::size_t>(receiver)] += receives(sender, i);
      }
      if (below(3) == 0) {
        programs[static_cast<std::size_t>(below(ranks))] += extra();
      }
    }
    std::string all;
    for (int rank = 0; rank < ranks; ++rank) {
      all += fmt::format(
          R"({}{{ "if": "rank == {}", "do": [ {{ "fill": "sum", "numel": 1, "value": 0 }} {} ] }})",
          rank == 0 ? "" : ", ", rank, programs[static_cast<std::size_t>(rank)]);
    }
    text = all;
    return scenario_of(ranks, all);
  }

  std::string text;

 private:
  int below(int most) {
    return static_cast<int>(sim::derived_seed(seed_, drawn_++) % static_cast<std::uint64_t>(most));
  }

  std::string sends(int receiver, int step) {
    const std::string what = below(2) == 0 ? R"("tensor": "sum")" : fmt::format(R"("value": {})", below(2));
    return below(2) == 0
               ? fmt::format(R"(, {{ "send": {{ {}, "numel": 1, "dst": {} }} }})", what, receiver)
               : fmt::format(
                     R"(, {{ "isend": {{ {}, "numel": 1, "dst": {}, "as": "s{}" }} }}, {{ "wait": "s{}" }})",
                     what, receiver, step, step);
  }

  std::string receives(int sender, int step) {
    const std::string source = below(3) == 0 ? fmt::format(R"(, "src": {})", sender) : std::string();
    const std::string add = below(2) == 0 ? R"(, { "add": "sum", "tensor": "got" })" : "";
    if (below(3) > 0) {
      return fmt::format(R"(, {{ "recv": {{ "tensor": "got", "numel": 1{} }} }}{})", source, add);
    }
    return fmt::format(
        R"(, {{ "irecv": {{ "tensor": "t{}", "numel": 1{}, "as": "r{}" }} }}, {{ "wait": "r{}" }})", step,
        source, step, step);
  }

  std::string extra() {
    switch (below(4)) {
      case 0:
        return fmt::format(R"(, {{ "store_set": "k", "value": "{}" }})", below(2));
      case 1:
        return R"(, { "store_add": "n", "value": 1 })";
      case 2:
        return fmt::format(R"(, {{ "check": "sum", "value": {} }})", below(3));
      default:
        return R"(, { "store_get": "k" })";
    }
  }

  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

}  // namespace

TEST_CASE("a search that compares states finds what another finds, in scenarios drawn at random",
          "[explore][fiber]") {
  const std::uint64_t first = test::number_from_environment("ROLLCALL_DRAWN_FIRST", 0);
  const std::uint64_t count = test::number_from_environment("ROLLCALL_DRAWN", 150);
  std::int64_t usual_runs = 0;
  std::int64_t runs = 0;
  std::int64_t mixed = 0;
  std::int64_t compared = 0;
  sim::run_on_threads(1, [&](std::uint32_t) {
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      Draw draw(seed);
      const Scenario scenario = draw.scenario();
      INFO("seed " << seed << "\n" << draw.text);
      const Found usual = searched(runner_of(scenario), {}, 3'000);
      if (!usual.is_complete) {
        continue;
      }
      const Found found = searched(runner_of(scenario), {.compares_states = true});
      REQUIRE_FALSE(found.is_lost);
      CHECK(found.is_complete);
      CHECK(found.endings == usual.endings);
      ++compared;
      usual_runs += usual.runs;
      runs += found.runs;
      mixed += usual.endings.size() > 1 ? 1 : 0;
    }
  });
  CAPTURE(compared, usual_runs, runs, mixed);
  CHECK(compared * 10 > static_cast<std::int64_t>(count) * 8);
  CHECK(mixed * 10 > compared);
  CHECK(runs < usual_runs);
}

TEST_CASE("a server that collects has as many states as subsets of its workers", "[explore][fiber]") {
  const Report report = explore(collecting(4, 3), {});
  CHECK(report.exhaustive);
  REQUIRE(report.search);
  CHECK(report.search->outcomes == std::vector<Outcome>{{"ok", FindingKind::ok, report.schedules}});
  CHECK(report.schedules + report.search->cut < 3 * (4 << 4));
  CHECK(searched(runner_of(collecting(4, 1)), {}).runs == 24);
}

TEST_CASE("a server that answers whoever came first is in one state, whoever that was", "[explore][fiber]") {
  const Scenario scenario = answering(3, 2);
  const Found usual = searched(runner_of(scenario), {});
  const Found found = searched(runner_of(scenario), {.compares_states = true});
  CHECK(found.is_complete);
  CHECK(found.endings == usual.endings);
  CAPTURE(usual.runs, found.runs);
  CHECK(found.runs * 2 < usual.runs + 100);
  CHECK(explore(answering(3, 5), {}).exhaustive);
}

TEST_CASE("what is at the end of many rounds is found where states repeat", "[explore][fiber]") {
  // The very last message decides, and all earlier ones come in any order.
  Scenario scenario = scenario_of(4, R"(
    { "fill": "got", "numel": 1, "value": 0 },
    { "if": "rank == 0",
      "do": [ { "repeat": 12, "do": [ { "recv": { "tensor": "got", "numel": 1 } } ] },
              { "check": "got", "value": 3 } ],
      "else": [ { "repeat": 4,
                  "do": [ { "send": { "tensor": "mine", "numel": 1, "value": "rank", "dst": 0 } } ] } ] })");
  const Report report = explore(scenario, {});
  CHECK(report.exhaustive);
  REQUIRE(report.search);
  CHECK(report.search->outcomes.size() == 2);
}

TEST_CASE("the threads of a search compare states each for itself, and find the same", "[explore][fiber]") {
  const Report report = explore(collecting(4, 3), {.search = {.jobs = 3}});
  CHECK(report.exhaustive);
  REQUIRE(report.search);
  CHECK(report.search->outcomes == std::vector<Outcome>{{"ok", FindingKind::ok, report.schedules}});
}

TEST_CASE("ranks in C++ are told apart by what they have learned", "[explore][fiber]") {
  // No rank can tell in which order equal messages came, unless it asks for the source.
  const auto ask = [](bool asks) {
    return [asks](Rank rank) {
      const int messages = 6;
      for (int i = 0; rank == 0 && i < messages; ++i) {
        const Tensor got = Tensor::zeros({1});
        asks ? static_cast<void>(recv(got)) : irecv(got).wait();
      }
      for (int i = 0; rank > 0 && i < messages / 2; ++i) {
        send(Tensor::ones({1}), 0);
      }
    };
  };
  for (const bool asks : {false, true}) {
    const auto run = [&](sim::Decisions& decisions) {
      return sim::run_once({.world_size = 3, .backend = "gloo", .decisions = &decisions}, ask(asks));
    };
    sim::run_on_threads(1, [&](std::uint32_t) {
      const Found usual = searched(run, {});
      const Found found = searched(run, {.compares_states = true});
      CHECK(usual.runs == 20);  // 6 over 3
      CHECK(found.is_complete);
      CHECK(found.endings == usual.endings);
      CHECK((found.runs < 20) == !asks);
    });
  }
}

TEST_CASE("a search that would have to keep too many states, or looks at the clock, compares none",
          "[explore][fiber]") {
  const Scenario scenario = collecting(3, 2);
  CHECK(searched(runner_of(scenario), {.compares_states = true, .state_bytes_max = 2'000}).is_lost);
  Scenario timed = collecting(3, 2);
  timed.options.timeout = second;
  CHECK(searched(runner_of(timed), {.compares_states = true}).is_lost);
}

}  // namespace rollcall::scenario::states_test
