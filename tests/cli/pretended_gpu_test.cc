// GPU scripts without a GPU: cuda is pretended, on every torch with which scripts are recorded.

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/contents.h"
#include "tests/scripts.h"

namespace rollcall::test::pretended_gpu_test {
namespace {
using nlohmann::json;

Outcome record(const Shell& shell, const std::string& name, const std::string& options = "-n 2") {
  return shell.rollcall("record -o out.json " + options + " " + script("gpu") + " " + name);
}

}  // namespace

TEST_CASE("a script for GPUs is recorded without one", "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = record(shell, "trains", "-n 2 --simulate");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Contains(pretends(2)));
  CHECK_THAT(outcome.err, Contains("[rank 1] total 3.0 on cuda:1 nccl"));
  CHECK_THAT(contents(shell.path("out.json")), Contains(R"("backend": "nccl")"));
}

TEST_CASE("tensors are on a pretended GPU if that is the default device, and calls say where they come from",
          "[record][gpu]") {
  if (!has_torch() || recorded_torch() == "1.13") {
    return;  // torch 1.13 has no default device
  }
  const Shell shell;
  const Outcome outcome = record(shell, "makes_tensors_on_the_default_device", "-n 2 --simulate");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Contains("[rank 1] total [3.0, 3.0, 3.0] on cuda:1"));
  CHECK_THAT(contents(shell.path("out.json")),
             Contains(R"({"all_reduce": {"numel": 3, "site": ")") && !Contains("_device"));
}

TEST_CASE("a backward pass may make tensors on a GPU, and be profiled and compressed there",
          "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  for (const auto& [name, printed] :
       {std::pair<std::string, std::string>("makes_tensors_in_backward", "made cuda:1"),
        std::pair<std::string, std::string>("profiles_and_compresses", "profiled True")}) {
    INFO(name);
    const Shell shell;
    const Outcome outcome = record(shell, name, "-n 2 --simulate");
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.err, Contains(printed) && !Contains("Failed to record CUDA event"));
  }
}

TEST_CASE("ranks that share a GPU are told so in their first call, which DDP makes", "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = record(shell, "forgets_its_device", "-n 2 --simulate");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Contains("Duplicate GPU detected") && Contains(mistake_line("forgets", "gpu")));
}

TEST_CASE("tensors on pretended GPUs say so, wherever they come from", "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  for (const std::string name : {"converts", "uses_the_rest", "calculates_on_meta"}) {
    for (const std::string answers : {"--fake", "--simulate"}) {
      INFO(name << ' ' << answers);
      const Shell shell;
      const Outcome outcome = record(shell, name, "-n 2 " + answers);
      INFO(outcome.err);
      CHECK(outcome.code == 0);
    }
  }
  const Shell shell;
  const Outcome normal = record(shell, "normalizes_together", "-n 2 --simulate");
  INFO(normal.err);
  CHECK(normal.code == 0);
  const Outcome split = record(shell, "splits_its_model", "-n 2 --ranks-see 4");
  INFO(split.err);
  CHECK(split.code == 0);
  // DDP broadcasts and reduces the tensors of each GPU separately.
  const std::string scenario = contents(shell.path("out.json"));
  CHECK_THAT(scenario,
             Contains(R"({"broadcast": {"numel": 110,)") && Contains(R"({"broadcast": {"numel": 55,)"));
}

TEST_CASE("a script that falls back to the CPU trains together all the same", "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  CHECK(record(shell, "falls_back").code == 0);
  CHECK_THAT(contents(shell.path("out.json")), Contains(R"({"all_reduce": {"numel": 165,)"));
  const Outcome without = record(shell, "falls_back", "-n 2 --no-pretend");
  CHECK_THAT(without.err, !Contains("pretended"));
  CHECK_THAT(contents(shell.path("out.json")), !Contains("all_reduce"));
}

TEST_CASE("what a GPU would refuse is refused, at the line of Python", "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  struct Mistake {
    std::string name;
    std::string message;
  };
  const std::vector<Mistake> mistakes = {
      {"forgets_to_move",
       "RuntimeError: Expected all tensors to be on the same device, but found at least two "
       "devices, cuda:0 and cpu!"},
      {"reduces_on_the_cpu", "RuntimeError: "},
      {"has_too_few", "RuntimeError: CUDA error: invalid device ordinal"},
      {"reduces_a_column", "Error: Tensors must be contiguous"},
      {"reads_from_the_gpu", "TypeError: can't convert cuda:0 device type tensor to numpy"},
  };
  for (const Mistake& mistake : mistakes) {
    INFO(mistake.name);
    const Shell shell;
    const Outcome outcome = record(shell, mistake.name);
    INFO(outcome.err);
    CHECK(outcome.code != 0);
    CHECK_THAT(outcome.err, Contains(mistake.message));
    CHECK_THAT(outcome.err, Contains(mistake_line(mistake.name, "gpu")));
    CHECK_THAT(outcome.err, !Contains("rollcall_recorder"));  // no frames of the recorder
  }
}

TEST_CASE("the job that the README begins with gets the report that it shows", "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  std::filesystem::create_directory(shell.path("scenarios"));
  std::filesystem::copy_file(ROLLCALL_SOURCE_DIR "/scenarios/hero.py", shell.path("scenarios/hero.py"));
  const Outcome outcome = shell.rollcall("record --world-size 4 -o hero.json scenarios/hero.py");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, Contains(pretends(4)));  // torch may also print warnings
  const std::string said = "rollcall: no GPU here: pretending that there is CUDA, 4 devices\n...\n";
  const std::string shown = said + outcome.out.substr(0, outcome.out.find("   = help: ")) + "...\n";
  CHECK_THAT(contents(ROLLCALL_SOURCE_DIR "/README.md"), Contains("scenarios/hero.py\n" + shown + "```\n"));
}

