#pragma once

// Reads the lines of source that a report points at, where their files are at hand.

#include <filesystem>
#include <string_view>

#include "sim/report/diagnosis.h"
#include "sim/report/report.h"
#include "viz/ci/test_outcome.h"

namespace rollcall::scenario {

// Of a call's site, "train.json:14:7" or "train.py:14". Line 0: it names none.
viz::SourcePlace place_of_site(std::string_view site);

// `file` is what was run: the calls' sites have its last component. Other sites are looked for where they say, and
// beside it. What cannot be read is left out.
void read_sources(Report& report, const std::filesystem::path& file);

// Of a job that ran somewhere else: files are looked for where the calls say, and by the end of that path below the
// working directory ("/workspace/job/train.py" is job/train.py or train.py). The file may have changed since, or be
// another one: a line is shown only if it stands in the function that called.
void read_sources(Diagnosis& diagnosis);

}  // namespace rollcall::scenario
