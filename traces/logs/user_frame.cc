#include "traces/logs/user_frame.h"

#include "sim/diagnose/installed_code.h"

namespace rollcall::traces {

bool is_c10d(const check::DumpFrame& frame) {
  return frame.file.ends_with("torch/distributed/distributed_c10d.py") && frame.function != "wrapper";
}

bool is_users(const check::DumpFrame& frame) { return !check::is_installed_code(frame.file); }

}  // namespace rollcall::traces
