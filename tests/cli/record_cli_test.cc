// `rollcall record` as users see it: plain PyTorch scripts, real Python, simulated ranks.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/processes.h"
#include "tests/scripts.h"

namespace rollcall::test::record_cli_test {
namespace {
using nlohmann::json;

struct Mistake {
  std::string name;
  std::string verdict;
  std::vector<int> culprits;
};

// Returns the place that a report's first arrow points at.
std::string place_in(const std::string& text) {
  const std::string arrow = "\n  --> ";
  const std::size_t begin = text.find(arrow);
  return begin == std::string::npos
             ? ""
             : text.substr(begin + arrow.size(), text.find('\n', begin + 1) - begin - arrow.size());
}

}  // namespace

TEST_CASE("mistakes of scripts are found, with the rank and the line of Python", "[record]") {
  if (!has_torch()) {
    return;
  }
  const std::vector<Mistake> mistakes = {
      {"barrier_on_rank_0", "deadlock", {0}},
      {"unseeded_shuffle", "deadlock", {3}},
      {"conditional_all_reduce", "deadlock", {2}},
      {"early_stop", "mismatch", {3}},
      {"in_a_pool", "deadlock", {1}},
      {"uneven", "deadlock", {0}},
  };
  for (const Mistake& mistake : mistakes) {
    for (const std::string answers : {"--fake", "--simulate"}) {
      INFO(mistake.name << ' ' << answers);
      const Shell shell;
      const Outcome recorded = shell.rollcall("record --world-size 4 -o out.json " + answers + " " +
                                              script("mistakes") + " " + mistake.name);
      CHECK(recorded.code == 1);
      CHECK_THAT(place_in(recorded.out), EndsWith(mistake_line(mistake.name)));
      const json report = json::parse(shell.rollcall("run out.json --format json").out);
      CHECK(report.at("verdict") == mistake.verdict);
      CHECK(report.at("culprits") == json(mistake.culprits));
    }
  }
}

TEST_CASE("annotations of a recorded script point at the Python line", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  shell.run("cp " + script("mistakes") + " .");
  const Outcome alone = shell.rollcall("record --world-size 4 --fake -o out.json mistakes.py early_stop");
  CHECK(alone.code == 1);
  CHECK_THAT(alone.err, Contains("with --simulate they run together"));
  const Outcome outcome = shell.rollcall("run out.json --report github --report sarif=out.sarif");
  const std::string line = mistake_line("early_stop").substr(std::string("mistakes.py:").size());
  CHECK_THAT(outcome.out, Contains("file=mistakes.py,line=" + line));
  const json sarif = json::parse(contents(shell.path("out.sarif")));
  const json& place = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
  CHECK(place["artifactLocation"]["uri"] == "mistakes.py");
  CHECK(place["region"]["startLine"] == std::stoi(line));
}

TEST_CASE("in the simulator a standstill comes with the Python stack of every rank", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record --world-size 4 --simulate -o out.json " + script("mistakes") + " uneven");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Contains("rank 0 never called all_reduce"));
  CHECK_THAT(outcome.err, Contains("Python stack of ranks 1-3:"));
  CHECK_THAT(outcome.err, Contains(mistake_line("uneven") + " in uneven"));
  const Outcome deep = shell.rollcall("record -n 3 --simulate " + script("injected") + " bad_batches");
  INFO(deep.err);
  CHECK_THAT(deep.err, Contains("    ... ") && Contains(" frames of torch\n"));
}

TEST_CASE("the ranks of a script run together, so that files that they share are there in time", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record --world-size 8 -o out.json " + script("endings") + " resumes_from_a_snapshot");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("8 ranks finished, 40 calls"));
}

TEST_CASE("more than 16 ranks of a script that reads what it receives run again in the simulator",
          "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome many =
      shell.rollcall("record --world-size 17 " + script("counter") + " 5,6,5,6,5,6,5,6,5,6,5,6,5,6,5,6,5");
  CHECK(many.code == 0);
  CHECK_THAT(many.err, Contains("reads what it received") && Contains("with all ranks in the simulator"));
}

TEST_CASE("a script that reads what it receives gets what it would get", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = shell.rollcall("record --world-size 2 -o out.json " + script("counter"));
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Contains("[rank 0] 10 inputs processed before rank 0 joined!"));
  CHECK_THAT(outcome.err, Contains("[rank 1] 11 inputs processed before rank 1 joined!"));
  CHECK_THAT(outcome.err, Contains("[rank 0] 11 inputs processed across all ranks!"));
  CHECK(shell.rollcall("run out.json").code == 0);

