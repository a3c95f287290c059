#pragma once

// The time that a call is expected to take on a real machine, as opposed to the tuner's estimate. NCCL's tuner chooses;
// its choice is timed here with what NCCL leaves out:
//
//   - no algorithm moves more than GPU ports and NICs carry,
//   - a hop through the network costs what such networks were measured to cost,
//   - Blackwell gets the speeds of the newest release, whatever release runs: they describe the
//     same machine better,
//   - the host launches, on one GPU after another where one process has several,
//   - registered (symmetric) memory has kernels of its own.
//
// The differences that remain between measurements and the expectation are in residuals.h.

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

  // Microseconds, before residuals; `hops` is the part of it for network hops that NCCL's tables lack, which is a
  // measured quantity already.
  struct Time {
    double total = 0;
    double hops = 0;
  };
  Time time(const Request& request, const Choice& choice) const;

  double symmetric_time(const Request& request, const SymmetricChoice& choice) const;

  // The bandwidth that GPU ports and NICs carry for such a call.
  Carried carried(Function function, Algorithm algorithm) const;

 private:
  // The bandwidth that such calls were measured to reach of it.
  double most_bandwidth(Function function, Algorithm algorithm) const;

  Communicator given_;
  Tuner tuner_;
  Tuner without_hops_;
};

// How much longer one hop through the network takes than NCCL's tables say, in microseconds.
double extra_hop(Network network);

// The least time of a call in a loop, which its launches take.
double launch_floor(const Launch& launch);

}  // namespace rollcall::cost
