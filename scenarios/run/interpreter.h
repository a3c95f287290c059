#pragma once

// The interpreter: runs the lowered program of a scenario as a rank program, over the same functions a
// C++ program calls.

#include <string>

#include "scenarios/program/program.h"

namespace rollcall::scenario {

class RankFrame;
struct Scenario;

// Runs the program of `rank`, on that rank's own fiber or thread. Throws what the program raises.
void run_rank(const Scenario& scenario, Rank rank);

// Runs part of the program. Returns where to go on: the block's end, or an address outside the block
// when a `break` left it. Throws what the statements raise, and ProgramExit on `exit`.
Address run_block(RankFrame& frame, const Block& block);

// Issues one collective call, and waits for it unless it is asynchronous.
void run_collective(RankFrame& frame, const Collective& call, Site site);

// A text with its holes filled.
std::string compose(const RankFrame& frame, TableIndex text);

// Calls about groups and on the store; they block.
void run_group_call(RankFrame& frame, const GroupStatement& call, Site site);
void run_store_call(RankFrame& frame, const StoreStatement& call, Site site);

// Ends a rank's program: Python's SystemExit. Not a std::exception, so that `try` lets it through.
struct ProgramExit {};

}  // namespace rollcall::scenario
