#pragma once

// Evidence other than recordings that a job leaves: logs, stacks, counters. Each kind has its own reader, and one file
// may be of several kinds: a log can hold the watchdog's lines and a traceback.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "traces/values/value.h"

namespace rollcall::traces {

// The names of the kinds that are understood, for messages.
std::vector<std::string_view> evidence_names();

// `rank`: from the file's or folder's name; -1 if they have none. Empty if no reader recognizes the text.
std::optional<std::vector<check::LogFact>> read_text_evidence(std::string_view bytes, Rank rank,
                                                              const std::string& file);
// The same for a file that has been read as JSON.
std::optional<std::vector<check::LogFact>> read_json_evidence(const Value& value, Rank rank,
                                                              const std::string& file);

// The fact that a rank has a log. Even if the log says nothing, that counts where other ranks report errors.
bool is_named_like_log(std::string_view path);
check::LogFact rank_wrote(Rank rank, const std::string& file);

}  // namespace rollcall::traces
