// What a search finds, on random programs and on classics. The reference is always the search without reduction, which
// takes every order.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/p2p.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/store.h"
#include "sim/engine/simulate.h"
#include "sim/explore/explore.h"
#include "sim/explore/replay.h"
#include "sim/explore/sampler.h"
#include "sim/fibers/rank_scheduler.h"
#include "tests/catch.h"

namespace rollcall::sim::search_test {
namespace {

namespace fs = std::filesystem;

// Returns everything that a program can notice: its verdict, and the output of its ranks.
std::string outcome_of(const Report& report) {
  std::string text(verdict_word(report.verdict));
  if (const Finding* finding = finding_of(report.verdict)) {
    text += fmt::format(
        " {}",
        to_string(finding->kind));  // if two ranks read a stale key at one time, either may be named
  }
  for (const OutputLine& line : report.output) {
    text += fmt::format("; {}: {}", line.rank, line.text);
  }
  return text;
}

// Passes decisions on and notes which calls were served, in order.
class Witness final : public Decisions {
 public:
  explicit Witness(Decisions& inner) : inner_(inner) {}

  std::size_t decide(const Decision& decision) override {
    const std::size_t way = inner_.decide(decision);
    if (decision.kind == Decision::Kind::order && way < decision.ways) {
      calls_.push_back(decision.contenders[way]);
    }
    return way;
  }
  bool orders_calls() const override { return true; }
  bool watches(Rank receiver) const override { return inner_.watches(receiver); }
  void received_from_anyone(Rank receiver, std::uint64_t mailbox) override {
    inner_.received_from_anyone(receiver, mailbox);
  }
  bool is_open_to_anyone(std::uint64_t mailbox) const override { return inner_.is_open_to_anyone(mailbox); }

  // Returns the same text for all orders that differ only in independent calls: among the calls that could be next, it
  // always takes the one with the lowest number.
  std::string trace() const {
    std::string text;
    std::vector<Contender> left = calls_;
    while (!left.empty()) {
      std::size_t next = 0;
      for (std::size_t i = 1; i < left.size(); ++i) {
        const bool is_free = std::none_of(
            left.begin(), left.begin() + static_cast<std::ptrdiff_t>(i), [&](const Contender& before) {
              return depend(before, left[i]) || is_same_process(before, left[i]);
            });
        next = is_free && left[i].id < left[next].id ? i : next;
      }
      text += fmt::format("{:x} ", left[next].id);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(next));
    }
    return text;
  }

 private:
  Decisions& inner_;
  std::vector<Contender> calls_;
};

struct Visited {
  std::set<std::string> outcomes;
  std::set<std::string> traces;  // distinct orders
  std::int64_t runs = 0;
  std::int64_t cut = 0;
  bool complete = false;
};

Visited visit_all(const RunSchedule& run, bool reduces, Slice slice = {}) {
  constexpr std::int64_t most = 20'000;
  Visited visited;
  SearchTree tree(true, false, {.reduces = reduces, .slice = slice});
  while (!visited.complete && visited.runs < most) {
    tree.begin();
    Witness witness(tree);
    const Report report = run(witness);
    if (!tree.knows_all_shown()) {
      tree.restart();
      visited = {};
      continue;
    }
    if (tree.was_cut()) {
      ++visited.cut;
    } else if (!tree.was_skipped()) {
      ++visited.runs;
      visited.outcomes.insert(outcome_of(report));
      visited.traces.insert(witness.trace());
    }
    visited.complete = !tree.advance();
  }
  return visited;
}

// One step of a rank of a random program.
struct Step {
  enum class Kind { set, get, add, count, remove, check, barrier, send, receive } kind = Kind::set;
  std::string key;
  Rank peer = 0;
};

using RandomProgram = std::vector<std::vector<Step>>;  // by rank

RandomProgram random_program(std::uint64_t seed) {
  std::uint64_t drawn = 0;
  const auto draw = [&](std::uint64_t most) { return derived_seed(seed, drawn++) % most; };
  RandomProgram program(2 + draw(2));
  const auto ranks = static_cast<Rank>(program.size());
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::uint64_t steps = ranks == 2 ? 2 + draw(3) : 1 + draw(3);
    for (std::uint64_t i = 0; i < steps; ++i) {
      const auto kind = static_cast<Step::Kind>(draw(9));
      const Rank peer = (rank + 1 + static_cast<Rank>(draw(static_cast<std::uint64_t>(ranks) - 1))) % ranks;
      program[static_cast<std::size_t>(rank)].push_back({kind, draw(3) == 0 ? "y" : "x", peer});
    }
  }
  return program;
}