TEST_CASE("a job that is bound to its devices is recorded with the communicators that it has",
          "[record][gpu]") {
  if (!has_torch() || recorded_torch() == "1.13") {
    return;  // which has no device_id
  }
  for (const std::string answers : {"--fake", "--simulate"}) {
    INFO(answers);
    const Shell shell;
    const Outcome bound = record(shell, "binds_its_device", "-n 2 " + answers);
    INFO(bound.out << bound.err);
    CHECK(bound.code == 0);
    CHECK_THAT(contents(shell.path("out.json")), Contains(R"("communicators": "eager")"));
  }
  const Shell shell;
  const Outcome splits = record(shell, "splits_its_world", "-n 4 --simulate");
  INFO(splits.out << splits.err);
  CHECK(splits.code == 0);
  CHECK(shell.rollcall("run out.json").code == 0);
  const Outcome late = record(shell, "is_told_of_the_device_too_late", "-n 2 --simulate");
  CHECK_THAT(late.err, Contains("No device associated with the default pg, not safe to split"));
}

TEST_CASE("processes that a script starts have its GPUs, however they start, and other programs have not",
          "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = record(shell, "starts_children", "-n 2 --simulate");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
}

TEST_CASE("groups on Gloo beside NCCL, factors of sums and what asks for NCCL do what they do on GPUs",
          "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  const bool tells_factors = recorded_torch() != "1.13";  // before the shell: both use one folder
  const Shell shell;
  for (const std::string name : {"mixes_backends", "scales_first"}) {
    INFO(name);
    if (name == "scales_first" && !tells_factors) {
      CHECK_THAT(record(shell, name, "-n 2 --simulate").err, Contains("does not tell the factor"));
      continue;
    }
    const Outcome outcome = record(shell, name, "-n 4 --simulate");
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK(shell.rollcall("run out.json").code == 0);
  }
  const Outcome sparse = record(shell, "sends_sparse_gradients", "-n 2 --simulate");
  CHECK_THAT(sparse.err, Contains("all_reduce of sparse tensors cannot be recorded"));
}

TEST_CASE("the first call on a group holds up its rank, and in a rank with threads only one of them",
          "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome crossed = record(shell, "crosses_first_calls", "-n 2 --simulate");
  INFO(crossed.out << crossed.err);
  CHECK(crossed.code == 1);
  CHECK_THAT(crossed.out,
             Contains("rank 0 waits in all_reduce #0 on g1 for rank 1, and rank 1 in all_reduce #0 on g2"));
  CHECK_THAT(crossed.out, Contains("ncclCommInitRank"));
  CHECK_THAT(shell.rollcall("run out.json").out, Contains("rank 0 waits in all_reduce #0 on g1 for rank 1"));
  const Outcome threads = record(shell, "calls_first_in_threads", "-n 3 --simulate");
  INFO(threads.out << threads.err);
  CHECK(threads.code == 0);
  CHECK(shell.rollcall("run out.json").code == 0);
}

TEST_CASE("nothing is pretended for a script on CPUs, although torch itself asks for GPUs", "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = record(shell, "needs_no_gpu");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, !Contains("pretending"));
}

TEST_CASE("a job that begins before its script asks for a GPU begins again, on NCCL", "[record][gpu]") {
  if (!has_torch() || recorded_torch() == "1.13") {
    return;  // torch 1.13 has one backend for all devices
  }
  for (const std::string name : {"begins_before_it_asks", "begins_with_a_mesh"}) {
    for (const std::string answers : {"--simulate", "--fake"}) {
      INFO(name << ' ' << answers);
      const Shell shell;
      const Outcome outcome = record(shell, name, "-n 2 " + answers);
      INFO(outcome.err);
      CHECK(outcome.code == 0);
      CHECK_THAT(outcome.err,
                 StartsWith(pretends(2) + "rollcall: the job began before the script asked for a GPU, "
                                          "so its ranks run again on NCCL\n"));
      CHECK_THAT(contents(shell.path("out.json")),
                 Contains(R"("backend": "nccl")") && Contains("all_reduce"));
    }
  }
  for (const std::string name : {"leaves_its_backend_open", "asks_in_a_child_only"}) {
    const Shell shell;
    const Outcome outcome = record(shell, name);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.err, !Contains("run again"));
    if (name == "leaves_its_backend_open") {
      CHECK_THAT(outcome.err, !Contains("rollcall: "));
    }
    CHECK_THAT(contents(shell.path("out.json")), Contains(R"("backend": "gloo")"));
  }
}

TEST_CASE("hosts have as many GPUs as ranks see", "[record][gpu]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = record(shell, "says_where_it_is", "-n 4 --ranks-see 2");
  CHECK_THAT(outcome.err, Contains("[rank 3] {'RANK': '3', 'LOCAL_RANK': '1', 'GROUP_RANK': '1', "
                                   "'LOCAL_WORLD_SIZE': '2'} 2\n"));
  CHECK_THAT(outcome.err, Contains("pretending that there is CUDA, 2 devices"));
}

}  // namespace rollcall::test::pretended_gpu_test
