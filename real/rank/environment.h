#pragma once

// Environment: the variables that a launcher (torchrun, srun, mpirun, a Kubernetes operator) sets for the processes it
// starts.

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "sim/c10d/op.h"

namespace rollcall::real {

struct LaunchedRank {
  std::string launcher;  // "torchrun", "Slurm", "Open MPI": the launcher whose variables were found
  Rank rank = 0;
  Rank world_size = 1;
  Rank local_rank = 0;
  std::string master_address = "127.0.0.1";
  std::uint16_t master_port = 29500;  // torch's default
  std::string token{};                // a secret that only the ranks know; empty: they are on one host
};

// A variable's value, or null. std::getenv outside tests.
using Variables = std::function<const char*(const char* name)>;

// Null if no launcher's variables are set. Throws std::invalid_argument naming the variable if one of them is missing
// or not a number. Ranks that the launcher has started on one host meet at its loopback address, whatever MASTER_ADDR
// says.
std::optional<LaunchedRank> launched_rank(const Variables& variables);

}  // namespace rollcall::real
