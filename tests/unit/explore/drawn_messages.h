#pragma once

// Small random programs of messages, for the model of the transport and for the simulator.

#include <cstdint>

#include "sim/engine/simulate.h"
#include "sim/explore/explore.h"
#include "tests/unit/explore/transport_model.h"

namespace rollcall::model {

// Two to four ranks; one or two tags and groups; sends, receives from a named source and from any source, waits and
// barriers. Most have a rank that receives in both ways.
Program drawn_program(std::uint64_t seed);
// The same with three messages more.
Program drawn_crowd(std::uint64_t seed);

// A rank that answers each sender, and two or three ranks that ask: the receivers of its messages depend on the order
// in which the others came. Some ranks also do something else.
Program drawn_server(std::uint64_t seed);

// Returns the program as text, for failure messages.
std::string to_text(const Program& program);

// Whether ranks see which message they have received. The ranks of a server need that.
enum class Sight { clear, blind };

// Runs the program once, on Gloo.
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
