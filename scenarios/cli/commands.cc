#include "scenarios/cli/commands.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <fmt/format.h>
#include <CLI/App.hpp>

#include "sim/c10d/backend_traits.h"

namespace rollcall::cli {

namespace {

// CLI11's own conversion takes "-1" for the largest seed there is.
std::uint64_t seed_of(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw CLI::ConversionError(fmt::format("--seed: '{}' is no whole number from 0 to 2^64-1", text));
  }
  return seed;
}

// Those of --backend.
std::vector<std::string> names_of_backends() {
  std::vector<std::string> names;
  for (const BackendTraits& backend : known_backends()) {
    names.emplace_back(backend.name);
  }
  std::ranges::sort(names);
  names.emplace_back("auto");
  return names;
}

// A check of a whole number whose message is one for people: CLI11's own prints both ends of every range.
CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const auto check = [least, most](const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool fits =
        error == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
    return fits ? "" : fmt::format("'{}' is no whole number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

std::string check_not_negative(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool fits = error == std::errc() && end == text.data() + text.size() && value >= 0;
  return fits ? "" : fmt::format("'{}' is no number from 0 upwards", text);
}

void declare_trace(CLI::App& app, TraceArguments& trace) {
  app.add_option(
         "--trace", trace.files,
         "Write the timeline for ui.perfetto.dev: a .json Chrome trace, .json.gz, or .pftrace; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--trace-dir", trace.directory,
                 "Write one file per rank there, as torch.profiler does, for Holistic Trace Analysis")
      ->type_name("DIR");
  app.add_option("--trace-ranks", trace.ranks, "Only these ranks in traces and the chart, such as 0-7,37")
      ->type_name("RANKS");
  app.add_option("--trace-window", trace.window, "Only what happens in this time, such as 10ms:20ms")
      ->type_name("A:B");
  app.add_option("--trace-time", trace.time, "ns, or us: whole microseconds, for readers that round")
      ->check(CLI::IsMember({"ns", "us"}));
  CLI::Option* chart = app.add_flag("--timeline", trace.chart, "Draw the timeline in the terminal");
  app.add_flag("--ascii", trace.ascii, "Draw it in ASCII")->needs(chart);
}

constexpr std::string_view run_reports = "html=FILE, json=FILE, junit=FILE, sarif=FILE, github";

void declare_reports(CLI::App& app, CommandLine& line, std::string_view kinds = "html=FILE, json=FILE") {
  app.add_option("--report", line.reports, fmt::format("Write a report, too: {}; repeatable", kinds))
      ->type_name("KIND=FILE")
      ->allow_extra_args(false);
}

void declare_seed(CLI::App& app, CommandLine& line) {
  const auto set_seed = [&line](const std::string& text) { line.seed = seed_of(text); };
  app.add_option_function<std::string>("--seed", set_seed, "Seed of all chance, instead of the scenario's")
      ->type_name("N");
}

void declare_run(CLI::App& app, CommandLine& line) {
  app.add_option("FILE", line.file, "The scenario")->required();
  declare_seed(app, line);
  app.add_option("--schedule", line.schedule, "Decide what timing decides as a report's replay line says")
      ->type_name("TEXT");
  declare_trace(app, line.trace);
  declare_reports(app, line, run_reports);
}

void declare_explore(CLI::App& app, CommandLine& line) {
  ExploreArguments& explore = line.explore;
  app.add_option("FILE", line.paths, "The scenario; with --merge, JSON results of all shards")->required();
  app.add_option("--schedules", explore.schedules, "How many at most; 10000 by default")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->type_name("N");
  app.add_option("--scheduler", explore.scheduler,
                 "dfs: all that differ, one after the other; random; pct: by priorities; auto, the default: "
                 "dfs, and random ones where those were too many")
      ->check(CLI::IsMember({"auto", "dfs", "random", "pct"}));
  app.add_option("--max-preemptions", explore.preemptions_max,
                 "Only schedules that leave the usual one in at most K places")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1'000'000}))
      ->type_name("K");
  app.add_flag("--no-reduction", explore.full, "Count orders that cannot matter as schedules of their own");
  app.add_option("-j,--jobs", explore.jobs, "How many at a time; 1 by default")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_option("--shard", explore.shard, "Only the I-th of N parts, for several machines")
      ->type_name("I/N");
  app.add_option(
         "--checkpoint", explore.checkpoint,
         "Search in parts and keep the result of each there; the same command goes on where it was ended")
      ->type_name("FILE");
  app.add_flag("--merge", explore.merge, "Join the results of shards, which --format json has printed");
  CLI::Option* what_if =
      app.add_flag("--what-if", explore.what_if,
                   "Disturb the scenario instead: inputs more or less, a step left out, an early "
                   "exit, a slow rank, each on every rank");
  app.add_flag("--crash-each", explore.crash_each, "With --what-if: a rank dies, at every call of every rank")
      ->needs(what_if);
  declare_seed(app, line);
  declare_reports(app, line);
}

