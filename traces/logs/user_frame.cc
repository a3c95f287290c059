#include "traces/logs/user_frame.h"

#include "sim/diagnose/installed_code.h"
#include "traces/logs/lines.h"

namespace rollcall::traces {

std::optional<check::DumpFrame> frame_in(std::string_view line, std::string_view before_name) {
  const std::string_view text = without_blanks(line);
  const std::size_t end = text.starts_with("File \"") ? text.find('"', 6) : text.npos;
  const std::size_t name = end == text.npos ? end : text.find(before_name, end);
  if (name == text.npos) {
    return std::nullopt;
  }
  return check::DumpFrame{std::string(text.substr(name + before_name.size())),
                          std::string(text.substr(6, end - 6)), number_after(text, "\", line ").value_or(0)};
}

bool is_c10d(const check::DumpFrame& frame) {
  return frame.file.ends_with("torch/distributed/distributed_c10d.py") && frame.function != "wrapper";
}

bool is_users(const check::DumpFrame& frame) { return !check::is_installed_code(frame.file); }

}  // namespace rollcall::traces
