#pragma once

// The lines of a log, by the process that wrote them. Launchers and collectors of logs put prefixes before lines:
// torch's "[rank2]: ", torchrun's "[default0]:", srun's "2: ", Open MPI's "[1,2]<stderr>:", times, names of pods and
// hosts. A prefix of unknown form is known if it also stands before a line of torch's: "worker-1 | [rank5]: ...".
// A console of Ray may have several jobs: "(Actor pid=7) [rank0]: ...", "(Critic pid=9) [rank0]: ...".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"

namespace rollcall::traces {

struct LogLine {
  std::int64_t number;    // in the file, from 1
  std::string_view text;  // without prefixes
};

struct LogStream {
  Rank rank = -1;  // -1: not known
  std::vector<LogLine> lines;
  std::string job = {};  // the class of Ray's actor, if the log has ranks of several
};

// `file_rank`: the rank of lines that name none; -1 if not known. `bytes` has to outlive the result.
std::vector<LogStream> log_streams(std::string_view bytes, Rank file_rank);

// The rank that all of torch's prefixes name: "[rank3]:". Empty if there are none, or of several ranks.
std::optional<Rank> rank_named_in(std::string_view bytes);

// True if a prefix of a known form stands before the line.
bool has_prefix(std::string_view line);

// True if lines name ranks, and none of them is `rank`: then a number in the file's name is that of a job or a node.
bool names_only_others(std::string_view bytes, Rank rank);

// Adds a fact that this line says, and returns it.
check::LogFact& add_fact(std::vector<check::LogFact>& facts, check::LogFact::Kind kind, RankSet ranks,
                         std::int64_t line = 0);

// The whole text as one process wrote it, without prefixes.
LogStream log_of_one(std::string_view bytes, Rank rank);

}  // namespace rollcall::traces
