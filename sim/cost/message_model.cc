#include "sim/cost/message_model.h"

#include <algorithm>

#include "sim/cost/nccl_tuning_tables.h"

namespace rollcall::cost {

namespace {

constexpr std::int64_t ll_bytes_per_channel = 16 * 1024;  // at most, or Simple is used
constexpr int channels_per_peer = 2;                      // NCCL's least, and what NICs and PCIe get

// The share of their nominal rate that ports reach when all ranks send at once: h100_sxm_{1x8,10x1,10x4,10x8}_alltoall,
// from 256 MiB.
constexpr double port_efficiency = 0.9;
// One pair of ranks drives a NIC at half its rate: h100_sxm_10x{1,4}_sendrecv.
constexpr double pair_share_of_nic = 0.5;
// Microseconds for each additional peer of a rank: a100_sxm_2x8_sophia_alltoall, up to 32 KiB.
constexpr double per_peer = 3.3;

constexpr auto ring_row = static_cast<std::size_t>(Algorithm::ring);

bool is_nvlink(const Communicator& communicator) { return communicator.links.nvlink != Links::NvLink::none; }

// A rank's share of its node's NICs when all its ranks send at once, at most one NIC.
double nic_share(const Communicator& communicator) {
  const Links& links = communicator.links;
  const double node = links.nics * links.nic_speed;
  return std::min(links.nic_speed, node / std::max(1, communicator.ranks_per_node()));
}

double start_and_hop(const Communicator& communicator, Protocol protocol, bool same_node) {
  const auto column = static_cast<std::size_t>(protocol);
  const ByAlgorithm& hop = !same_node ? net_latency : is_nvlink(communicator) ? nvlink_latency : pci_latency;
  const double nic = same_node ? 0 : communicator.links.nic_latency;
  return base_latency[ring_row][column] + hop[ring_row][column] + nic;
}

double transfer(double bytes, double speed) { return speed > 0 ? bytes / (1000 * speed) : 0; }

// The time of the bytes in ports and NICs at their nominal rates, and the share of those rates that they reach.
struct Moving {
  double ports = 0;
  double nics = 0;
  double port_share = 1;
  double nic_share = 1;
};

MessageTime finish(const Communicator& communicator, std::int64_t bytes_per_peer, int peers, bool same_node,
                   const Moving& moving) {
  const bool is_small = bytes_per_peer <= channels_per_peer * ll_bytes_per_channel;
  const Protocol protocol = is_small ? Protocol::ll : Protocol::simple;
  const double start = start_and_hop(communicator, protocol, same_node) + (peers - 1) * per_peer;
  // LL sends a flag with every word: half of what moves is data.
  const double time = std::max(moving.ports / moving.port_share, moving.nics / moving.nic_share);
  return {start + time * (is_small ? 2 : 1), moving.ports, moving.nics, protocol, channels_per_peer};
}

// A part of the bytes goes to every other rank. `nic_speed`: of the way to other nodes.
MessageTime spread_time(const Communicator& communicator, std::int64_t bytes, double nic_speed,
                        double share) {
  const double part = static_cast<double>(bytes) / communicator.ranks;
  const int local = communicator.ranks_per_node();
  return finish(communicator, bytes / communicator.ranks, communicator.ranks - 1, communicator.nodes == 1,
                {transfer(part * (local - 1), gpu_port_speed(communicator.links)),
                 transfer(part * (communicator.ranks - local), nic_speed), share, share});
}

}  // namespace

MessageTime message_time(const Communicator& communicator, std::int64_t bytes, bool same_node) {
  const auto size = static_cast<double>(bytes);
  const Moving moving = same_node ? Moving{.ports = transfer(size, gpu_port_speed(communicator.links))}
                                  : Moving{.nics = transfer(size, communicator.links.nic_speed),
                                           .nic_share = pair_share_of_nic};
  return finish(communicator, bytes, 1, same_node, moving);
}

MessageTime all_to_all_time(const Communicator& communicator, std::int64_t bytes) {
  return spread_time(communicator, bytes, nic_share(communicator), port_efficiency);
}

MessageTime one_to_all_time(const Communicator& communicator, std::int64_t bytes) {
  return spread_time(communicator, bytes, communicator.links.nic_speed, 1);
}

}  // namespace rollcall::cost
