#pragma once

// Reads the source lines that a report points to, if their files are available.

#include <filesystem>
#include <string_view>

#include "sim/report/diagnosis.h"
#include "sim/report/report.h"
#include "viz/ci/test_outcome.h"

namespace rollcall::scenario {

// The place in a call's site, "train.json:14:7" or "train.py:14". Line 0: it names none.
viz::SourcePlace place_of_site(std::string_view site);

// `file` is the file that was run: the calls' sites have its last component. Files of other sites are searched for at
// their path, and next to `file`. What cannot be read is left out.
void read_sources(Report& report, const std::filesystem::path& file);

// For a job that ran elsewhere: files are searched for at the calls' paths, and by the end of these paths below the
// working directory ("/workspace/job/train.py" is job/train.py or train.py). The file may have changed since, or be
// another one: a line is shown only if it is in the function that made the call.
void read_sources(Diagnosis& diagnosis);

}  // namespace rollcall::scenario
