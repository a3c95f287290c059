#pragma once

// The files of tests/data/nccl_tuner: the results of NCCL 2.28.9's own sources for described machines.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/cost/topology.h"
#include "sim/cost/tuner.h"

namespace rollcall::cost::test {

// Returns the sorted paths of all files of tests/data/nccl_tuner except its README and the published logs.
std::vector<std::string> oracle_files();
nlohmann::json read_json(const std::string& path);

// Returns the communicator that a file describes by its graphs.
Communicator communicator_of_file(const nlohmann::json& file);

Function function_named(const std::string& name);
struct Pair {
  Algorithm algorithm;
  Protocol protocol;
};
Pair pair_named(const std::string& name);  // "Ring/LL128"

}  // namespace rollcall::cost::test