void perform(const Step& step, Rank rank, std::size_t number) {
  const Store store;
  Tensor one = Tensor::full({1}, 10.0 * rank + static_cast<double>(number));
  switch (step.kind) {
    case Step::Kind::set:
      return store.set(step.key, fmt::format("{}", 100 * rank + static_cast<int>(number)));
    case Step::Kind::get:
      return print("got " + store.get(step.key));
    case Step::Kind::add:
      return print(fmt::format("sum {}", store.add(step.key, 1000)));
    case Step::Kind::count:
      return store.count(step.key, 5000);
    case Step::Kind::remove:
      return print(store.delete_key(step.key) ? "removed" : "was not there");
    case Step::Kind::check:
      return print(fmt::format("{} keys", store.num_keys()));
    case Step::Kind::barrier:
      barrier();
      return;
    case Step::Kind::send:
      return send(one, step.peer);
    case Step::Kind::receive: {
      const Rank source = recv(one);
      return print(fmt::format("{} from {}", one.item(), source));
    }
  }
}

RunSchedule runner_of(const RandomProgram& program) {
  return [&program](Decisions& decisions) {
    return run_once(
        {.world_size = static_cast<Rank>(program.size()), .backend = "gloo", .decisions = &decisions},
        [&](Rank rank) {
          const std::vector<Step>& steps = program[static_cast<std::size_t>(rank)];
          for (std::size_t i = 0; i < steps.size(); ++i) {
            perform(steps[i], rank, i);
          }
        });
  };
}

std::vector<fs::path> classics() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(ROLLCALL_SOURCE_DIR "/tests/data/explore")) {
    if (entry.path().extension() == ".json") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

RunSchedule runner_of(const scenario::Scenario& scenario) {
  return
      [&scenario](Decisions& decisions) { return scenario::run_once(scenario, scenario.options, decisions); };
}

}  // namespace

TEST_CASE("the reduced search visits every outcome that there is, of programs drawn at random",
          "[explore][fiber]") {
  std::int64_t reduced_runs = 0;
  std::int64_t all_runs = 0;
  run_on_threads(1, [&](std::uint32_t) {
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      INFO("seed " << seed);
      const RandomProgram program = random_program(seed);
      const Visited all = visit_all(runner_of(program), false);
      const Visited reduced = visit_all(runner_of(program), true);
      CHECK(reduced.complete);
      CHECK(reduced.runs <= all.runs);
      if (all.complete) {
        CHECK(reduced.outcomes == all.outcomes);
        CHECK(reduced.traces.size() == all.traces.size());
        CHECK(static_cast<std::size_t>(reduced.runs) == reduced.traces.size());
      }
      reduced_runs += reduced.runs;
      all_runs += all.runs;
    }
  });
  CHECK(reduced_runs * 2 < all_runs);
}

TEST_CASE("parts of a search together visit what the whole does, and nothing twice", "[explore][fiber]") {
  run_on_threads(1, [&](std::uint32_t) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      INFO("seed " << seed);
      const RandomProgram program = random_program(seed);
      const Visited whole = visit_all(runner_of(program), true);
      Visited parts;
      for (std::uint32_t index = 0; index < 3; ++index) {
        const Visited part = visit_all(runner_of(program), true, {index, 3});
        parts.outcomes.insert(part.outcomes.begin(), part.outcomes.end());
        parts.runs += part.runs;
      }
      CHECK(parts.outcomes == whole.outcomes);
      CHECK(parts.runs == whole.runs);
    }
  });
}

// The table has the name, the schedules with and without reduction, those begun in vain, and every outcome.
TEST_CASE("of the classics every outcome is visited, and the table of them holds", "[explore][fiber]") {
  std::string table;
  run_on_threads(1, [&](std::uint32_t) {
    for (const fs::path& file : classics()) {
      INFO(file.filename().string());
      const scenario::Scenario scenario = scenario::load_scenario(file.string());
      const Visited all = visit_all(runner_of(scenario), false);
      const Visited reduced = visit_all(runner_of(scenario), true);
      CHECK(all.complete);
      CHECK(reduced.complete);
      CHECK(reduced.outcomes == all.outcomes);
      Replay usual{Schedule{}};
      CHECK(reduced.outcomes.contains(outcome_of(scenario::run_once(scenario, scenario.options, usual))));
      table += fmt::format("{}: {} schedules, {} cut short; without reduction {}\n", file.stem().string(),
                           reduced.runs, reduced.cut, all.runs);
      for (const std::string& outcome : reduced.outcomes) {
        table += "  " + outcome + "\n";
      }
    }
  });
  const std::string kept = ROLLCALL_SOURCE_DIR "/tests/data/explore/table.txt";
  if (std::getenv("ROLLCALL_BLESS") != nullptr) {
    std::ofstream(kept) << table;
  }
  std::ifstream in(kept);
  CHECK(table == std::string(std::istreambuf_iterator<char>(in), {}));
}