  const Outcome alone = shell.rollcall("record --world-size 2 --fake " + script("counter"));
  CHECK_THAT(alone.err, Contains("as if every rank had sent the same"));
}

TEST_CASE("a Join hook that leaves a call out is found, although all calls of the script have met",
          "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = shell.rollcall("record --world-size 2 --format json -o out.json " +
                                         script("counter") + " 5,6 1 forgetful");
  INFO(outcome.err);
  CHECK(outcome.code == 1);
  const json report = json::parse(outcome.out);
  CHECK(report.at("verdict") == "wrong_result");
  CHECK(report.at("kind") == "join_hook_mismatch");
  CHECK(report.at("headline") ==
        "joined rank 0 and active rank 1 get out of step in collective #11 on world");
}

TEST_CASE("a call in the loop under Join that no hook repeats is named, though it met a call of its size",
          "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = shell.rollcall("record --world-size 3 --format json -o out.json " +
                                         script("mistakes") + " not_shadowed");
  INFO(outcome.err);
  CHECK(outcome.code == 1);
  const json report = json::parse(outcome.out);
  CHECK(report.at("kind") == "join_hook_mismatch");
  CHECK_THAT(report.at("cause").get<std::string>(),
             Contains(mistake_line("not_shadowed") + " inside the Join loop, and no main_hook shadows it"));
  CHECK_FALSE(report.contains("repair"));
}

TEST_CASE("every call returns and refuses what it does on real ranks of the same PyTorch", "[record]") {
  if (!has_torch()) {
    return;
  }
  struct Script {
    std::string command;
    std::string data;
    int calls = 0;
  };
  std::vector<Script> scripts = {{script("calls") + " gloo", recorded_torch(), 61}};
  if (recorded_torch() != "2.11") {  // there is no such data
    scripts.push_back({script("gradients"), "gradients_" + recorded_torch(), 9});
  }
  for (const auto& [command, data, calls] : scripts) {
    const Shell shell;
    const Outcome outcome =
        shell.rollcall("record --world-size 4 --simulate --no-pretend -o out.json " + command);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    std::istringstream lines(contents(ROLLCALL_SOURCE_DIR "/tests/data/calls/" + data + ".txt"));
    int compared = 0;
    for (std::string line; std::getline(lines, line); ++compared) {
      CHECK_THAT(outcome.err, Contains(line + "\n"));
    }
    CHECK(compared == 4 * calls);
  }
}

TEST_CASE("every call returns on pretended GPUs what it does on a real one", "[record][gpu]") {
  if (!has_torch() || recorded_torch() == "1.13") {
    return;  // no data of a torch like that
  }
  // Since 2.14 there are more functions, and other texts. NCCL ran beyond the end of tensors in lists that are too
  // short, and nothing here shrinks groups.
  const std::vector<std::string> different = {
      "all_gather, a short list", "coalesced all_gather_into_tensor, a short one",
      "coalesced nothing",        "shrink_group",
      "all_gather_single",        "gather_single",
      "reduce_scatter_single",    "monitored_barrier"};
  const Shell shell;
  std::istringstream lines(contents(ROLLCALL_SOURCE_DIR "/tests/data/calls/nccl_2.11.txt"));
  std::set<std::string> names;
  std::vector<std::string> expected;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(9, line.find(": ") - 9);  // behind "[rank 0] "
    if (std::ranges::find(different, name) == different.end()) {
      names.insert("'" + name + "'");
      expected.push_back(std::regex_replace(line, std::regex("cuda:0"), "cuda:" + line.substr(6, 1)));
    }
  }
  const Outcome outcome = shell.rollcall(
      fmt::format("record --world-size 4 -o out.json {} nccl {}", script("calls"), fmt::join(names, " ")));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  for (const std::string& line : expected) {
    CHECK_THAT(outcome.err, Contains(line + "\n"));
  }
  CHECK(expected.size() == 4 * 52);
}

