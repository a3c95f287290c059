#pragma once

// What the kernel knows about a process that is not our child: /proc/PID, by process id.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "sim/base/time.h"

namespace rollcall::real {

struct ProcessState {
  char state = 'X';                 // as in ps; X: there is no such process
  std::uint64_t cpu_ticks = 0;      // used so far
  std::uint64_t workers_ticks = 0;  // likewise, by its descendants
  std::uint64_t io_bytes = 0;       // read and written so far by both, including pages of mapped files
  // How long the main thread, and each thread of its descendants, has computed, or would have, given a processor.
  std::uint64_t runnable_ns = 0;
  std::map<pid_t, std::uint64_t> workers_runnable_ns;
  std::optional<int> wait_status;  // of a process that has ended and that its parent has not waited for

  bool exists() const { return state != 'X'; }
  bool has_ended() const { return state == 'X' || state == 'Z'; }
  bool is_stopped() const { return state == 'T' || state == 't'; }
};

ProcessState process_state(pid_t process);

// Whether it read, wrote, or computed noticeably between two samples, `elapsed` apart, or wanted to compute all the
// time, on an overloaded machine.
struct Effort {
  bool computes = false;
  bool workers_compute = false;
  bool moves_bytes = false;

  bool any() const { return computes || workers_compute || moves_bytes; }
};
Effort effort(const ProcessState& before, const ProcessState& now, Duration elapsed);

std::vector<pid_t> children_of(pid_t process);
// The other living children of the parents of these processes, except those that Python's multiprocessing starts for
// itself: they are ranks that have not identified themselves, if there are as many as are missing.
std::vector<pid_t> siblings_of(const std::vector<pid_t>& processes);

// "SIGKILL"; "signal 64" if it has no name.
std::string signal_name(int signal);
// "killed by SIGKILL", "exited with code 3". `status` is waitpid's.
std::string end_phrase(int status);

// The number of processes of our control group that the kernel has killed for lack of memory; 0 if it does not say.
std::uint64_t killed_for_memory();

}  // namespace rollcall::real
