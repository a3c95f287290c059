#pragma once

// The numbers of NCCL 2.28.9's src/graph/tuning.cc. Microseconds and GB/s.

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
inline constexpr ByAlgorithm net_latency{
    {{5.0, 8.5, 14}, {2.7, 4.0, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}};

// Generations the caps know. A capability belongs to the last row it reaches.
enum class Generation : std::uint8_t { volta, ampere, hopper, blackwell };
inline constexpr std::size_t generation_count = 4;

// By generation, then by number of nodes: 1, 2, more.
using Caps = std::array<std::array<double, 3>, generation_count>;

inline constexpr Caps ll_bandwidth{{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
inline constexpr Caps ring_ll128_per_channel{
    {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}}};
inline constexpr Caps tree_ll128_per_channel{
    {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
inline constexpr Caps tree_per_channel{
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
inline constexpr Caps nvls_tree_per_channel{
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}}};
inline constexpr std::array<double, generation_count> nvls_efficiency{0, 0, 0.85, 0.74};

// What a tree's pipeline loses at middle sizes: index floor(log2(bytes / 64)), 64 B to 256 MiB.
// "treeCorrectionFactor".
inline constexpr std::size_t tree_correction_count = 23;
inline constexpr std::array<std::array<double, tree_correction_count>, protocol_count> tree_correction{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

// Fewer bytes per thread than this, and a channel is not worth its start. "threadThresholds".
inline constexpr std::array<std::int64_t, protocol_count> bytes_per_thread{8, 8, 64};
inline constexpr std::array<int, protocol_count> threads_per_channel{512, 640, 512};
inline constexpr int slow_ring_threads = 256;      // Ring, Simple, where
inline constexpr double slow_ring_bandwidth = 12;  // the ring as a whole has at most this

}  // namespace rollcall::cost
