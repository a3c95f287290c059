#include "bench/measure.h"

#include <malloc.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "sim/base/expects.h"

namespace rollcall::bench {

namespace {

// User and system time of the whole process: on a busy machine the one clock worth comparing.
std::int64_t cpu_time_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The second number of statm is resident pages.
std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Probe::Probe(Rank ranks, std::int64_t collectives)
    : ranks_(static_cast<double>(ranks)), collectives_(static_cast<double>(collectives)) {
  malloc_trim(0);  // else a later run would grow into what an earlier one freed, and look smaller
  bytes_before_ = resident_bytes();
  cpu_before_ns_ = cpu_time_ns();
}

void Probe::note_start() { cpu_at_start_ns_ = cpu_time_ns(); }

void Probe::note_end() {
  cpu_at_end_ns_ = cpu_time_ns();
  bytes_at_end_ = resident_bytes();
}

Sample Probe::sample() const {
  expects(cpu_at_end_ns_ >= 0, "some rank got to the end of the measured program");
  return {
      .ns_per_op = static_cast<double>(cpu_at_end_ns_ - cpu_at_start_ns_) / (ranks_ * collectives_),
      .ns_to_create = static_cast<double>(cpu_at_start_ns_ - cpu_before_ns_) / ranks_,
      .bytes_per_rank = (static_cast<double>(bytes_at_end_) - static_cast<double>(bytes_before_)) / ranks_,
  };
}

}  // namespace rollcall::bench