TEST_CASE("equal programs of all ranks become one that people can read", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record --world-size 4 -o ring.json " + script("primitives") + " ring");
  CHECK(outcome.code == 0);
  const std::string scenario = contents(shell.path("ring.json"));
  CHECK_THAT(scenario, Contains(R"({"repeat": 10, "do": [)"));
  CHECK_THAT(scenario, Contains(R"("dst": "(rank + 1) % world_size")"));
  CHECK_THAT(scenario, Contains(R"("src": "(rank - 1) % world_size")"));
}

TEST_CASE("a rank that fails is named, and the others' records are used", "[record]") {
  if (!has_torch()) {
    return;
  }
  const std::vector<std::pair<std::string, std::string>> failures = {
      {"raises", "rank 1 raised ValueError: bad sample at"},
      {"exits", "rank 1 exited with code 3 in the middle of the script; last call: all_reduce at"},
      {"dies", "rank 1 was killed by signal 9; last call: all_reduce at"},
  };
  for (const auto& [name, message] : failures) {
    for (const std::string answers : {"--fake", "--simulate"}) {
      INFO(name << ' ' << answers);
      const Shell shell;
      const Outcome outcome = shell.rollcall("record --world-size 4 --format json -o out.json " + answers +
                                             " " + script("mistakes") + " " + name);
      CHECK(outcome.code == 1);
      CHECK_THAT(outcome.err, Contains(message));
      const json report = json::parse(outcome.out);
      CHECK(report.at("verdict") == "deadlock");
      CHECK(report.at("culprits") == json({1}));
      CHECK(report.at("at").at("seq") == 1);
    }
  }
}

TEST_CASE("what a script cannot be recorded with is said per rank", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const auto record = [&](const std::string& arguments) {
    return shell.rollcall("record -n 4 " + arguments);
  };
  const Outcome never = record(script("mistakes") + " never_initializes");
  CHECK(never.code == 4);
  CHECK_THAT(never.err, Contains("ranks 0-3 finished without init_process_group"));
  const Outcome gpu = record("-o out.json --no-pretend " + script("mistakes") + " wants_a_gpu");
  if (!has_gpus()) {  // the script may use one then
    CHECK_THAT(gpu.err,
               Contains("ranks 0-3 raised AssertionError: Torch not compiled with CUDA enabled at") ||
                   Contains("ranks 0-3 raised RuntimeError"));
  }
  const Outcome size = record("-o out.json " + script("join_ddp") + " 2,2");
  CHECK(size.code == 4);
  CHECK_THAT(size.err, Contains("the script spawns 2 ranks, but it is recorded with 4: use --world-size 2"));
  CHECK(shell.rollcall("record -n 4 nowhere.py").code == 4);
  CHECK(shell.rollcall("record -n 4").code == 4);
  CHECK(shell.rollcall("record " + script("counter")).code == 4);
}

TEST_CASE("scripts begin their job in every way that torch has", "[record]") {
  if (!has_torch()) {
    return;
  }
  for (const std::string name :
       {"by_address", "by_file", "again_and_again", "spawns", "spawns_by_the_module", "starts_processes"}) {
    for (const std::string answers : {"--fake", "--simulate"}) {
      INFO(name << ' ' << answers);
      const Shell shell;
      const Outcome outcome =
          shell.rollcall("record -n 4 -o out.json " + answers + " " + script("starts") + " " + name);
      INFO(outcome.out << outcome.err);
      CHECK(outcome.code == 0);
      const std::string scenario = contents(shell.path("out.json"));
      CHECK_THAT(scenario, Contains(R"("repeat": 3, "do": [)") || Contains(R"("as": "g4")"));
    }
  }
}

