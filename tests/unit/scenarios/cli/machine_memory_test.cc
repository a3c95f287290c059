#include "scenarios/cli/terminal/machine_memory.h"

#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/folder.h"

namespace rollcall::cli::machine_memory_test {

namespace {

// A machine with 8 MB left, as seen in /proc and /sys.
class Machine {
 public:
  Machine() { write("proc/meminfo", "MemTotal:       16000 kB\nMemFree: 1 kB\nMemAvailable:    8000 kB\n"); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(file)).parent_path());
    folder_.write(file, text);
  }
  std::optional<std::int64_t> left() const { return available_memory(folder_.path()); }

 private:
  test::Folder folder_;
};

}  // namespace

TEST_CASE("without a control group all that the machine has left can be taken", "[cli]") {
  const Machine machine;
  CHECK(machine.left() == 8'000 * 1024);
}

TEST_CASE("a control group's limit counts, less what it uses and plus what it could give up", "[cli]") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/job\n");
  machine.write("sys/fs/cgroup/job/memory.max", "5000000\n");
  machine.write("sys/fs/cgroup/job/memory.current", "3000000\n");
  CHECK(machine.left() == 2'000'000);
  machine.write("sys/fs/cgroup/job/memory.stat", "anon 17\nfile 900000\ninactive_file 500000\n");
  CHECK(machine.left() == 2'500'000);
}

TEST_CASE("the tightest of a control group and those above it counts", "[cli]") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/job/step\n");
  machine.write("sys/fs/cgroup/job/step/memory.max", "max\n");
  machine.write("sys/fs/cgroup/job/step/memory.current", "1000000\n");
  machine.write("sys/fs/cgroup/job/memory.max", "4000000\n");
  machine.write("sys/fs/cgroup/job/memory.current", "1000000\n");
  CHECK(machine.left() == 3'000'000);
}

TEST_CASE("control groups of version 1 count, also where only the uppermost folder is to be seen", "[cli]") {
  const Machine machine;
  machine.write("proc/self/cgroup", "9:cpu:/x\n4:memory:/of/the/host\n0::/\n");
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "6000000\n");
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2500000\n");
  CHECK(machine.left() == 3'500'000);
}

TEST_CASE("a group that uses more than its limit has nothing left", "[cli]") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/job\n");
  machine.write("sys/fs/cgroup/job/memory.max", "1000\n");
  machine.write("sys/fs/cgroup/job/memory.current", "2000\n");
  CHECK(machine.left() == 0);
}

TEST_CASE("files that say something else say nothing", "[cli]") {
  const test::Folder nothing;
  CHECK(available_memory(nothing.path()) == std::nullopt);
  const Machine machine;
  machine.write("proc/self/cgroup", "nonsense\n::\n0::/../..\n");
  machine.write("sys/fs/cgroup/memory.max", "much\n");
  CHECK(machine.left() == 8'000 * 1024);
}

TEST_CASE("what this process takes grows by what it touches", "[cli]") {
  const std::int64_t before = memory_in_use();
  CHECK(before > 0);
  const std::vector<char> touched(std::size_t{64} << 20, 'x');
  CHECK(memory_in_use() - before > std::int64_t{60} << 20);
  CHECK(touched.back() == 'x');
}

}  // namespace rollcall::cli::machine_memory_test