TEST_CASE("a search depends neither on its threads nor on when it is made", "[explore][fiber]") {
  const RandomProgram program = random_program(7);
  const auto outcomes = [&](Scheduler scheduler, int jobs) {
    const Exploration found =
        explore(runner_of(program), {.schedules = 300, .scheduler = scheduler, .jobs = jobs, .seed = 5});
    std::vector<std::pair<std::int64_t, std::string>> endings;
    for (const Ending& ending : found.tally.endings()) {
      endings.emplace_back(ending.count, outcome_of(ending.report) + to_text(ending.schedule));
    }
    return endings;
  };
  for (const Scheduler scheduler : {Scheduler::random, Scheduler::pct}) {
    CHECK(outcomes(scheduler, 1) == outcomes(scheduler, 3));
    CHECK(outcomes(scheduler, 1) == outcomes(scheduler, 1));
  }
}

TEST_CASE("schedules at random find what a search finds", "[explore][fiber]") {
  for (const Scheduler scheduler : {Scheduler::random, Scheduler::pct}) {
    std::set<std::string> found;
    const RandomProgram program = {{{Step::Kind::set, "x", 0}, {Step::Kind::get, "x", 0}},
                                   {{Step::Kind::set, "x", 0}, {Step::Kind::get, "x", 0}}};
    const RunSchedule run = runner_of(program);
    explore(
        [&](Decisions& decisions) {
          Report report = run(decisions);
          found.insert(outcome_of(report));
          return report;
        },
        {.schedules = 200, .scheduler = scheduler});
    CHECK(found == visit_all(run, true).outcomes);
  }
}

TEST_CASE("with at most so many steps from the usual way, a search says that it is not all",
          "[explore][fiber]") {
  const std::vector<Step> writes(3, {Step::Kind::set, "x", 0});
  const RandomProgram program = {writes, writes};
  const Exploration bounded = explore(runner_of(program), {.scheduler = Scheduler::dfs, .deviations_max = 1});
  CHECK_FALSE(bounded.exhaustive);
  CHECK(bounded.bounds ==
        std::vector<std::string>{"only schedules with at most 1 step from the default one were tried"});
  const Exploration whole = explore(runner_of(program), {.scheduler = Scheduler::dfs});
  CHECK(whole.exhaustive);
  CHECK(whole.tally.schedules() == 20);  // 6 over 3
  CHECK(bounded.tally.schedules() < whole.tally.schedules());
}

TEST_CASE("a search estimates how many schedules there are, and then finds that many", "[explore][fiber]") {
  const scenario::Scenario scenario =
      scenario::load_scenario(ROLLCALL_SOURCE_DIR "/tests/data/explore/work_queue.json");
  run_on_threads(1, [&](std::uint32_t) {
    SearchTree tree(true, false, {});
    std::vector<double> shares;
    do {
      shares.push_back(tree.share_done());
      tree.begin();
      scenario::run_once(scenario, scenario.options, tree);
    } while (tree.advance());
    CHECK(shares.front() == 0);
    CHECK(shares.back() > 0.5);
    CHECK(std::ranges::all_of(shares, [](double share) { return share >= 0 && share <= 1; }));
  });
}

TEST_CASE("a program that leaves nothing to timing is explored by one run", "[explore][fiber]") {
  const Exploration found = explore(
      [](Decisions& decisions) {
        return run_once({.world_size = 64, .backend = "gloo", .decisions = &decisions}, [](Rank rank) {
          for (int i = 0; i < 20; ++i) {
            all_reduce(Tensor::ones({10}));
            const Tensor given = Tensor::ones({10});
            const Work sent = isend(given, (rank + 1) % 64);
            recv(Tensor::ones({10}), (rank + 63) % 64);
            sent.wait();
            barrier();
          }
        });
      },
      {});
  CHECK(found.exhaustive);
  CHECK(found.tally.schedules() == 1);
}

}  // namespace rollcall::sim::search_test