void declare_minimize(CLI::App& app, CommandLine& line) {
  app.add_option("FILE", line.file, "A scenario that fails")->required();
  declare_seed(app, line);
}

void declare_view(CLI::App& app, CommandLine& line) {
  app.add_option("PATH", line.paths,
                 "A JSON report; a scenario, which is run; dumps or traces of a job, or their folder. Two "
                 "scenarios or reports are compared")
      ->required();
  app.add_flag("--open", line.open, "Open the page in the browser");
}

void declare_test(CLI::App& app, CommandLine& line) {
  TestArguments& test = line.test;
  app.add_option("PATH", line.paths,
                 "Files, folders, or FILE::case such as 'a.json::[world_size=4]'; ./scenarios by default");
  app.add_option("-k", test.keywords,
                 "Only those whose path, name or tags contain this: \"ddp and not slow\"")
      ->type_name("EXPR");
  app.add_option("-m", test.tags, "Only those with these tags; and, or, not as with -k")->type_name("TAGS");
  CLI::Option* first = app.add_flag("-x,--exitfirst", test.stop_at_first, "Stop at the first failure");
  app.add_option("--maxfail", test.failures_max, "Stop after N failures")->type_name("N")->excludes(first);
  app.add_flag("--lf,--last-failed", test.last_failed, "Only those that failed last time, if any did");
  app.add_flag("--list,--collect-only", test.list, "List what would run, and run nothing");
  app.add_option("-j,--jobs", test.jobs, "How many at a time; as many as there are cores by default")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  const auto set_seed = [&line](const std::string& text) { line.seed = seed_of(text); };
  app.add_option_function<std::string>("--seed", set_seed, "Seed of all chance, instead of each scenario's")
      ->type_name("N");
  app.add_option("--timeout", test.timeout, "How long one scenario may take; 60s by default")
      ->type_name("TIME");
  app.add_option("--memory", test.memory, "How much memory one scenario may take; 8GiB by default")
      ->type_name("SIZE");
  app.add_option("--golden", test.golden, "Compare the calls of every rank with the files in this folder")
      ->type_name("DIR");
  app.add_flag("--update-golden", test.update_golden, "Write those files, and the ones scenarios name, anew");
  declare_reports(app, line, run_reports);
}

void declare_list(CLI::App& app, CommandLine& line) {
  app.add_option("PATH", line.paths, "Scenario files, or directories of them; ./scenarios by default");
}

void declare_predict(CLI::App& app, CommandLine& line) {
  PredictArguments& predict = line.predict;
  app.add_option("OP", predict.subject, "A collective such as all_reduce, or a scenario file")->required();
  app.add_option("--cluster", predict.cluster,
                 "A preset such as h100-8, a100-2x8, or a file that describes one")
      ->type_name("NAME");
  app.add_option("--bytes", predict.bytes, "Sizes, doubling from A to B; 8B:1GiB by default")
      ->type_name("A:B");
  app.add_option("--dtype", predict.dtype, "The elements' type; float32 by default")->type_name("TYPE");
  app.add_option("--reduce-op", predict.reduce_op, "How elements are combined; SUM by default")
      ->type_name("OP");
  app.add_option("--algorithm", predict.algorithm, "Only this algorithm, as NCCL_ALGO does")
      ->type_name("NAME");
  app.add_option("--protocol", predict.protocol, "Only this protocol, as NCCL_PROTO does")->type_name("NAME");
  app.add_option("--svg", predict.svg, "Write a plot of the bus bandwidth")->type_name("FILE");
  app.add_flag("--explain", predict.explain, "Every algorithm and protocol with its time, or why it is out");
  app.add_flag("--measure", predict.measure, "Measure beside it, on this machine's GPUs, a thread for each");
  app.add_flag("--residuals", predict.residuals, "Of a scenario: with what measurements add to NCCL's model");
}

