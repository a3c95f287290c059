#pragma once

// What a call is expected to take on a real machine, beside what NCCL's tuner believes. The tuner chooses;
// here its choice is timed with what NCCL leaves out:
//
//   - no algorithm moves more than GPU ports and NICs carry,
//   - a hop through the network costs what such networks were measured to cost,
//   - the speeds of the newest release stand for Blackwell, whatever release runs: they describe the
//     same machine better,
//   - the host launches, on one GPU after the other where one process has several,
//   - registered (symmetric) memory has kernels of its own.
//
// What then still separates measurements from the expectation is in residuals.h.

#include "sim/cost/symmetric_kernels.h"
#include "sim/cost/topology.h"
#include "sim/cost/tuner.h"

namespace rollcall::cost {

// The algorithm bandwidth, GB/s, that GPU ports alone and NICs alone carry.
struct Carried {
  double ports = 0;
  double nics = 0;

  double least() const { return ports < nics ? ports : nics; }
};

class Expectation {
 public:
  explicit Expectation(const Communicator& communicator);

  // Microseconds, before residuals; and what of it are hops that NCCL's tables do not have, which are a measured
  // quantity already.
  struct Time {
    double total = 0;
    double hops = 0;
  };
  Time time(const Request& request, const Choice& choice) const;

  double symmetric_time(const Request& request, const SymmetricChoice& choice) const;

  // What GPU ports and NICs carry for such a call.
  Carried carried(Function function, Algorithm algorithm) const;

 private:
  // What such calls were seen to reach of it.
  double most_bandwidth(Function function, Algorithm algorithm) const;

  Communicator given_;
  Communicator measured_;
  Tuner tuner_;
  Tuner without_hops_;
};

// What one hop through such a network takes longer than NCCL's tables say, in microseconds.
double extra_hop(Network network);

// The least time of a call in a loop, from the launches.
double launch_floor(const Launch& launch);

}  // namespace rollcall::cost
