#include "real/rank/environment.h"

#include <array>
#include <stdexcept>
#include <string_view>

#include <fmt/core.h>

#include "sim/base/parse_number.h"

namespace rollcall::real {
namespace {

// The variable names of one launcher. Kubernetes' PyTorchJob sets the same ones as torchrun.
struct Names {
  const char* launcher;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_size;  // how many ranks are on this host
};

constexpr std::array<Names, 3> launchers{{
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
}};

template <typename Number>
std::optional<Number> number_of(const Variables& variables, const char* name) {
  const char* text = variables(name);
  if (text == nullptr) {
    return std::nullopt;
  }
  const auto number = parse_number<Number>(text);
  if (!number) {
    throw std::invalid_argument(fmt::format("{}: '{}' is not a valid value", name, text));
  }
  return number;
}

constexpr std::size_t token_chars_min = 16;

bool is_loopback(std::string_view address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

// Adds where the ranks meet, and the secret by which they recognize each other.
void add_meeting(const Variables& variables, const Names& names, LaunchedRank& launched) {
  if (const char* address = variables("MASTER_ADDR")) {
    launched.master_address = address;
  }
  if (const char* token = variables("ROLLCALL_TOKEN")) {
    launched.token = token;
    if (launched.token.size() < token_chars_min) {
      throw std::invalid_argument(
          fmt::format("ROLLCALL_TOKEN: a secret has {} characters or more", token_chars_min));
    }
  }
  if (number_of<Rank>(variables, names.local_size) == launched.world_size) {
    launched.master_address = "127.0.0.1";
  }
  if (launched.token.empty() && !is_loopback(launched.master_address)) {
    throw std::invalid_argument(
        "ROLLCALL_TOKEN is not set: ranks of several hosts need a secret that all of them know, such as "
        "$(openssl rand -hex 16)");
  }
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
    add_meeting(variables, names, launched);
    launched.master_port = number_of<std::uint16_t>(variables, "MASTER_PORT").value_or(launched.master_port);
    const char* agent_store = variables("TORCHELASTIC_USE_AGENT_STORE");
    if (agent_store != nullptr && std::string_view(agent_store) == "True") {
      ++launched.master_port;  // torchrun's agent listens on MASTER_PORT itself
    }
    return launched;
  }
  return std::nullopt;
}

}  // namespace rollcall::real
