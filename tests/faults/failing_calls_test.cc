// Lets system calls fail, one at a time, in the program that supervises ranks and in the ranks themselves. The result
// must be one clear line, or the verdict of a run without failures; or, if the failure hit a rank, a verdict that names
// a rank that ended. No process and no folder may be left, and nothing may wait forever.
//
// This is a separate program, so that it is not part of what it disturbs.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/processes.h"
#include "tests/shell.h"

namespace rollcall::test::failing_calls_test {

namespace {

struct Call {
  std::string name;
  int error;
};

const std::vector<Call> all_calls = {
    {"socketpair", EMFILE}, {"pipe2", EMFILE}, {"fork", EAGAIN}, {"mmap", ENOMEM},    {"mmap64", ENOMEM},
    {"open", EMFILE},       {"read", EIO},     {"write", EIO},   {"send", ENOBUFS},   {"recv", ENOMEM},
    {"poll", ENOMEM},       {"dup2", EBUSY},   {"waitpid", EIO}, {"mkdtemp", EACCES}, {"socket", EMFILE},
    {"bind", EADDRINUSE},   {"listen", EIO},   {"accept4", EIO}, {"connect", EACCES},
};

// The calls for connections, which are all that differs when a launcher starts the ranks.
const std::vector<Call> calls_of_connections = {{"socket", EMFILE}, {"bind", EADDRINUSE}, {"listen", EIO},
                                                {"accept4", EIO},   {"send", ENOBUFS},    {"recv", ENOMEM}};

const char* const two_ranks =
    R"({"version": 1, "name": "two", "world_size": 2, "backend": "gloo", "program": [
  {"repeat": 3, "do": [{"all_reduce": {"numel": 4, "value": "rank"}}]},
  {"store_set": {"key": "k{rank}", "value": "v"}}, {"store_get": {"key": "k{1 - rank}"}}, {"barrier": {}}]})";

// Runs `command`, in which @ is the program, with the n-th call failing. False if there was no n-th call.
class Failing {
 public:
  Failing() {
    shell_.write("two.json", two_ranks);
    shell_.write("tmp/x", "");
    shell_.write("out/x", "");
  }

  bool run(const std::string& command, const Call& call, int n, const std::string& who) {
    clear("tmp");
    clear("out");
    std::filesystem::remove(shell_.path("failed"));
    const std::string failing = "timeout -k 1 100 env TMPDIR=$PWD/tmp LD_PRELOAD='" ROLLCALL_FAILING_CALLS
                                "' ROLLCALL_FAILING_CALL=" +
                                call.name + ":" + std::to_string(n) + ":" + std::to_string(call.error) + ":" +
                                who + ":$PWD/failed '" ROLLCALL_CLI "'";
    std::string line = command;
    for (std::size_t at = 0; (at = line.find('@', at)) != std::string::npos; at += failing.size()) {
      line.replace(at, 1, failing);
    }
    outcome = shell_.run(line);
    CHECK(std::filesystem::is_empty(shell_.path("tmp")));
    CHECK_FALSE(stays_running(shell_.path("two.json").string()));
    return std::filesystem::exists(shell_.path("failed"));
  }

  std::string path(const std::string& name) const { return shell_.path(name).string(); }
  std::string written(const std::string& name) const {
    const auto file = shell_.path("out/" + name);
    return std::filesystem::exists(file) ? contents(file) : "";
  }
  std::size_t files_written() const {
    return static_cast<std::size_t>(
        std::ranges::distance(std::filesystem::directory_iterator(shell_.path("out"))));
  }

  Outcome outcome;

 private:
  void clear(const std::string& folder) const {
    std::filesystem::remove_all(shell_.path(folder));
    std::filesystem::create_directory(shell_.path(folder));
  }

  Shell shell_;
};

// Fails each of the first calls, and fewer and fewer of the later ones.
template <typename Check>
void fail_everywhere(Failing& failing, const std::string& command, const std::string& who, const Check& check,
                     const std::vector<Call>& calls = all_calls) {
  const bool every_one = std::getenv("ROLLCALL_EVERY_CALL") != nullptr;
  int failed = 0;
  for (const Call& call : calls) {
    for (int n = 0;; n += every_one ? 1 : 1 + n) {
      CAPTURE(command, call.name, n, who);
      const bool happened = failing.run(command, call, n, who);
      CAPTURE(failing.outcome.code, failing.outcome.out, failing.outcome.err);
      check();
      if (!happened) {
        CHECK(failing.outcome.code == 0);
        break;
      }
      ++failed;
    }
  }
  CHECK(failed > 5);
}

bool is_one_line_of_refusal(const Outcome& outcome) {
  return (outcome.code == 3 || outcome.code == 4) && outcome.out.empty() &&
         std::ranges::count(outcome.err, '\n') == 1 && outcome.err.find("error: ") != std::string::npos &&
         outcome.err.find("internal error") == std::string::npos;
}

