#pragma once

// Whatever else than recordings a job leaves: logs, stacks, counters. One reader for each, and a file may be several: a
// log has the watchdog's lines and a traceback.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "traces/values/value.h"

namespace rollcall::traces {

// The names of what is understood, for messages.
std::vector<std::string_view> evidence_names();

// `rank` is what the file's name or folder says, -1: nothing. Nothing where no reader knows the text.
std::optional<std::vector<check::LogFact>> read_text_evidence(std::string_view bytes, Rank rank,
                                                              const std::string& file);
// The same of what has been read as JSON.
std::optional<std::vector<check::LogFact>> read_json_evidence(const Value& value, Rank rank,
                                                              const std::string& file);

// That there is a log of a rank, which may say nothing: that is a fact, too, where others report errors.
bool is_named_like_log(std::string_view path);
check::LogFact rank_wrote(Rank rank, const std::string& file);

}  // namespace rollcall::traces
