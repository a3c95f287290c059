// Two hosts: network namespaces with a wire between them, and a launcher that starts one rank in each.

#include <cstdlib>
#include <string>

#include <fmt/core.h>

#include "tests/catch.h"
#include "tests/conformance/real_runs.h"
#include "tests/shell.h"

namespace rollcall::test {
namespace {

bool succeeds(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

// Needs root and iproute2. `made` says whether there are two hosts.
class TwoHosts {
 public:
  TwoHosts()
      : first_(fmt::format("rollcall-{}-a", ::getpid())),
        second_(fmt::format("rollcall-{}-b", ::getpid())),
        made_(add(first_) && add(second_) &&
              succeeds(fmt::format("ip -n {0} link add wire type veth peer name wire netns {1}", first_,
                                   second_)) &&
              give(first_, "10.77.0.1") && give(second_, "10.77.0.2")) {}
  ~TwoHosts() {
    for (const std::string& host : {first_, second_}) {
      succeeds("ip netns del " + host);
    }
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  bool made() const { return made_; }
  // The words before a command that run it as that rank on its host.
  std::string as_rank(int rank) const {
    return fmt::format("ip netns exec {} env RANK={} WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500",
                       rank == 0 ? first_ : second_, rank);
  }

 private:
  static bool add(const std::string& host) { return succeeds("ip netns add " + host); }
  static bool give(const std::string& host, const std::string& address) {
    return succeeds(
        fmt::format("ip -n {0} addr add {1}/24 dev wire && ip -n {0} link set wire up && "
                    "ip -n {0} link set lo up",
                    host, address));
  }

  std::string first_;
  std::string second_;
  bool made_;
};

}  // namespace

TEST_CASE("two hosts run one scenario together, found by environment variables", "[real]") {
  const TwoHosts hosts;
  if (!has_gloo() || !hosts.made()) {
    WARN("skipped: no Gloo, or no right to make network namespaces");
    return;
  }
  const Shell shell;
  const std::string run = "real '" ROLLCALL_SOURCE_DIR "/scenarios/counter.json' --backend gloo --launched";
  const std::string other = fmt::format("{} '" ROLLCALL_CLI "' {}", hosts.as_rank(1), run);
  const Outcome outcome = shell.rollcall(fmt::format("{} & {}; wait", run, other), hosts.as_rank(0));
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
  // More loop than any machine gets through in a second.
  shell.write("loop.json", R"({ "version": 1, "world_size": 2, "limits": { "ops": 1000000000000 },
                               "program": [ { "repeat": 1000000000, "do": [ { "all_reduce": {} } ] } ] })");
  const Outcome outcome = shell.rollcall("real loop.json --backend gloo --deadline 60s",
                                         "TMPDIR=" + shell.path("tmp").string() + " timeout -s INT 1");
  CHECK(outcome.err == "rollcall: interrupted\n");
  CHECK(std::filesystem::is_empty(shell.path("tmp")));
}

}  // namespace rollcall::test