TEST_CASE(
    "scripts learn their rank from srun, mpirun or torchrun, and are not told of a cluster that they need "
    "not",
    "[record]") {
  if (!has_torch()) {
    return;
  }
  for (const std::string name : {"by_slurm_or_spawned", "by_slurm_or_torchrun", "by_both", "by_mpirun"}) {
    INFO(name);
    const Shell shell;
    const Outcome outcome = shell.rollcall("record -n 4 -o out.json " + script("launched") + " " + name);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Contains("4 ranks finished"));
    CHECK_THAT(contents(shell.path("out.json")), Contains("all_reduce"));
  }
}

TEST_CASE("of ranks that make the same calls only a sample is run, and the report says so", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome alike =
      shell.rollcall("record -n 40 --sample 3 -o out.json " + script("starts") + " wraps_in_a_library");
  INFO(alike.out << alike.err);
  CHECK(alike.code == 0);
  CHECK_THAT(alike.out, Contains("40 ranks finished"));
  CHECK_THAT(alike.err, Contains("ranks 0,19,39 made the same calls; the other 37 were not run"));
  CHECK_THAT(contents(shell.path("out.json")), Contains("ran alone"));
  const Outcome apart = shell.rollcall("record -n 4 --sample 2 --format json -o out.json " +
                                       script("mistakes") + " barrier_on_rank_0");
  INFO(apart.out << apart.err);
  CHECK(json::parse(apart.out).at("culprits") == json({0}));
  CHECK_THAT(apart.err, !Contains("were not run"));
}

