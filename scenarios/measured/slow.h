#pragma once

// Which part of a machine is ill: a rank that comes late, a NIC, link or node that carries less than its peers, or a
// whole table that is nowhere near what such machines do.

#include <string>
#include <vector>

#include "scenarios/measured/bench_table.h"
#include "scenarios/measured/timings.h"
#include "sim/cost/topology.h"

namespace rollcall::measured {

enum class Part : std::uint8_t { gpu, host, nic, nvlink, link, node, machine };

struct Illness {
  Part part = Part::machine;
  std::string name;      // "rank 12", "NIC of rank 12", "node 3", "link between node 1 and node 2"
  double factor = 1;     // how many times slower; of late parts: not used
  double lateness = 0;   // microseconds; of parts that come late
  std::string evidence;  // one sentence
};

// By who came late, and by comparing calls with those of peers. Where there are no peers, `cluster` says what such
// calls take; without it those calls say nothing.
std::vector<Illness> ill_parts(const Timings& timings, const cost::Cluster* cluster);

// Tables that are far above what is expected of the cluster.
struct TableVerdict {
  std::string file;
  OpKind op = OpKind::all_reduce;
  double median_ratio = 1;  // measured over expected
  double large_ratio = 0;   // of rows above 16 MiB; 0: there are none
  std::int64_t worst_bytes = 0;
  double worst_ratio = 1;
  bool is_ill = false;
};
std::vector<TableVerdict> judge_tables(const std::vector<BenchTable>& tables, const cost::Cluster& cluster);

}  // namespace rollcall::measured