void declare_diagnose(CLI::App& app, CommandLine& line) {
  app.add_option("PATH", line.paths, "Dumps, traces and logs of a job, or directories of them")->required();
  declare_trace(app, line.trace);
  declare_reports(app, line);
}

void declare_real_ranks(CLI::App& app, CommandLine& line) {
  RealArguments& real = line.real;
  app.add_option("--backend", real.backend, "gloo, nccl, or auto: the first that this machine can run")
      ->check(CLI::IsMember(names_of_backends()));
  app.add_option("--ranks", real.ranks, "How many processes, instead of the scenario's world_size")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  app.add_option("--deadline", real.deadline, "When the run is ended, at the latest; 10s by default")
      ->type_name("TIME");
  app.add_option("--time-scale", real.time_scale, "Seconds slept for a second of `compute`; 1 by default")
      ->check(check_not_negative)
      ->type_name("X");
}

void declare_real(CLI::App& app, CommandLine& line) {
  app.add_option("FILE", line.file, "The scenario")->required();
  declare_real_ranks(app, line);
  app.add_flag("--launched", line.real.launched,
               "This process is one rank of a job that torchrun, srun or mpirun started");
  declare_trace(app, line.trace);
  declare_reports(app, line);
}

void declare_compare(CLI::App& app, CommandLine& line) {
  app.add_option("FILE", line.file, "The scenario; of two runs the first, or its JSON report")->required();
  app.add_option("OTHER", line.other, "Compare two simulated runs instead, before and after a change");
  declare_real_ranks(app, line);
  CLI::Option* record =
      app.add_option("--record", line.real.record, "Keep the real side for later")->type_name("FILE");
  app.add_option("--recorded", line.real.recorded, "Compare with what --record kept, and run nothing real")
      ->type_name("FILE")
      ->excludes(record);
  declare_reports(app, line);
}

void declare_doctor(CLI::App& app, CommandLine& line) {
  RealArguments& real = line.real;
  CLI::Option* prove = app.add_flag("--prove", real.prove,
                                    "Hold what the simulator says against a real backend, case by case");
  app.add_option("--backend", real.backend, "gloo, nccl, or auto: the first that this machine can run")
      ->check(CLI::IsMember(names_of_backends()))
      ->needs(prove);
  app.add_option("--record", real.record, "Keep the outcomes, with versions")
      ->type_name("FILE")
      ->needs(prove);
}

void declare_schema(CLI::App&, CommandLine&) {}

void declare_explain(CLI::App& app, CommandLine& line) {
  app.add_option("KIND", line.word, "A verdict or a kind, as reports give it; without it, all are listed");
}

void declare_import(CLI::App& app, CommandLine& line) {
  app.add_option(
         "KIND", line.paths,
         "hang FILE: a file of the hang library. flight-recorder PATH..., or just PATH...: the dumps of a "
         "real job, files or directories of them")
      ->required()
      ->type_name("[KIND] PATH");
  app.add_flag("--fixed", line.fixed, "hang: import the variant with the fix");
}

void declare_export(CLI::App& app, CommandLine& line) {
  app.add_option(
         "FILE", line.paths,
         "The scenario, which is run. `flight-recorder FILE -o DIR` says the same as --flight-recorder")
      ->required()
      ->type_name("[KIND] FILE");
  app.add_option("--flight-recorder", line.dumps.folder,
                 "Write what every rank's Flight Recorder would have dumped there, a file per rank")
      ->type_name("DIR");
  app.add_option("--encoding", line.dumps.encoding, "pickle, as PyTorch's watchdog writes, or json")
      ->check(CLI::IsMember({"pickle", "json"}));
  declare_seed(app, line);
}

