#pragma once

// How long sends, receives and the collectives made of them take. NCCL has no time model for these; the one here is
// OURS, based on how NCCL moves such data (src/enqueue.cc, p2p scheduling): small messages use LL, the rest goes at the
// rate of the narrowest port, and an all-to-all keeps every port busy.
//
//   time = start + hop + peers * (what each message costs) + bytes / port
//
// The port is the GPU's NVLink or PCIe port inside a node and its share of the NICs between nodes. Three numbers are
// fitted, to the alltoall and sendrecv tables of tests/data/nccl_tables: see the .cc.

#include <cstdint>

#include "sim/cost/topology.h"
#include "sim/cost/tuner.h"

namespace rollcall::cost {

struct MessageTime {
  double time = 0;      // microseconds
  double at_ports = 0;  // how long the bytes take in GPU ports at their nominal rate
  double at_nics = 0;   // the same in NICs
  Protocol protocol = Protocol::simple;
  int channels = 0;
};

// One message of `bytes` to a rank on the same node, or on another.
MessageTime message_time(const Communicator& communicator, std::int64_t bytes, bool same_node);

// Every rank sends `bytes` in all, an equal part to each rank.
MessageTime all_to_all_time(const Communicator& communicator, std::int64_t bytes);

// One rank sends a part to each of the others (scatter), or receives one from each (gather): `bytes` in
// all, its own part included.
MessageTime one_to_all_time(const Communicator& communicator, std::int64_t bytes);

}  // namespace rollcall::cost
