// Scripts that create stores of their own. The same script on real processes prints the same lines (measured with torch
// 1.13, 2.6 and 2.14): STORES_PORT=31000 tests/scripts/ranks.py 3 tests/scripts/stores.py NAME

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/count.h"
#include "tests/scripts.h"

namespace rollcall::test::record_stores_test {
namespace {

using nlohmann::json;

Outcome recorded(const Shell& shell, const std::string& name,
                 const std::string& options = "-n 3 --simulate") {
  return shell.rollcall("record --patience 20s -o out.json " + options + " " + script("stores") + " " + name);
}

}  // namespace

TEST_CASE("stores that a script creates are the same on all simulated ranks", "[record]") {
  if (!has_torch()) {
    return;
  }
  struct Job {
    std::string name;
    std::vector<std::string> printed;  // by every rank
  };
  const std::vector<Job> jobs = {
      {"begins_with_its_own", {"3.0 127.0.0.1 True True True", "end"}},
      {"rendezvouses", {"b'here'", "end"}},
      {"keeps_them_apart", {"b'first' b'second' 0", " 3\n", "end"}},
      {"asks_again_and_again", {"all have come", "end"}},
      {"waits_for_no_worker", {"b'lr=3'", "end"}},
      {"chooses_a_port", {"True", "end"}},
      {"meets_in_a_file", {"end"}},
  };
  for (const Job& job : jobs) {
    INFO(job.name);
    const Shell shell;
    const Outcome outcome = recorded(shell, job.name);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    for (const std::string& line : job.printed) {
      INFO(line);
      CHECK(count(outcome.err, line) == 3);
    }
  }
}

TEST_CASE("only one server can listen on a port, and a script may catch that", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = recorded(shell, "serves_twice");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK(count(outcome.err, "end") == 3);
  CHECK(count(outcome.err, "Error True") == 1);
}

TEST_CASE("ranks that run alone have stores, too, and are run together if they need a key of another one",
          "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  CHECK(recorded(shell, "begins_with_its_own", "-n 3 --fake").code == 0);
  const Outcome together = recorded(shell, "waits_for_no_worker", "-n 17");
  INFO(together.out << together.err);
  CHECK(together.code == 0);
  CHECK(count(together.err, "b'lr=3'") >= 17);
}

TEST_CASE("a store without a server, or without a worker, gives up as the real one does", "[record]") {
  if (!has_torch()) {
    return;
  }
  const bool is_torch_1 = recorded_torch().starts_with("1.");
  const Shell shell;
  const Outcome alone = recorded(shell, "has_no_server");
  INFO(alone.err);
  CHECK(count(alone.err, is_torch_1 ? "TimeoutError" : "DistNetworkError") == 3);
  CHECK_THAT(alone.err, Contains("no rank called init_process_group"));
  const Outcome lacking = recorded(shell, "lacks_a_worker");
  INFO(lacking.err);
  const std::string error =
      "DistStoreError Timed out after 6 seconds waiting for clients. 1/3 clients joined.";
  CHECK(count(lacking.err, error) == (is_torch_1 ? 0 : 1));
}

TEST_CASE("a wait for a store before the job begins is a deadlock, at the line that waits", "[record]") {
  if (!has_torch()) {
    return;
  }
  const std::vector<std::pair<std::string, std::string>> jobs = {{"waits_before_the_job", "settings"},
                                                                 {"never_begins", "connects"}};
  for (const auto& [name, mistake] : jobs) {
    INFO(name);
    const Shell shell;
    const Outcome outcome = recorded(shell, name, "-n 3 --simulate --format json");
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 1);
    CHECK(json::parse(outcome.out).at("verdict") == "deadlock");
    CHECK_THAT(outcome.out, Contains("TCPStore on port 29511"));
    CHECK_THAT(outcome.out, Contains("init_process_group"));
    CHECK_THAT(outcome.out, Contains(mistake_line(mistake, "stores")));
  }
}

TEST_CASE("a rank that does not set its key is to blame, and not the one that gave up", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = recorded(shell, "one_is_not_ready", "-n 4 --simulate --format json");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 1);
  CHECK(json::parse(outcome.out).at("culprits") == json({1}));
  CHECK_THAT(outcome.out,
             Contains("rank 1 did not set key ") && Contains("ready1, which rank 0 waited for in vain"));
}

TEST_CASE("if no rank begins the job, the wait for its store is still reported", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = recorded(shell, "serves_nobody");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Contains("no rank sets key TCPStore on port 29511: server"));
  CHECK_THAT(outcome.err, Contains("there is no scenario"));
}

}  // namespace rollcall::test::record_stores_test
