#include "real/rank/environment.h"

#include <map>
#include <stdexcept>

#include "tests/catch.h"

namespace rollcall::real::environment_test {
namespace {

Variables variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

}  // namespace

TEST_CASE("without a launcher's variables nobody was launched", "[real]") {
  CHECK_FALSE(launched_rank(variables({{"HOME", "/root"}})).has_value());
}

TEST_CASE("each launcher's names are understood", "[real]") {
  const auto torchrun = launched_rank(variables({{"RANK", "3"},
                                                 {"WORLD_SIZE", "8"},
                                                 {"LOCAL_RANK", "1"},
                                                 {"MASTER_ADDR", "node0"},
                                                 {"MASTER_PORT", "1234"},
                                                 {"ROLLCALL_TOKEN", "0123456789abcdef"}}));
  REQUIRE(torchrun);
  CHECK(torchrun->launcher == "torchrun");
  CHECK(torchrun->rank == 3);
  CHECK(torchrun->world_size == 8);
  CHECK(torchrun->local_rank == 1);
  CHECK(torchrun->master_address == "node0");
  CHECK(torchrun->master_port == 1234);

  const auto slurm =
      launched_rank(variables({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "1"}}));
  REQUIRE(slurm);
  CHECK(slurm->launcher == "Slurm");
  CHECK(slurm->rank == 1);
  CHECK(slurm->master_port == 29500);

  const auto mpi = launched_rank(variables({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}));
  REQUIRE(mpi);
  CHECK(mpi->launcher == "Open MPI");
  CHECK(mpi->world_size == 4);
}

TEST_CASE("ranks of one host meet on its loopback address and need no secret", "[real]") {
  const auto launched = launched_rank(variables({{"RANK", "1"},
                                                 {"WORLD_SIZE", "4"},
                                                 {"LOCAL_WORLD_SIZE", "4"},
                                                 {"MASTER_ADDR", "a-name-of-this-host"}}));
  REQUIRE(launched);
  CHECK(launched->master_address == "127.0.0.1");
  CHECK(launched->token.empty());
}

TEST_CASE("ranks of several hosts need a secret", "[real]") {
  CHECK_THROWS_WITH(
      launched_rank(variables(
          {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}})),
      StartsWith("ROLLCALL_TOKEN is not set"));
  CHECK_THROWS_WITH(
      launched_rank(variables({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"ROLLCALL_TOKEN", "short"}})),
      StartsWith("ROLLCALL_TOKEN: a secret has 16 characters"));
}

TEST_CASE("rank 0 listens beside torchrun's own store", "[real]") {
  const auto launched = launched_rank(variables({{"RANK", "0"},
                                                 {"WORLD_SIZE", "2"},
                                                 {"MASTER_PORT", "29400"},
                                                 {"TORCHELASTIC_USE_AGENT_STORE", "True"}}));
  CHECK(launched->master_port == 29401);
}

TEST_CASE("a launcher's variables that do not fit are refused by name", "[real]") {
  CHECK_THROWS_WITH(launched_rank(variables({{"RANK", "1"}})), Contains("WORLD_SIZE is not"));
  CHECK_THROWS_WITH(launched_rank(variables({{"RANK", "one"}, {"WORLD_SIZE", "2"}})),
                    Contains("RANK: 'one'"));
  CHECK_THROWS_WITH(launched_rank(variables({{"RANK", "2"}, {"WORLD_SIZE", "2"}})),
                    Contains("RANK=2 is not a rank of WORLD_SIZE=2"));
  CHECK_THROWS_AS(launched_rank(variables({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "99999"}})),
                  std::invalid_argument);
}

}  // namespace rollcall::real::environment_test
