#pragma once

// Finds which part of a machine is slow: a rank that arrives late, a NIC, link, or node that carries less than its
// peers, or a whole table that is far from what comparable machines do.

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
  double factor = 1;     // how many times slower; not used for late parts
  double lateness = 0;   // microseconds; for parts that arrive late
  std::string evidence;  // one sentence
};

// Judges by which ranks arrive late, and by comparing calls with those of peers. For calls without peers, `cluster`
// gives the expected time; without it, those calls say nothing.
std::vector<Illness> ill_parts(const Timings& timings, const cost::Cluster* cluster);

// Tables that are far above what is expected of the cluster.
struct TableVerdict {
  std::string file;
  OpKind op = OpKind::all_reduce;
  double median_ratio = 1;  // measured over expected
  double large_ratio = 0;   // for rows above 16 MiB; 0 if there are none
  std::int64_t worst_bytes = 0;
  double worst_ratio = 1;
  bool is_ill = false;
};
std::vector<TableVerdict> judge_tables(const std::vector<BenchTable>& tables, const cost::Cluster& cluster);

}  // namespace rollcall::measured