TEST_CASE("a script may leave it to another module to wrap its model", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record -n 4 --fake -o out.json " + script("starts") + " wraps_in_a_library");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(contents(shell.path("out.json")), Contains(R"({"all_reduce": {"numel": 3,)"));
}

TEST_CASE("init_process_group returns on no rank before every rank has called it", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record -n 3 --simulate -o out.json " + script("starts") + " nobody_goes_on_alone");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("3 ranks finished"));
}

TEST_CASE("who does not begin the job is named, and what no backend takes", "[record]") {
  if (!has_torch()) {
    return;
  }
  struct Start {
    std::string name;
    std::string verdict;
    std::vector<int> culprits;
    std::string remark;
  };
  const std::vector<Start> starts = {
      {"one_rank_does_not_begin", "deadlock", {1}, "rank 1 finished without init_process_group"},
      {"one_rank_fails_before", "deadlock", {3}, "rank 3 raised FileNotFoundError: no data at"},
      {"one_rank_waits_for_a_file", "deadlock", {2}, "rank 2 made no call for too long; it was stopped at"},
      {"broadcasts_from_nobody", "rank_failed", {0, 1, 2, 3}, "broadcast: invalid root rank: 4 at"},
      {"sends_a_negative_tag", "rank_failed", {0, 1, 2, 3}, "Tag must be nonnegative at"},
  };
  for (const Start& start : starts) {
    for (const std::string answers : {"--fake", "--simulate"}) {
      INFO(start.name << ' ' << answers);
      const Shell shell;
      const Outcome outcome = shell.rollcall("record -n 4 --patience 2s --format json -o out.json " +
                                             answers + " " + script("starts") + " " + start.name);
      INFO(outcome.err);
      CHECK(outcome.code == 1);
      CHECK_THAT(outcome.err, Contains(start.remark));
      const json report = json::parse(outcome.out);
      CHECK(report.at("verdict") == start.verdict);
      CHECK(report.at("culprits") == json(start.culprits));
      CHECK_THAT(outcome.out + outcome.err, Contains(mistake_line(start.name, "starts")));
    }
  }
}

TEST_CASE("how a script ended is its report, whatever its scenario can say", "[record]") {
  if (!has_torch()) {
    return;
  }
  struct Ending {
    std::string name;
    std::string verdict;
    std::string text;
  };
  const std::vector<Ending> endings = {
      {"leaves_early", "deadlock", "rank 1 made the all_reduce in leaves_early"},
      {"catches_a_refusal", "deadlock", "rank 0 never called scatter"},
      {"all_are_refused", "ok", "\"ok\""},
      {"trains_apart", "wrong_result", "rank 1 updated 2 parameters that rank 0 never saw"},
      {"trains_together", "ok", "\"ok\""},
      {"tells_through_the_store", "ok", "\"ok\""},
      {"nobody_sets_the_key", "deadlock", "no rank sets key"},
  };
  for (const Ending& ending : endings) {
    for (const std::string answers : {"", "--simulate"}) {
      INFO(ending.name << ' ' << answers);
      const Shell shell;
      const Outcome outcome = shell.rollcall("record -n 2 --patience 20s --format json -o out.json " +
                                             answers + " " + script("endings") + " " + ending.name);
      INFO(outcome.out << outcome.err);
      CHECK(json::parse(outcome.out).at("verdict") == ending.verdict);
      CHECK(outcome.code == (ending.verdict == "ok" ? 0 : 1));
      CHECK_THAT(outcome.out, Contains(ending.text));
    }
  }
}

TEST_CASE("real ranks give up when nothing can move any more, and what a script does then is recorded",
          "[record]") {
  if (!has_torch()) {
    return;
  }
  struct Ending {
    std::string name;
    std::string verdict;
    std::string printed;
  };
  const std::vector<Ending> endings = {
      {"gives_up_and_goes_on", "deadlock", "Timed out waiting 2000ms for recv operation to complete"},
      {"makes_a_group_without_a_peer", "deadlock", "Wait timeout"},
      {"loses_its_peer", "deadlock", "Connection closed by peer"},
      {"gives_up", "deadlock", "Python stack of ranks 0-1"},
      {"never_learns", "deadlock", "Python stack of ranks 0-1"},
      {"waits_with_limits", "ok", "Rank 1 failed to pass monitoredBarrier in 1000 ms"},
      {"is_sent_too_much", "mismatch", "rank 1 was killed by signal 6"},
      {"sends_to_itself", "ok", "refused"},
  };
  for (const Ending& ending : endings) {
    INFO(ending.name);
    const Shell shell;
    const Outcome outcome =
        shell.rollcall("record -n 2 --simulate --patience 20s --format json -o out.json " +
                       script("endings") + " " + ending.name);
    INFO(outcome.out << outcome.err);
    CHECK(json::parse(outcome.out).at("verdict") == ending.verdict);
    CHECK_THAT(outcome.err, Contains(ending.printed));
    const std::string line = mistake_line(ending.name, "endings");
    CHECK_THAT(outcome.out, Contains(line.ends_with(":0") ? "endings.py" : line));
  }
}

TEST_CASE("a script that goes on after a timeout has it in its scenario", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  shell.rollcall("record -n 2 --simulate -o out.json " + script("endings") + " gives_up_and_goes_on");
  CHECK_THAT(contents(shell.path("out.json")), Contains(R"("timeout": "2000ms")"));
  const json report = json::parse(shell.rollcall("run out.json --format json").out);
  CHECK(report.at("ranks").at(0).at("state") == "finished");
  shell.rollcall("record -n 2 --simulate -o out.json " + script("endings") + " gives_up");
  CHECK_THAT(contents(shell.path("out.json")), !Contains("timeout"));
}

TEST_CASE("tensors that a call of the script still has are watched", "[record]") {
  if (!has_torch()) {
    return;
  }
  struct Race {
    std::string name;
    std::string kind;
    std::vector<int> culprits;
  };
  const std::vector<Race> races = {
      {"sends_and_writes", "write_before_wait", {0}},
      {"adds_too_early", "write_before_wait", {0, 1}},
      {"reads_too_early", "read_before_wait", {0, 1}},
      {"receives_over_what_is_sent", "write_before_wait", {0, 1}},
      {"reduces_twice", "write_before_wait", {0, 1}},
      {"reduces_twice nccl", "ok", {}},
      {"sends_it_twice", "ok", {}},
      {"receives_into_a_view", "ok", {}},
      {"waits_first", "ok", {}},
      {"trains", "ok", {}},
      {"lets_go", "drop_before_wait", {0}},
      {"lets_go nccl", "ok", {}},
      {"keeps_the_last", "drop_before_wait", {1}},
      {"keeps_all", "ok", {}},
  };
  for (const Race& race : races) {
    for (const std::string answers : {"--fake", "--simulate"}) {
      INFO(race.name << ' ' << answers);
      const Shell shell;
      const Outcome outcome =
          shell.rollcall("record -n 2 -o out.json " + answers + " " + script("races") + " " + race.name);
      INFO(outcome.out << outcome.err << contents(shell.path("out.json")));
      const json report = json::parse(shell.rollcall("run out.json --format json").out);
      CHECK(report.at("verdict") == (race.kind == "ok" ? "ok" : "race"));
      CHECK(report.at("kind") == race.kind);
      CHECK(report.at("culprits") == json(race.culprits));
      CHECK(outcome.code == (race.kind == "ok" ? 0 : 1));
      if (race.kind != "ok") {
        CHECK_THAT(place_in(outcome.out), EndsWith(mistake_line(race.name, "races")));
      }
    }
  }
}

TEST_CASE("a message whose receiver waits for it already is not lost with its handle", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record -n 2 --simulate -o out.json " + script("races") + " comes_first");
  INFO(outcome.out << outcome.err << contents(shell.path("out.json")));
  CHECK(outcome.code == 0);
  CHECK(shell.rollcall("run out.json").code == 0);
}

TEST_CASE("what a call brings arrives, although nobody waits for it", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record -n 2 --simulate -o out.json " + script("races") + " nobody_waits");
  CHECK_THAT(outcome.err, Contains("brought 2.0"));
}

TEST_CASE("a key that nobody sets is in no scenario, which says so", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record -n 2 --simulate -o out.json " + script("endings") + " nobody_sets_the_key");
  CHECK_THAT(contents(shell.path("out.json")),
             Contains("// This scenario does not do what the script did: rank 0 waited"));
  CHECK_THAT(outcome.err, Contains("the report is that of the recorded run"));
  CHECK_THAT(place_in(outcome.out), EndsWith(mistake_line("nobody_sets_the_key", "endings")));
}

TEST_CASE("simulated ranks compare their calls under TORCH_DISTRIBUTED_DEBUG=DETAIL", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  ::setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL", 1);
  const Outcome outcome =
      shell.rollcall("record -n 2 --simulate -o out.json " + script("endings") + " sizes_differ");
  ::unsetenv("TORCH_DISTRIBUTED_DEBUG");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, Contains("Detected mismatch between collectives on ranks"));
  CHECK_THAT(contents(shell.path("out.json")), Contains(R"("debug": "DETAIL")"));
}

TEST_CASE("no process of a script outlives its recording", "[record]") {
  if (!has_torch()) {
    return;
  }
  for (const std::string answers : {"--fake", "--simulate"}) {
    const Shell shell;
    CHECK(
        shell.rollcall("record -n 2 -o out.json " + answers + " " + script("mistakes") + " leaves_a_process")
            .code == 0);
    CHECK_FALSE(stays_running("98765"));
    const Outcome endless = shell.rollcall("record -n 2 --patience 3s -o out.json " + answers + " " +
                                           script("mistakes") + " computes_for_ever");
    CHECK(endless.code == 1);
    CHECK_THAT(endless.err, Contains("Python stack of rank 1:"));
    CHECK_THAT(endless.err, Contains(mistake_line("computes_for_ever") + " in computes_for_ever") ||
                                Contains("mistakes.py:"));
    CHECK_FALSE(stays_running("computes_for_ever"));
  }
}

TEST_CASE("a rank that polls a file that nobody writes is stopped, too", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  shell.write("polls.py",
              "import os, time, torch, torch.distributed as dist\n"
              "dist.init_process_group('gloo')\n"
              "dist.all_reduce(torch.ones(4))\n"
              "while dist.get_rank() == 1 and not os.path.exists('nobody-writes-this'):\n"
              "    time.sleep(0.1)\n"
              "dist.barrier()\n");
  const Outcome polls = shell.rollcall("record -n 3 --patience 2s -o out.json polls.py");
  CHECK(polls.code == 1);
  CHECK_THAT(polls.err, Contains("Python stack of rank 1:"));
}

TEST_CASE("a signal ends a recording with what the ranks had called, and nothing else stays", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  shell.write("waits.py",
              "import os, time, torch, torch.distributed as dist\n"
              "dist.init_process_group('gloo')\n"
              "dist.all_reduce(torch.ones(4))\n"
              "open(f'ready.{os.environ[\"RANK\"]}', 'w').close()\n"
              "time.sleep(98764)\n");
  for (const std::string answers : {"--fake", "--simulate"}) {
    for (const std::string signal : {"INT", "TERM", "HUP"}) {
      CAPTURE(answers, signal);
      std::filesystem::create_directories(shell.path("tmp"));
      const Outcome outcome = shell.run(
          "rm -f ready.* out.json; TMPDIR=$PWD/tmp '" ROLLCALL_CLI "' record -n 2 -o out.json " + answers +
          " waits.py & until [ -e ready.0 ] && [ -e ready.1 ] || ! kill -0 $! 2>/dev/null; do sleep 0.05; "
          "done; kill -" +
          signal + " $!; wait $!");
      CHECK(outcome.code == 2);
      CHECK_THAT(outcome.err,
                 Contains("waits.py:5 in <module>") &&
                     EndsWith("rollcall: interrupted; what the ranks had called by then is written\n"));
      CHECK_THAT(contents(shell.path("out.json")),
                 Contains("all_reduce") && Contains("// The recording was interrupted"));
      const json report = json::parse(shell.rollcall("run out.json --format json").out);
      CHECK(report.at("verdict") == "limit_reached");
      CHECK(report.at("kind") == "interrupted");
      CHECK(std::filesystem::is_empty(shell.path("tmp")));
      CHECK_FALSE(stays_running("waits.py"));
    }
  }
}

TEST_CASE("a real job whose rank is killed leaves records, and that rank is named first", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const std::string job =
      "record --live --records kept -o out.json -- " + script("ranks") + " 4 " + script("live");
  const Outcome whole = shell.rollcall(job);
  CHECK(whole.code == 0);
  CHECK_THAT(contents(shell.path("out.json")), Contains(R"("repeat": 5, "do": [)"));

  const Outcome killed = shell.rollcall(job + " 2");
  CHECK(killed.code == 1);
  CHECK_THAT(killed.out, Contains("error[deadlock]: rank 2 died before all_reduce"));
  CHECK_THAT(killed.out, Contains("ranks 0-1,3  waiting in all_reduce"));
  CHECK_THAT(killed.err, Contains("rank 2 was killed; last call: all_reduce at"));
  const std::string scenario = contents(shell.path("out.json"));
  CHECK(shell.rollcall("record --records kept -o again.json").code == 1);
  CHECK(contents(shell.path("again.json")) == scenario);
}

TEST_CASE("a real job whose rank raises records the exception and its line", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = shell.rollcall("record --live -o out.json -- " + script("ranks") + " 3 " +
                                         script("mistakes") + " raises");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Contains("error[deadlock]: rank 1 raised before all_reduce"));
  CHECK_THAT(outcome.out, Contains("rank 1     raised ValueError: bad sample"));
  CHECK_THAT(outcome.err, Contains("rank 1 raised ValueError: bad sample at "));
  CHECK_THAT(outcome.err, Contains(mistake_line("raises")));
}

