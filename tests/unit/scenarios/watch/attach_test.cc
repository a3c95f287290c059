// The targets of `attach`, and the answers of servers.

#include "scenarios/watch/attach.h"

#include "real/process/process_state.h"
#include "tests/catch.h"

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

namespace rollcall::watch::attach_test {

TEST_CASE("targets are servers, processes and RAS", "[watch]") {
  CHECK(std::get<DebugServer>(*parse_target("node0:25999")).address == Address{"node0", 25999});
  CHECK(std::get<DebugServer>(*parse_target("http://node0:25999/stacks")).address == Address{"node0", 25999});
  CHECK(std::get<DebugServer>(*parse_target("[::1]:25999")).address == Address{"::1", 25999});
  CHECK(std::get<Process>(*parse_target("4711")).id == 4711);
  CHECK(std::get<NcclRas>(*parse_target("ras:node0")).address == Address{"node0", ras_port});
  CHECK(std::get<NcclRas>(*parse_target("ras:node0:1234")).address == Address{"node0", 1234});
  for (const char* wrong :
       {"", "node0", "node0:", "node0:0", "node0:65536", "node0:x", ":25999", "-3", "0", "ras:", "a b:1"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_target(wrong));
  }
}

TEST_CASE("the page of torch's debug server names the servers of the ranks", "[watch]") {
  const auto servers = rank_servers(
      "<pre>\n    debug_server/rank0: b&#39;http://vm:40123&#39;\ndebug_server/rank11: b'http://other:5'\n"
      "debug_server/rankx: b'http://vm:1'\ndebug_server/rank3: b'ftp://vm:1'\ndefault_pg/0: b'1'\n");
  REQUIRE(servers.size() == 2);
  CHECK(servers[0] == std::make_pair(Rank{0}, Address{"vm", 40123}));
  CHECK(servers[1] == std::make_pair(Rank{11}, Address{"other", 5}));
}

TEST_CASE("the kernel says whether a process runs, is stopped, or how it ended", "[watch]") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  CHECK(real::process_state(child).exists());
  CHECK_FALSE(real::process_state(child).is_stopped());
  ::kill(child, SIGSTOP);
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  CHECK(real::process_state(child).is_stopped());
  ::kill(child, SIGKILL);
  siginfo_t info = {};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  const real::ProcessState ended = real::process_state(child);
  CHECK(ended.has_ended());
  REQUIRE(ended.wait_status);
  CHECK(real::end_phrase(*ended.wait_status) == "killed by SIGKILL");
  ::waitpid(child, &status, 0);
  CHECK_FALSE(real::process_state(child).exists());
  CHECK(real::end_phrase(3 << 8) == "exited with code 3");
}

}  // namespace rollcall::watch::attach_test
