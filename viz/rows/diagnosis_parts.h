#pragma once

// The parts of a diagnosis that every format words alike.

#include <string>

#include "sim/report/diagnosis.h"

namespace rollcall::viz {

// "medium; these dumps would also fit straggler"; empty if nothing is wrong.
std::string confidence_phrase(const Diagnosis& diagnosis);
// "mesh_tp (name 11), ranks 4-5": where the fault lies; empty if no group is known.
std::string group_phrase(const Diagnosis& diagnosis);
// "96 records of 7 ranks; no dump from rank 3".
std::string records_phrase(const Diagnosis& diagnosis);

}  // namespace rollcall::viz