TEST_CASE("threads of a rank that call at the same time do not wait for each other", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  for (const std::string what : {"healthy", "queue"}) {
    INFO(what);
    const Outcome outcome = shell.rollcall("record -n 3 -o out.json " + script("threads") + " " + what);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.err, !Contains("warning"));
    CHECK(shell.rollcall("run out.json").code == 0);
  }
  const Outcome alone = shell.rollcall("record -n 3 --fake " + script("threads") + " healthy");
  CHECK_THAT(alone.err, Contains("threads of a rank call at the same time"));
  const Outcome missing = shell.rollcall("record -n 3 -o out.json " + script("threads") + " stops_early");
  CHECK(missing.code == 1);
  CHECK_THAT(missing.out, Contains("error[deadlock]: rank 1 never called all_reduce #2 on g1"));
  CHECK_THAT(missing.out, Contains("threads.py:21"));
  CHECK_THAT(missing.err, !Contains("rollcall_recorder"));
}

TEST_CASE("threads that call on one group at the same time are warned of, though all went well", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = shell.rollcall("record -n 3 --simulate " + script("threads") + " at_once");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err,
             Contains("warning: two threads of a rank make calls on one group at the same time"));
}

TEST_CASE("where threads share a group, no rank is blamed for their order", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record -n 3 --format json " + script("threads") + " shares_a_group");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 1);
  const auto report = nlohmann::json::parse(outcome.out);
  CHECK(report["culprits"] == nlohmann::json({0, 1, 2}));
  CHECK(report["confidence"] == "low");
  CHECK_THAT(report["advice"].get<std::string>(), Contains("give each thread a group of its own"));
}

