#pragma once

// Small programs of messages drawn at random, as the model of the transport and as the simulator take them.

#include <cstdint>

#include "sim/engine/simulate.h"
#include "sim/explore/explore.h"
#include "tests/unit/explore/transport_model.h"

namespace rollcall::model {

// Two to four ranks; one or two tags and groups; sends, receives by name and from anyone, waits and barriers. Most
// have a rank that receives both ways.
Program drawn_program(std::uint64_t seed);
// The same with three messages more.
Program drawn_crowd(std::uint64_t seed);

// A rank that answers whoever has sent it something, and two or three that ask: whom its messages go to depends on the
// order in which others have come. Some ranks do something else besides.
Program drawn_server(std::uint64_t seed);

// For a message that shows where they differ.
std::string to_text(const Program& program);

// Whether ranks see which message it is that they have received. Those of a server need it.
enum class Sight { clear, blind };

// One run of it, on Gloo.
Report perform(const Program& program, sim::Decisions* decisions, Sight sight = Sight::clear);
std::string outcome_of(const Report& report, std::size_t ranks);

struct Explored {
  Outcomes outcomes;
  std::int64_t schedules = 0;
  std::int64_t cut = 0;
  bool exhaustive = false;
};
Explored explored(const Program& program, const sim::SearchTree::Options& options, std::int64_t schedules_max,
                  Sight sight = Sight::clear);

}  // namespace rollcall::model
