#pragma once

// The numbers of NCCL's src/graph/tuning.cc, releases 2.27.7, 2.28.9, 2.29.7 and 2.30.7. Microseconds and GB/s. Numbers
// without a release are the same in all of them.

#include <array>

#include "sim/cost/tuner.h"

namespace rollcall::cost {

// By protocol: LL, LL128, Simple.
using ByProtocol = std::array<double, protocol_count>;
// By algorithm, in the tuner's order.
using ByAlgorithm = std::array<ByProtocol, algorithm_count>;

// What a collective costs before any hop. "baseLat".
inline constexpr ByAlgorithm base_latency{{{6.8, 14, 8.4},  // Tree
                                           {6.6, 14, 8.4},  // Ring
                                           {0, 0, 0},       // CollNetDirect
                                           {0, 0, 0},       // CollNetChain
                                           {0, 0, 0},       // NVLS
                                           {0, 0, 0},       // NVLSTree
                                           {8, 8, 8}}};     // PAT

// What one hop costs over each kind of link. "hwLat".
inline constexpr ByAlgorithm nvlink_latency{
    {{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4.0}}};
inline constexpr ByAlgorithm pci_latency{
    {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 0}, {0, 0, 0}, {0, 0, 4.0}}};
inline constexpr ByAlgorithm net_latency{{{5.0, 8.5, 14},
                                          {2.7, 4.0, 14},
                                          {0, 0, 31},
                                          {0, 0, 30},
                                          {0, 0, 18},
                                          {},
                                          {0, 0, 14}}};  // NVLSTree: by release

// Generations the caps know. A capability belongs to the last row it reaches.
enum class Generation : std::uint8_t { volta, ampere, hopper, blackwell };
inline constexpr std::size_t generation_count = 4;

// By generation, then by number of nodes: 1, 2, more.
using Caps = std::array<std::array<double, 3>, generation_count>;

inline constexpr Caps ll_bandwidth{{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};

// The constants that differ between releases.
struct ReleaseConstants {
  Caps ring_ll128_per_channel;
  Caps tree_ll128_per_channel;
  Caps tree_per_channel;
  Caps nvls_tree_per_channel;
  double nvls_tree_net_latency;
  bool has_nvls_efficiency;  // else NVLS gets 5/6 of its channels' speed
  bool corrects_nvls_tree;   // the tree's correction also holds for NVLSTree on Blackwell with x86
};

// A row holds from release `since` until the next row. Before 2.28, Blackwell had twice Hopper's numbers.
struct ReleaseRow {
  int since;
  ReleaseConstants constants;
};
constexpr Caps with_blackwell(Caps caps, std::array<double, 3> blackwell) {
  caps[static_cast<std::size_t>(Generation::blackwell)] = blackwell;
  return caps;
}
inline constexpr Caps older_ring_ll128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {}}};
inline constexpr Caps older_tree_ll128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {}}};
inline constexpr Caps older_tree{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {}}};
inline constexpr Caps older_nvls_tree{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {}}};
// 2.27 has no such cap.
inline constexpr Caps no_cap{{{1e9, 1e9, 1e9}, {1e9, 1e9, 1e9}, {1e9, 1e9, 1e9}, {1e9, 1e9, 1e9}}};

inline constexpr std::array<ReleaseRow, 5> release_rows{
    {{0,
      {with_blackwell(older_ring_ll128, {73.4, 73.4, 73.4}),
       with_blackwell(older_tree_ll128, {73.4, 73.4, 58}), with_blackwell(older_tree, {77.4, 82.8, 72}),
       no_cap, 14, false, false}},
     {22800,
      {with_blackwell(older_ring_ll128, {73.4, 34.6, 73.4}),
       with_blackwell(older_tree_ll128, {55.6, 31.67, 20}), with_blackwell(older_tree, {70, 42.8, 24}),
       with_blackwell(older_nvls_tree, {0, 96, 43.8}), 20.9, true, false}},
     {22902,
      {with_blackwell(older_ring_ll128, {34.5, 34.6, 34.5}),
       with_blackwell(older_tree_ll128, {55.6, 31.67, 20}), with_blackwell(older_tree, {70, 42.8, 24}),
       with_blackwell(older_nvls_tree, {0, 96, 43.8}), 20.9, true, true}},
     {22907,
      {with_blackwell(older_ring_ll128, {40, 40, 40}), with_blackwell(older_tree_ll128, {55.6, 31.67, 20}),
       with_blackwell(older_tree, {70, 42.8, 24}), with_blackwell(older_nvls_tree, {0, 96, 43.8}), 20.9, true,
       true}},
     {23003,
      {with_blackwell(older_ring_ll128, {40, 40, 40}), with_blackwell(older_tree_ll128, {55.6, 31.67, 20}),
       with_blackwell(older_tree, {70, 42.8, 24}), with_blackwell(older_nvls_tree, {0, 96, 80}), 20.9, true,
       true}}}};

constexpr const ReleaseConstants& constants_of(int release) {
  const ReleaseRow* row = release_rows.data();
  for (const ReleaseRow& each : release_rows) {
    row = each.since <= release ? &each : row;
  }
  return row->constants;
}

inline constexpr std::array<double, generation_count> nvls_efficiency{0, 0, 0.85, 0.74};

// What a tree's pipeline loses at middle sizes: index floor(log2(bytes / 64)), 64 B to 256 MiB.
// "treeCorrectionFactor".
inline constexpr std::size_t tree_correction_count = 23;  // NVLSTree has one more of 1
inline constexpr std::array<std::array<double, tree_correction_count>, protocol_count> tree_correction{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

// With fewer bytes per thread than this, a channel is not worth its start. "threadThresholds".
inline constexpr std::array<std::int64_t, protocol_count> bytes_per_thread{8, 8, 64};
inline constexpr std::array<int, protocol_count> threads_per_channel{512, 640, 512};
inline constexpr int slow_ring_threads = 256;      // Ring, Simple, where
inline constexpr double slow_ring_bandwidth = 12;  // the ring as a whole has at most this

}  // namespace rollcall::cost
