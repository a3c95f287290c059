#pragma once

// The files of tests/data/nccl_tuner: what NCCL 2.28.9's own sources give for described machines.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/cost/topology.h"
#include "sim/cost/tuner.h"

namespace rollcall::cost::test {

// The paths of all files of tests/data/nccl_tuner but its README and the published logs, sorted.
std::vector<std::string> oracle_files();
nlohmann::json read_json(const std::string& path);

// The communicator that a file describes by its graphs.
Communicator communicator_of_file(const nlohmann::json& file);

Function function_named(const std::string& name);
struct Pair {
  Algorithm algorithm;
  Protocol protocol;
};
Pair pair_named(const std::string& name);  // "Ring/LL128"

}  // namespace rollcall::cost::test
