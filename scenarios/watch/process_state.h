#pragma once

// What the kernel knows of a process that is not our child: /proc/PID, by number.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "sim/base/time.h"

namespace rollcall::watch {

struct ProcessState {
  char state = 'X';                 // as ps shows it; X: there is no such process
  std::uint64_t cpu_ticks = 0;      // used so far
  std::uint64_t workers_ticks = 0;  // likewise, by its descendants
  std::uint64_t io_bytes = 0;  // read and written so far by both; pages that files were mapped from as well
  // How long each thread of its descendants has computed, or would have if it had had a processor.
  std::map<pid_t, std::uint64_t> workers_runnable_ns;
  std::optional<int> wait_status;  // of a process that has ended and that its parent has not asked after

  bool exists() const { return state != 'X'; }
  bool has_ended() const { return state == 'X' || state == 'Z'; }
  bool is_stopped() const { return state == 'T' || state == 't'; }
};

ProcessState process_state(pid_t process);

// Whether it read, wrote or computed noticeably between two looks, `elapsed` apart; workers also if they wanted to
// compute all the time, on a machine that has too much to do.
struct Effort {
  bool computes = false;
  bool workers_compute = false;
  bool moves_bytes = false;
};
Effort effort(const ProcessState& before, const ProcessState& now, Duration elapsed);

std::vector<pid_t> children_of(pid_t process);
// The other living children of the parents of these processes, but for those that Python's multiprocessing starts for
// itself: ranks that have not said who they are, if there are as many as are missing.
std::vector<pid_t> siblings_of(const std::vector<pid_t>& processes);

// "killed by SIGKILL", "exited with code 3". `status` is waitpid's.
std::string end_phrase(int status);

// How many processes of our control group the kernel has ended for lack of memory; 0 where it does not say.
std::uint64_t killed_for_memory();

}  // namespace rollcall::watch
