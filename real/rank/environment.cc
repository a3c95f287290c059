#include "real/rank/environment.h"

#include <array>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include <fmt/core.h>

namespace rollcall::real {
namespace {

// The names of one launcher. torchrun's are also what Kubernetes' PyTorchJob sets.
struct Names {
  const char* launcher;
  const char* rank;
  const char* world_size;
  const char* local_rank;
};

constexpr std::array<Names, 3> launchers{{
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
}};

template <typename Number>
std::optional<Number> number_of(const Variables& variables, const char* name) {
  const char* text = variables(name);
  if (text == nullptr) {
    return std::nullopt;
  }
  const std::string_view digits(text);
  Number number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    throw std::invalid_argument(fmt::format("{}: '{}' is not a valid value", name, text));
  }
  return number;
}

}  // namespace

std::optional<LaunchedRank> launched_rank(const Variables& variables) {
  for (const Names& names : launchers) {
    const auto rank = number_of<Rank>(variables, names.rank);
    const auto world_size = number_of<Rank>(variables, names.world_size);
    if (!rank && !world_size) {
      continue;
    }
    if (!rank || !world_size) {
      throw std::invalid_argument(fmt::format("{} is set, but {} is not",
                                              rank ? names.rank : names.world_size,
                                              rank ? names.world_size : names.rank));
    }
    if (*rank < 0 || *rank >= *world_size) {
      throw std::invalid_argument(
          fmt::format("{}={} is not a rank of {}={}", names.rank, *rank, names.world_size, *world_size));
    }
    LaunchedRank launched{.launcher = names.launcher, .rank = *rank, .world_size = *world_size};
    launched.local_rank = number_of<Rank>(variables, names.local_rank).value_or(0);
    if (const char* address = variables("MASTER_ADDR")) {
      launched.master_address = address;
    }
    launched.master_port = number_of<std::uint16_t>(variables, "MASTER_PORT").value_or(launched.master_port);
    const char* agent_store = variables("TORCHELASTIC_USE_AGENT_STORE");
    if (agent_store != nullptr && std::string_view(agent_store) == "True") {
      ++launched.master_port;  // torchrun's agent listens on the other
    }
    return launched;
  }
  return std::nullopt;
}

}  // namespace rollcall::real
