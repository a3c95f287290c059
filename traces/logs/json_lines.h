#pragma once

// Logs whose lines are JSON objects: Docker's json-file driver, journalctl -o json, collectors and structured loggers
// write them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall::traces {

struct UnpackedLog {
  std::string text;
  std::vector<std::int64_t> lines;  // for each line of `text`, the number of the line that had it
};

// The messages of such lines, which may have several lines each; a line of another kind stays as it is. An object's
// number "rank" is put before its message as torch would. Null if no line is an object with a message.
std::optional<UnpackedLog> unpack_json_lines(std::string_view bytes);

}  // namespace rollcall::traces
