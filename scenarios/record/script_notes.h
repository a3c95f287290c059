#pragma once

// What only shows when the records of all ranks lie side by side.

#include <vector>

#include "scenarios/record/script_statements.h"

namespace rollcall::scenario {

struct NoteOptions {
  // Lines of the script as labels, for finding calls that met though they do not belong together. Two lines belong
  // together when their calls met and no rank comes to both: the two sides of `if rank == 0`. Calls of a rank that has
  // joined have none: they meet the calls that they stand for.
  bool labels = false;
};

// By position in `record.ranks`:
// - labels, if wanted;
// - sizes of pickled objects: a rank that recorded alone knows its own only, and torch sends the largest of all;
// - peers that are the same rank seen from everybody, "(rank + 1) % world_size".
std::vector<CallNotes> script_notes(const traces::ScriptRecord& record, const NoteOptions& options);

}  // namespace rollcall::scenario
