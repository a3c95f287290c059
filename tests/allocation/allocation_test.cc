// Lets memory run out anywhere: runs whole commands whose n-th allocation fails, or all from the n-th on. Each command
// has to end as it does otherwise, or say that there is no memory. It may not leave an incomplete file or leak memory,
// and the next command has to work.
//
// This is a separate program, because of its operator new.

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scenarios/cli/cli.h"
#include "tests/allocation/failing_new.h"
#include "tests/catch.h"
#include "tests/folder.h"
#include "tests/shell.h"

// The tests write thousands of files, none of which has to survive a crash of the machine.
extern "C" int fsync(int) { return 0; }

namespace rollcall::test::allocation_test {

namespace {

using cli::ExitCode;

constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::max() / 4;

const char* const uneven =
    R"({"version": 1, "name": "uneven", "world_size": 3, "backend": "gloo", "inputs": [1, 2, 2],
  "program": [{"for_each_input": "i", "do": [
    {"all_reduce": {"numel": 4, "value": "rank", "label": "step"}}, {"print": "{rank} {i}"}]}]})";

// What the process that ran the command reports, if it gets that far.
struct Ending {
  bool is_known = false;
  std::int64_t failures = 0;
  std::int64_t kept = 0;  // allocations
};
Ending* const ending = static_cast<Ending*>(
    ::mmap(nullptr, sizeof(Ending), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

struct Came {
  int code = -1;          // -1: it crashed
  bool did_fail = true;   // at least one allocation
  std::int64_t kept = 0;  // allocations
  std::string said;
  std::map<std::string, std::string> files;  // that it wrote, by name
};

// A command that writes into the folder `out`.
class Command {
 public:
  explicit Command(std::vector<std::string> arguments) {
    folder_.write("uneven.json", uneven);
    folder_.write("said.txt", "");
    for (std::string& argument : arguments) {
      for (std::size_t at = 0; (at = argument.find('@', at)) != std::string::npos;) {
        argument.replace(at, 1, folder_.path() + "/");
      }
    }
    arguments_ = std::move(arguments);
    arguments_.insert(arguments_.begin(), "rollcall");
    clear();
    const int terminal = ::dup(STDERR_FILENO);
    carry_out(nowhere, Shortage::once);  // creates everything that is created only once
    ::dup2(terminal, STDERR_FILENO);
    ::close(terminal);
  }

  // Runs the command in a process of its own, which may crash.
  Came run(std::int64_t n, Shortage shortage) const {
    clear();
    *ending = {};
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(carry_out(n, shortage));
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    Came came;
    came.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    came.did_fail = !ending->is_known || ending->failures > 0;
    came.kept = ending->kept;
    came.said = contents(folder_.path("said.txt"));
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path("out"))) {
      came.files[entry.path().filename()] = contents(entry.path());
    }
    return came;
  }

 private:
  void clear() const {
    std::filesystem::remove_all(folder_.path("out"));
    std::filesystem::create_directory(folder_.path("out"));
    std::filesystem::resize_file(folder_.path("said.txt"), 0);
  }

  int carry_out(std::int64_t n, Shortage shortage) const {
    std::vector<const char*> argv;
    for (const std::string& argument : arguments_) {
      argv.push_back(argument.c_str());
    }
    const int said = ::open(folder_.path("said.txt").c_str(), O_WRONLY | O_APPEND);
    ::dup2(said, STDERR_FILENO);
    ::close(said);
    const std::int64_t before = allocations_held();
    const FailingNew failing(n, shortage);
    const ExitCode code = cli::guarded(static_cast<int>(argv.size()), argv.data());
    *ending = {true, FailingNew::failures(), allocations_held() - before};
    return static_cast<int>(code);
  }

  Folder folder_;
  std::vector<std::string> arguments_;
};

void check(const Came& came, const Came& otherwise) {
  if (came.code != static_cast<int>(ExitCode::internal_error)) {
    CHECK(came.code == otherwise.code);
    CHECK(came.files == otherwise.files);
    CHECK(
        came.kept ==
        0);  // if the command fails, leaks do not matter: failing constructors of nlohmann::json leak their parts
    return;
  }
  CHECK(came.said.find("rollcall: error: out of memory; ") != std::string::npos);
  for (const auto& [name, text] : came.files) {  // those that were written by then
    CAPTURE(name, text);
    CHECK(otherwise.files.contains(name));
    CHECK(text == otherwise.files.at(name));
  }
}

// Fails every early allocation, and fewer and fewer of the later ones, until one is after the command's end.
void fail_everywhere(const Command& command, Shortage shortage) {
  const bool every_one = std::getenv("ROLLCALL_EVERY_ALLOCATION") != nullptr;
  const Came otherwise = command.run(nowhere, shortage);
  REQUIRE_FALSE(otherwise.did_fail);
  REQUIRE_FALSE(otherwise.files.empty());
  REQUIRE(otherwise.kept == 0);
  for (std::int64_t n = 0;; n += every_one ? 1 : 1 + n / 10) {
    const Came came = command.run(n, shortage);
    CAPTURE(n, came.said);
    check(came, otherwise);
    if (!came.did_fail) {
      CHECK(n > 100);
      break;
    }
  }
}

const std::string dumps = ROLLCALL_SOURCE_DIR "/tests/data/flight_recorder/tp_dp_crossed_4/";

void fail_everywhere(const std::vector<std::string>& arguments) {
  ::setenv("SOURCE_DATE_EPOCH", "1700000000", 1);  // equal runs give equal reports
  const Command command(arguments);
  for (const Shortage shortage : {Shortage::once, Shortage::for_good}) {
    CAPTURE(arguments, shortage == Shortage::for_good);
    fail_everywhere(command, shortage);
  }
}

}  // namespace

TEST_CASE("a run survives every allocation that fails", "[allocation][fiber]") {
  fail_everywhere({"run", "@uneven.json", "--format", "json", "-o", "@out/report.json"});
}

TEST_CASE("reports and traces survive every allocation that fails", "[allocation][fiber]") {
  fail_everywhere({"run", "@uneven.json", "-v", "-o", "@out/report.txt", "--report", "html=@out/report.html",
                   "--report", "junit=@out/report.xml", "--report", "sarif=@out/report.sarif", "--trace",
                   "@out/trace.json", "--trace", "@out/trace.pftrace"});
}

TEST_CASE("reading dumps survives every allocation that fails", "[allocation]") {
  fail_everywhere(
      {"diagnose", dumps + "pickle", "-o", "@out/diagnosis.txt", "--report", "html=@out/diagnosis.html"});
  fail_everywhere({"diagnose", dumps + "json", "-o", "@out/diagnosis.json", "--format", "json"});
}

TEST_CASE("making a scenario of dumps survives every allocation that fails", "[allocation][fiber]") {
  fail_everywhere({"import", dumps + "pickle", "-o", "@out/imported.json"});
}

TEST_CASE("a search on threads survives every allocation that fails", "[allocation][fiber]") {
  fail_everywhere({"explore", "@uneven.json", "-j", "2", "-o", "@out/report.json", "--format", "json"});
}

}  // namespace rollcall::test::allocation_test