TEST_CASE("a call that never ends waits in the scenario, too, whatever other threads the rank has",
          "[record]") {
  if (!has_torch()) {
    return;
  }
  for (const std::string aside : {"feeds_a_queue", "waits_aside"}) {
    INFO(aside);
    const Shell shell;
    const Outcome outcome =
        shell.rollcall("record -n 2 --simulate --format json -o out.json " + script("threads") + " " + aside);
    INFO(outcome.out << outcome.err);
    CHECK_THAT(outcome.err, !Contains("does not do what the script did"));
    const json report = json::parse(outcome.out);
    CHECK(report.at("verdict") == "deadlock");
    CHECK(report.at("culprits") == json({1}));
    const json again = json::parse(shell.rollcall("run out.json --format json").out);
    CHECK(again.at("headline") == report.at("headline"));
    CHECK(again.at("culprits") == json({1}));
    CHECK_THAT(contents(shell.path("out.json")), !Contains("async_op"));
  }
}

TEST_CASE("a command that starts no rank has nothing to record", "[record]") {
  const Shell shell;
  const Outcome failed = shell.rollcall("record --live -o out.json -- false");
  CHECK(failed.code == 4);
  CHECK(failed.err ==
        "rollcall: false exited with code 1\n"
        "rollcall: error: no rank called init_process_group, so there is nothing to judge\n");
  CHECK(shell.run("mkdir empty").code == 0);
  CHECK(shell.rollcall("record --records empty -o out.json").code == 4);
  const Outcome missing = shell.rollcall("record --records missing -o out.json");
  CHECK(missing.code == 4);
  CHECK(missing.err == "rollcall: error: --records missing: is not a folder\n");
  CHECK_FALSE(std::filesystem::exists(shell.path("out.json")));
}

TEST_CASE("options of rollcall that stand after the script are said to belong before it", "[record]") {
  const Outcome late = Shell().rollcall("record " + script("counter") + " -n 2");
  CHECK(late.code == 4);
  CHECK_THAT(late.err, Contains("record needs --world-size before the script"));
}

TEST_CASE("without torch, recording is not possible here", "[record]") {
  const Shell shell;
  CHECK(shell.rollcall("record -n 2 --python /bin/false " + script("counter")).code == 77);
  const Outcome missing = shell.rollcall("record -n 2 --python /no/such/python " + script("counter"));
  CHECK(missing.code == 77);
  CHECK_THAT(missing.err, Contains("no Python with torch.distributed"));
}

}  // namespace rollcall::test::record_cli_test