void declare_record(CLI::App& app, CommandLine& line) {
  RecordArguments& record = line.record;
  app.add_option("-n,--world-size", record.world_size, "How many ranks")->check(CLI::Range(1, 4096));
  CLI::Option* simulate = app.add_flag("--simulate", record.simulate,
                                       "All ranks at once, with the true results, in the simulator");
  app.add_flag(
         "--fake", record.fake,
         "Each rank alone, even if the script reads what it receives and would run again in the simulator")
      ->excludes(simulate);
  app.add_flag("--live", record.live,
               "Real ranks: what follows is a command that starts them, such as torchrun with a script")
      ->excludes(simulate)
      ->excludes("--fake");
  app.add_option("--records", record.records,
                 "Keep what each rank has written there; without a script, go on from what is there")
      ->type_name("DIR");
  app.add_option("--python", record.python, "The interpreter; by default the first python3 that has torch")
      ->type_name("PROGRAM");
  app.add_option("--patience", record.patience,
                 "When a rank that calls nothing and does not end is stopped; 10min by default")
      ->type_name("TIME");
  app.footer(
      "After the options comes the script, and after it what the script is given:\n"
      "  rollcall record --world-size 4 -o train.json train.py --epochs 1\n"
      "  rollcall record --live -o train.json -- torchrun --nproc_per_node 4 train.py");
  app.prefix_command();  // what follows the script is the script's
  app.parse_complete_callback([&app, &line] {
    std::vector<std::string> words = app.remaining();
    line.paths.insert(line.paths.begin(), words.begin(), words.end());
  });
}

void declare_init(CLI::App& app, CommandLine& line) {
  app.add_option("DIR", line.file, "The repository; the current folder by default");
  app.add_option("--ci", line.ci, "Whose CI to write for; both by default")
      ->check(CLI::IsMember({"github", "gitlab", "all", "none"}));
}

void declare_completion(CLI::App& app, CommandLine& line) {
  app.add_option("SHELL", line.word, "Whose script to print")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

void declare_manual(CLI::App&, CommandLine&) {}

constexpr std::array<Command, 19> table = {{
    {"run", "Run one scenario and report what becomes of it", declare_run, run_scenario},
    {"test", "Run many scenarios and say which do not come to what they expect", declare_test,
     test_scenarios},
    {"explore", "Try many schedules of one scenario: what timing could make of it", declare_explore,
     explore_scenario},
    {"minimize", "Make the smallest scenario that fails in the same way", declare_minimize,
     minimize_scenario},
    {"predict", "Predict how long a collective, or a scenario, takes on a cluster", declare_predict,
     predict_times},
    {"real", "Run one scenario on real ranks, a process each", declare_real, run_on_real_ranks},
    {"compare", "Compare a scenario's simulated and real run, or two runs", declare_compare,
     compare_with_real_ranks},
    {"doctor", "Say which real backends this machine can run", declare_doctor, examine_machine},
    {"view", "Make a page of a run, a job's dumps or a trace, and print where it is", declare_view,
     view_report},
    {"list", "List scenarios with the verdict they expect", declare_list, list_scenarios},
    {"diagnose", "Say from a real job's dumps which rank is to blame", declare_diagnose, diagnose},
    {"schema", "Print the JSON Schema of scenario files", declare_schema, print_schema},
    {"explain", "Say what a verdict or a kind means", declare_explain, explain_kind},
    {"import", "Turn a file of another format into a scenario", declare_import, import_file},
    {"export", "Write what a simulated job's Flight Recorders would have left behind", declare_export,
     export_dumps},
    {"record", "Run a PyTorch script on ranks that are not there, and write what it does as a scenario",
     declare_record, record_script},
    {"init", "Begin: write a first scenario and CI for it into a repository", declare_init, init_repository},
    {"completion", "Print a script that completes rollcall's commands in a shell", declare_completion,
     print_completion},
    {"manual", "Print the manual page, for man(1)", declare_manual, print_manual},
}};

}  // namespace

std::span<const Command> commands() { return table; }

}  // namespace rollcall::cli
