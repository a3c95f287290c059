#include "traces/logs/user_frame.h"

#include <algorithm>
#include <array>

namespace rollcall::traces {

bool is_c10d(const check::DumpFrame& frame) {
  return frame.file.ends_with("torch/distributed/distributed_c10d.py") && frame.function != "wrapper";
}

bool is_users(const check::DumpFrame& frame) {
  constexpr std::array<std::string_view, 8> installed = {
      "site-packages/", "dist-packages/", "rollcall_recorder/", "/lib/python",
      "<frozen",        "torch/",         "threading.py",       "queue.py"};
  return std::none_of(installed.begin(), installed.end(),
                      [&frame](std::string_view part) { return frame.file.find(part) != std::string::npos; });
}

}  // namespace rollcall::traces
