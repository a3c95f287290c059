// Tests the judge alone: the calls of the ranks of a scenario or of a golden program are recorded, and the judge must
// reach the same verdict from the record, without the engine.
//
//   ROLLCALL_VERBOSE=1 build/dev/rollcall_tests '[recorded-judge]'    lists the scenarios that are left out, and why

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/import/hang.h"
#include "scenarios/run/interpreter.h"
#include "scenarios/run/run_state.h"
#include "sim/engine/simulate.h"
#include "sim/engine/start_order.h"
#include "sim/judge/judge.h"
#include "sim/torch/torch_traits.h"
#include "tests/catch.h"
#include "tests/conformance/generated_jobs.h"
#include "tests/conformance/golden_run.h"
#include "tests/conformance/hang_case.h"
#include "tests/conformance/tape_replay.h"
#include "tests/shipped_scenarios.h"

namespace rollcall::conformance::recorded_judge_test {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns what only the engine knows; empty if the ops say everything.
std::string not_in_ops(const Report& report) {
  if (std::holds_alternative<LimitReached>(report.verdict)) {
    return "the limits of the run";
  }
  const Finding* finding = finding_of(report.verdict);
  if (finding != nullptr && finding->kind == FindingKind::samples_repeated) {
    return "the samples of the inputs";
  }
  if (finding != nullptr && finding->kind == FindingKind::drop_before_wait) {
    return "how long the handles were kept";
  }
  return "";
}

std::string answer(const Verdict& verdict) {
  const Finding* finding = finding_of(verdict);
  if (finding == nullptr) {
    return std::string(verdict_word(verdict));
  }
  std::string text = fmt::format("{} {} [{}]", verdict_word(verdict), to_string(finding->kind),
                                 to_string(finding->culprits));
  if (finding->at && finding->at->call.op != "raise") {  // the ops do not say where a rank raised
    const Call& call = finding->at->call;
    text += fmt::format(" in {} #{} on {}: {} wait, {} missing", call.op, call.seq, call.group,
                        to_string(finding->at->waiting), to_string(finding->at->missing));
  }
  return text;
}

// The verdicts on a run, with the engine and from the tape.
struct Answers {
  std::string alone;
  std::string in_engine;
  std::string left_out;  // why they are not compared
};

Answers answers_of(const OpTape& tape, const TapeMachine& machine, const Report& report) {
  TapeReplay replay(tape, machine);
  return {answer(check::judge(replay.evidence())), answer(report.verdict), not_in_ops(report)};
}

Answers answers_of(const scenario::Scenario& scenario) {
  OpTape tape(scenario.options.world_size);
  sim::Options options = scenario.options;
  options.eager_communicators = true;  // a tape does not say which call created them
  options.may_run_again = false;       // nor what a rank would have called next
  options.decorate = [&](Backend& inner) { return tape_around(inner, tape); };
  scenario::RunState state;
  const Report report = sim::run(
      options, [&](Rank rank) { run_on_tape(tape, [&] { scenario::run_rank(scenario, rank, state); }); });
  note_deaths(tape, report);
  TapeMachine machine{options.backend, options.comm_slots, options.check_leaks};
  machine.torch = options.torch;
  machine.new_group_waits_for_all =
      traits_of(options.torch).new_group_waits_for_all || traits_of(options.backend).connects_at_first_use;
  for (Rank rank = 0; rank < options.world_size; ++rank) {
    machine.hosts.push_back(sim::host_of_rank(options, rank));
    if (options.devices.empty()) {
      machine.gpus.push_back(sim::device_of_rank(options, rank));
    }
  }
  return answers_of(tape, machine, report);
}

// Compares, and counts what was compared.
class Comparison {
 public:
  void add(const std::string& name, const Answers& answers) {
    if (!answers.left_out.empty()) {
      left_out_ += fmt::format("  {}: {}\n", name, answers.left_out);
      return;
    }
    ++compared_;
    INFO(name);
    CHECK(answers.alone == answers.in_engine);
  }
  std::size_t compared(const char* what) const {
    std::cout << fmt::format("judge alone: {} {} compared\n", compared_, what)
              << (std::getenv("ROLLCALL_VERBOSE") != nullptr ? left_out_ : "");
    return compared_;
  }

 private:
  std::size_t compared_ = 0;
  std::string left_out_;
};

}  // namespace

TEST_CASE("the judge alone reaches the engine's verdict from the recorded ops of scenarios",
          "[recorded-judge][fiber]") {
  Comparison comparison;
  for (const fs::path& file : test::shipped_scenarios()) {
    const std::string name = file.filename().string();
    if (contents(file).find("use_local_synchronization") != std::string::npos) {
      continue;  // the op does not say which members such a call has
    }
    comparison.add(name, answers_of(scenario::parse_scenario(contents(file), name)));
  }
  for (const std::string& id : hang_ids(made_up_hangs)) {
    for (const auto variant : {scenario::HangVariant::failing, scenario::HangVariant::fixed}) {
      const std::string text = scenario::import_hang(hang_path(id, made_up_hangs), variant);
      comparison.add(id, answers_of(scenario::parse_scenario(text, id + ".json")));
    }
  }
  CHECK(comparison.compared("scenarios") > 200);
}

TEST_CASE("the judge alone reaches the engine's verdict from the recorded ops of generated jobs",
          "[recorded-judge][fiber]") {
  Comparison comparison;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::string text = scenario_of(generated_job(seed));
    comparison.add(text, answers_of(scenario::parse_scenario(text, "generated.json")));
  }
  CHECK(comparison.compared("generated jobs") > 390);
}

TEST_CASE("the judge alone reaches the engine's verdict from the recorded ops of golden programs",
          "[recorded-judge][fiber]") {
  Comparison comparison;
  for (const auto& path : golden::golden_files(golden::golden_folder())) {
    const golden::GoldenCase golden = golden::read_golden_case(path);
    if (const auto program = golden::find_program(golden)) {
      OpTape tape(golden.world_size);
      const Report report = run_golden_on_tape(golden, *program, tape);
      TapeMachine machine{"gloo"};
      machine.torch = golden.torch;
      machine.new_group_waits_for_all = traits_of(golden.torch).new_group_waits_for_all;
      comparison.add(golden.name, answers_of(tape, machine, report));
    }
  }
  CHECK(comparison.compared("golden programs") > 400);
}

}  // namespace rollcall::conformance::recorded_judge_test
