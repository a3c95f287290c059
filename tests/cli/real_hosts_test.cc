// Two hosts, and a launcher that starts one rank in each.

#include <filesystem>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

#include "real/rank/sockets.h"
#include "tests/catch.h"
#include "tests/conformance/real_runs.h"
#include "tests/processes.h"
#include "tests/shell.h"
#include "tests/two_hosts.h"

namespace rollcall::test::real_hosts_test {
TEST_CASE("two hosts run one scenario together, found by environment variables", "[real]") {
  const TwoHosts hosts;
  if (!has_gloo() || !hosts.made()) {
    WARN("skipped: no Gloo, or no right to make network namespaces");
    return;
  }
  const Shell shell;
  const std::string run = "real '" ROLLCALL_SOURCE_DIR "/scenarios/counter.json' --backend gloo --launched";
  const auto rank = [&hosts](int number) {
    return fmt::format("{} RANK={} WORLD_SIZE=2", hosts.on(number), number);
  };
  const std::string other = fmt::format("{} '" ROLLCALL_CLI "' {}", rank(1), run);
  const Outcome outcome = shell.rollcall(fmt::format("{} & {}; wait", run, other), rank(0));
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("ok: the tutorial's Counter: 2 ranks finished"));
  CHECK_THAT(outcome.out, Contains("ranks 0-1  11 inputs processed across all ranks!"));
}

TEST_CASE("an interrupted real run leaves no process and no file behind", "[real]") {
  if (!has_gloo()) {
    return;
  }
  const Shell shell;
  std::filesystem::create_directories(shell.path("tmp"));
  // A loop that no machine finishes within two seconds, which is more than a busy machine needs to open Gloo.
  shell.write("loop.json", R"({ "version": 1, "world_size": 2, "limits": { "ops": 1000000000000 },
                               "program": [ { "repeat": 1000000000, "do": [ { "all_reduce": {} } ] } ] })");
  for (const std::string signal : {"INT", "TERM", "HUP"}) {
    CAPTURE(signal);
    const Outcome outcome =
        shell.rollcall("real loop.json --backend gloo --deadline 60s",
                       "TMPDIR=" + shell.path("tmp").string() + " timeout -s " + signal + " 2");
    CHECK(outcome.err == "rollcall: interrupted\n");
    CHECK(std::filesystem::is_empty(shell.path("tmp")));
  }
}

TEST_CASE("a launched rank that is told to end leaves no process and no file behind", "[real]") {
  if (!has_gloo()) {
    return;
  }
  const Shell shell;
  std::filesystem::create_directories(shell.path("tmp"));
  shell.write("waits.json", R"({ "version": 1, "world_size": 2, "program": [
    { "if": "rank == 0", "do": [ { "compute": "100s" } ] }, { "barrier": {} } ] })");
  const std::string place =
      "MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(20'000 + ::getpid() % 10'000) +
      " ROLLCALL_TOKEN=0123456789abcdef WORLD_SIZE=2 RANK=";
  const std::string run = "'" ROLLCALL_CLI "' real waits.json --backend gloo --launched --deadline 6s & ";
  // The signal is for rank 1's supervisor only, and comes when it has its folder.
  const Outcome outcome =
      shell.run(place + "0 " + run + place + "1 TMPDIR=$PWD/tmp " + run +
                "rank=$!; timeout 20 sh -c 'until [ \"$(ls tmp)\" ]; do sleep 0.1; done'; "
                "kill -TERM $rank; wait $rank; echo \"rank 1 ended with $?\"; wait");
  CHECK_THAT(outcome.out,
             Contains("rank 1 ended with 2\n") &&
                 Contains("crashed: an unknown cause: the connection to its supervisor was lost"));
  CHECK(std::filesystem::is_empty(shell.path("tmp")));
  CHECK_FALSE(stays_running(shell.path("waits.json").string()));
}

TEST_CASE("a port that is taken is an error in one line, and not one of rollcall", "[real]") {
  const real::Descriptor taken = real::listen_at("127.0.0.1", 0);
  const std::string port = std::to_string(real::own_port(taken));
  const Shell shell;
  const std::string said = "rollcall: error: listening on 127.0.0.1:" + port + ": Address already in use\n";
  const Outcome watched = shell.rollcall("watch --serve " + port + " -- true");
  CHECK(watched.code == 4);
  CHECK(watched.err == said);
  if (has_gloo()) {
    const Outcome launched =
        shell.rollcall("real '" ROLLCALL_SOURCE_DIR "/scenarios/counter.json' --backend gloo --launched",
                       "RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port);
    CHECK(launched.code == 4);
    CHECK(launched.err == said);
  }
}

}  // namespace rollcall::test::real_hosts_test