bool has_gloo(Failing& failing) {
  failing.run("@ real " + failing.path("two.json") + " --backend gloo -q", {"none", 0}, 0, "first");
  const bool has = failing.outcome.code != 77;
  if (!has) {
    WARN("skipped: no Gloo");
  }
  return has;
}

}  // namespace

TEST_CASE("a supervisor whose system calls fail says so in a line and leaves nothing", "[faults]") {
  Failing failing;
  if (has_gloo(failing)) {
    fail_everywhere(failing, "@ real " + failing.path("two.json") + " --backend gloo -q", "first", [&] {
      const Outcome& outcome = failing.outcome;
      CHECK((is_one_line_of_refusal(outcome) ||
             (outcome.code == 0 && outcome.out.starts_with("ok: two: 2 ranks finished, 12 calls"))));
    });
  }
}

TEST_CASE("a rank whose system calls fail is the one that is named", "[faults]") {
  Failing failing;
  if (has_gloo(failing)) {
    const std::regex ended(R"(error\[(rank_failed|deadlock)\]: rank [01] (died|raised) [^]*)");
    fail_everywhere(failing, "@ real " + failing.path("two.json") + " --backend gloo -q --deadline 3s",
                    "others", [&] {
                      const Outcome& outcome = failing.outcome;
                      CHECK(outcome.err.empty());
                      // Gloo's own thread lost a read: no rank ended, and the report claims nothing.
                      const bool was_stopped = outcome.out.starts_with("error[limit_reached]");
                      CHECK(((outcome.code == 0 && outcome.out.starts_with("ok: two: 2 ranks finished")) ||
                             (outcome.code == 1 && (was_stopped || std::regex_match(outcome.out, ended)))));
                    });
  }
}

TEST_CASE("a simulation whose system calls fail writes a whole report or none", "[faults][fiber]") {
  Failing failing;
  const std::string command = "SOURCE_DATE_EPOCH=1700000000 @ run " + failing.path("two.json") +
                              " -q -o out/report.txt --trace out/trace.json";
  failing.run(command, {"none", 0}, 0, "first");
  REQUIRE(failing.outcome.code == 0);
  const std::string report = failing.written("report.txt");
  const std::string trace = failing.written("trace.json");
  REQUIRE((!report.empty() && !trace.empty()));
  fail_everywhere(failing, command, "first", [&] {
    CHECK((is_one_line_of_refusal(failing.outcome) || failing.outcome.code == 0));
    CHECK((failing.written("report.txt") == report || failing.written("report.txt").empty()));
    CHECK((failing.written("trace.json") == trace || failing.written("trace.json").empty()));
    const bool is_whole = failing.written("report.txt") == report && failing.written("trace.json") == trace;
    CHECK((failing.outcome.code != 0 || is_whole));
    CHECK(failing.files_written() <= 2);
  });
}

TEST_CASE("a diagnosis whose system calls fail says the right thing, or what it could not read", "[faults]") {
  Failing failing;
  const std::string command = "@ diagnose -q '" ROLLCALL_SOURCE_DIR
                              "/tests/data/flight_recorder/tp_dp_crossed_4/pickle' -o out/report.txt; "
                              "code=$?; [ $code = 1 ] || exit $code";
  failing.run(command, {"none", 0}, 0, "first");
  const std::string report = failing.written("report.txt");
  REQUIRE_THAT(report, StartsWith("error[cross_group_deadlock]"));
  fail_everywhere(failing, command, "first", [&] {
    const Outcome& outcome = failing.outcome;
    const bool lacks_a_file = outcome.code == 6 && failing.written("report.txt").starts_with("undecided") &&
                              outcome.err.find("nccl_trace_rank_") != std::string::npos;
    CHECK((is_one_line_of_refusal(outcome) || lacks_a_file ||
           (outcome.code == 0 && failing.written("report.txt") == report)));
  });
}

// The shell ends the other rank, which would wait a minute for this one, or for its answer.
TEST_CASE("rank 0 of a launched run, whose system calls fail, says so in a line", "[faults]") {
  Failing failing;
  if (has_gloo(failing)) {
    const std::string place =
        "MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(20'000 + ::getpid() % 40'000) +
        " ROLLCALL_TOKEN=0123456789abcdef WORLD_SIZE=2 ";
    const std::string command = " real " + failing.path("two.json") + " --backend gloo --launched -q";
    fail_everywhere(
        failing,
        place + "RANK=1 '" ROLLCALL_CLI "'" + command + " >other.txt 2>&1 & other=$!; " + place + "RANK=0 @" +
            command + "; code=$?; { kill $other; wait $other; } 2>/dev/null; exit $code",
        "first",
        [&] {
          const Outcome& outcome = failing.outcome;
          CHECK((is_one_line_of_refusal(outcome) ||
                 (outcome.code == 0 && outcome.out.starts_with("ok: two: 2 ranks finished"))));
        },
        calls_of_connections);
  }
}

}  // namespace rollcall::test::failing_calls_test
