// Compares a search of small programs of messages with a model of Gloo's transport that tries every interleaving.

#include <algorithm>
#include <cstdlib>
#include <string>

#include "sim/explore/replay.h"
#include "sim/fibers/rank_scheduler.h"
#include "tests/catch.h"
#include "tests/environment.h"
#include "tests/unit/explore/drawn_messages.h"

namespace rollcall::model::drawn_messages_test {
namespace {

std::string listed(const Outcomes& outcomes) {
  std::string text;
  for (const std::string& outcome : outcomes) {
    text += "  " + outcome + "\n";
  }
  return text;
}

struct Agreement {
  std::int64_t compared = 0;
  std::int64_t too_large = 0;
  std::int64_t deadlocks = 0;  // programs that may hang, but need not
  std::int64_t schedules = 0;
  std::int64_t merged = 0;  // runs that reached another run's state
};

void compare(const Program& program, std::uint64_t seed, std::size_t states_max, Agreement& agreement) {
  INFO("seed " << seed << "\n" << to_text(program));
  const Modeled modeled = all_outcomes(program, states_max);
  const Explored found = explored(program, {}, 20'000);
  if (!modeled.is_complete || !found.exhaustive) {
    ++agreement.too_large;
    return;
  }
  ++agreement.compared;
  agreement.schedules += found.schedules;
  const auto hangs = [](const std::string& outcome) { return outcome.starts_with("deadlock"); };
  const auto deadlocks = std::ranges::count_if(modeled.outcomes, hangs);
  agreement.deadlocks += deadlocks > 0 && deadlocks < std::ssize(modeled.outcomes) ? 1 : 0;
  INFO("the model:\n" << listed(modeled.outcomes) << "the search:\n" << listed(found.outcomes));
  CHECK(found.outcomes == modeled.outcomes);
  if (seed % 4 == 0) {
    const Explored by_states = explored(program, {.compares_states = true}, 20'000);
    CHECK(by_states.exhaustive);
    INFO("the search that compares states:\n" << listed(by_states.outcomes));
    CHECK(by_states.outcomes == modeled.outcomes);
    agreement.merged += by_states.cut;
  }
  const std::string usual = outcome_of(perform(program, nullptr), program.size());
  INFO("the usual run: " << usual);
  CHECK(modeled.outcomes.contains(usual));
  if (seed % 10 == 0) {
    const Explored all = explored(program, {.reduces = false}, 200);
    if (all.exhaustive) {
      CHECK(all.outcomes == found.outcomes);
      CHECK(found.schedules <= all.schedules);
    }
  }
}

// Compares programs of one kind: 2,000 in every run of the tests, and more overnight with scripts/explore-many.
void compare_drawn(Program (*draw)(std::uint64_t seed), std::uint64_t usual_count,
                   std::size_t usual_states_max) {
  const std::uint64_t first = test::number_from_environment("ROLLCALL_DRAWN_FIRST", 0);
  const std::uint64_t count = test::number_from_environment("ROLLCALL_DRAWN", usual_count);
  const std::uint64_t states_max = test::number_from_environment("ROLLCALL_DRAWN_STATES", usual_states_max);
  Agreement agreement;
  sim::run_on_threads(1, [&](std::uint32_t) {
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      compare(draw(seed), seed, states_max, agreement);
    }
  });
  if (std::getenv("ROLLCALL_DRAWN") != nullptr) {
    WARN(agreement.compared << " programs of " << count << " compared in " << agreement.schedules
                            << " schedules, " << agreement.merged << " runs ended in states of others, "
                            << agreement.too_large << " too large, " << agreement.deadlocks
                            << " hang in some schedules only");
  }
  CHECK(agreement.compared * 4 > static_cast<std::int64_t>(count));
  CHECK(agreement.deadlocks * 50 > agreement.compared);
}

}  // namespace

TEST_CASE("a search finds every outcome of drawn messages that a model of the transport has, and no other",
          "[explore][fiber]") {
  compare_drawn(drawn_program, 2'000, 800);
}

TEST_CASE("where ranks cannot tell messages apart, a search that compares states finds what another finds",
          "[explore][fiber]") {
  const std::uint64_t first = test::number_from_environment("ROLLCALL_DRAWN_FIRST", 0);
  const std::uint64_t count = test::number_from_environment("ROLLCALL_DRAWN", 150);
  std::int64_t merged = 0;
  std::int64_t compared = 0;
  sim::run_on_threads(1, [&](std::uint32_t) {
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      const Program program = drawn_crowd(seed);
      INFO("seed " << seed << "\n" << to_text(program));
      const Explored usual = explored(program, {}, 1'000, Sight::blind);
      if (!usual.exhaustive) {
        continue;
      }
      const Explored found = explored(program, {.compares_states = true}, 20'000, Sight::blind);
      CHECK(found.exhaustive);
      CHECK(found.outcomes == usual.outcomes);
      merged += found.cut;
      ++compared;
    }
  });
  if (std::getenv("ROLLCALL_DRAWN") != nullptr) {
    WARN(compared << " programs of " << count << " compared, " << merged
                  << " runs ended in states of others");
  }
  CHECK(compared * 2 > static_cast<std::int64_t>(count));
  CHECK(merged > compared);
}

TEST_CASE("a search finds every outcome of drawn servers that answer whoever came first, and no other",
          "[explore][fiber]") {
  compare_drawn(drawn_server, 150, 1'500);
}

TEST_CASE("a message that arrives only after all ranks have ended could have come before another",
          "[explore][fiber]") {
  // An arrival lets its sender continue, while the run that takes another message first ends without it.
  Agreement agreement;
  sim::run_on_threads(1, [&](std::uint32_t) {
    for (const std::uint64_t seed :
         {7677, 12772, 12801, 15990, 16571, 18042, 20707, 23418, 52505, 58373, 62927, 63651}) {
      compare(drawn_program(seed), seed, 300'000, agreement);
    }
  });
  CHECK(agreement.compared == 12);
}

TEST_CASE("every schedule of drawn messages can be repeated from its text", "[explore][fiber]") {
  std::int64_t repeated = 0;
  sim::run_on_threads(1, [&](std::uint32_t) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Program program = drawn_program(seed);
      INFO("seed " << seed << "\n" << to_text(program));
      sim::SearchTree tree(true, false, {});
      for (bool more = true; more;) {
        tree.begin();
        const std::string outcome = outcome_of(perform(program, &tree), program.size());
        if (!tree.knows_all_shown()) {
          tree.restart();
          continue;
        }
        more = tree.advance();
        if (tree.was_cut()) {
          continue;
        }
        sim::Replay replay(sim::parse_schedule(sim::to_text(tree.schedule())));
        CHECK(outcome_of(perform(program, &replay), program.size()) == outcome);
        CHECK_FALSE(replay.divergence());
        ++repeated;
      }
    }
  });
  CHECK(repeated > 90);
}

TEST_CASE("parts of a search of drawn messages find what the whole finds", "[explore][fiber]") {
  sim::run_on_threads(1, [&](std::uint32_t) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Program program = drawn_program(seed);
      INFO("seed " << seed << "\n" << to_text(program));
      for (const bool compares_states : {false, true}) {
        Outcomes parts;
        for (std::uint32_t index = 0; index < 3; ++index) {
          const Explored part =
              explored(program, {.slice = {index, 3}, .compares_states = compares_states}, 20'000);
          CHECK(part.exhaustive);
          parts.insert(part.outcomes.begin(), part.outcomes.end());
        }
        CHECK(parts == explored(program, {}, 20'000).outcomes);
      }
    }
  });
}

}  // namespace rollcall::model::drawn_messages_test
