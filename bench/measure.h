#pragma once

// Measuring a program of ranks from the inside: its own CPU time and memory between the first
// collective and the last, with creation and start-up left out.

#include <cstddef>
#include <cstdint>

#include "sim/c10d/op.h"

namespace rollcall::bench {

// What one run cost.
struct Sample {
  double ns_per_op = 0;       // CPU time per (rank x collective)
  double ns_to_create = 0;    // CPU time per rank, until all have started and met once
  double bytes_per_rank = 0;  // growth of resident memory while all ranks are alive
};

// Every rank calls started() after one collective that brings it to life, and finished() after
// `collectives` more. Of each, the first call counts: in between, each rank took part in each once.
class Probe {
 public:
  Probe(Rank ranks, std::int64_t collectives);

  void started() {
    if (cpu_at_start_ns_ < 0) [[unlikely]] {
      note_start();
    }
  }
  void finished() {
    if (cpu_at_end_ns_ < 0) [[unlikely]] {
      note_end();
    }
  }

  // To be called when the run is over.
  Sample sample() const;

 private:
  void note_start();
  void note_end();

  double ranks_;
  double collectives_;
  std::size_t bytes_before_;
  std::size_t bytes_at_end_ = 0;
  std::int64_t cpu_before_ns_;
  std::int64_t cpu_at_start_ns_ = -1;
  std::int64_t cpu_at_end_ns_ = -1;
};

}  // namespace rollcall::bench
