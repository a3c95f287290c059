#pragma once

// Information that only the records of all ranks together provide.

#include <vector>

#include "scenarios/record/script_statements.h"

namespace rollcall::scenario {

struct NoteOptions {
  // Lines of the script as labels, for finding calls that were paired though they do not belong together. Two lines
  // belong together if their calls were paired and no rank reaches both: the two sides of `if rank == 0`. Calls of a
  // rank that has joined have no label: they pair with the calls that they shadow.
  bool labels = false;
};

// By position in `record.ranks`:
// - labels, if wanted;
// - sizes of pickled objects: a rank that recorded alone knows only its own, and torch sends the largest of all;
// - peers that all ranks can express in the same way, "(rank + 1) % world_size".
std::vector<CallNotes> script_notes(const traces::ScriptRecord& record, const NoteOptions& options);

}  // namespace rollcall::scenario
