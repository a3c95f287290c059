#include "scenarios/cli/arguments/commands.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <CLI/App.hpp>

#include "scenarios/cli/report_files.h"
#include "sim/base/parse_number.h"
#include "sim/c10d/backend_traits.h"

namespace rollcall::cli {

namespace {

// CLI11's own conversion accepts "-1" as the largest seed.
std::uint64_t seed_of(const std::string& text) {
  const auto seed = parse_number<std::uint64_t>(text);
  if (!seed) {
    throw CLI::ConversionError(fmt::format("--seed: '{}' is not an integer between 0 and 2^64-1", text));
  }
  return *seed;
}

// The values of --backend.
std::vector<std::string> names_of_backends() {
  std::vector<std::string> names;
  for (const BackendTraits& backend : known_backends()) {
    names.emplace_back(backend.name);
  }
  std::ranges::sort(names);
  names.emplace_back("auto");
  return names;
}

// Checks a whole number, with a message for people: CLI11's own prints both ends of every range.
CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const auto check = [least, most](const std::string& text) {
    const auto value = parse_number<std::int64_t>(text);
    return value && *value >= least && *value <= most
               ? ""
               : fmt::format("'{}' is not an integer between {} and {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

std::string check_not_negative(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && *value >= 0 ? "" : fmt::format("'{}' is not a non-negative number", text);
}

// Declares an option with a value, which --help shows as `value`: "--seed N".
template <typename Target>
CLI::Option* option(CLI::App& app, const char* names, const char* value, Target& target,
                    const std::string& help) {
  return app.add_option(names, target, help)->type_name(value);
}

void declare_trace_files(CLI::App& app, TraceArguments& trace) {
  option(app, "--trace", "FILE", trace.files,
         "Write the timeline for ui.perfetto.dev as .json (Chrome trace), .json.gz or .pftrace; repeatable")
      ->allow_extra_args(false);
  option(app, "--trace-dir", "DIR", trace.directory,
         "Write one trace per rank to this directory, as torch.profiler does, for Holistic Trace Analysis");
  option(app, "--trace-ranks", "RANKS", trace.ranks,
         "Show only these ranks in traces and the chart, such as 0-7,37");
  option(app, "--trace-window", "A:B", trace.window, "Show only this time window, such as 10ms:20ms");
  option(app, "--trace-time", "UNIT", trace.time,
         "Unit of times in traces: ns, or us for viewers that round to microseconds")
      ->check(CLI::IsMember({"ns", "us"}));
}

void declare_trace(CLI::App& app, TraceArguments& trace) {
  declare_trace_files(app, trace);
  CLI::Option* chart = app.add_flag("--timeline", trace.chart, "Draw the timeline in the terminal");
  app.add_flag("--ascii", trace.ascii, "Draw it in ASCII")->needs(chart);
}

void declare_seed(CLI::App& app, CommandLine& line, const char* overridden = "the scenario's") {
  const auto set_seed = [&line](const std::string& text) { line.seed = seed_of(text); };
  app.add_option_function<std::string>("--seed", set_seed,
                                       fmt::format("Random seed; overrides {}", overridden))
      ->type_name("N");
}

void declare_run(CLI::App& app, CommandLine& line) {
  app.add_option("FILE", line.file, "The scenario")->required();
  declare_seed(app, line);
  option(app, "--schedule", "SCHEDULE", line.schedule,
         "Replay this schedule, as printed on a report's replay line");
  app.add_flag("--no-repair", line.no_repair,
               "Do not run a failing job again with changed calls to find out who is to blame");
  declare_trace(app, line.trace);
}

void declare_explore(CLI::App& app, CommandLine& line) {
  ExploreArguments& explore = line.explore;
  app.add_option("FILE", line.paths, "The scenario; with --merge, the JSON results of all shards")
      ->required();
  option(app, "--schedules", "N", explore.schedules, "Maximum number of schedules; 10000 by default")
      ->check(whole_number(1, 1'000'000'000));
  option(app, "--scheduler", "SCHEDULER", explore.scheduler,
         "dfs: every schedule that differs, in order; random: random schedules; pct: random "
         "priorities; auto (the default): dfs, then random schedules if there are too many")
      ->check(CLI::IsMember({"auto", "dfs", "random", "pct"}));
  option(app, "--max-preemptions", "K", explore.preemptions_max,
         "Only schedules with at most K deviations from the default one")
      ->check(whole_number(0, 1'000'000));
  app.add_flag("--no-reduction", explore.full, "Turn off partial-order reduction");
  option(app, "-j,--jobs", "N", explore.jobs, "Number of parallel jobs; 1 by default")
      ->check(whole_number(1, 1024));
  option(app, "--shard", "I/N", explore.shard, "Search only the I-th of N shards, to use several machines");
  option(app, "--checkpoint", "FILE", explore.checkpoint,
         "Search in parts and save each result to this file; the same command resumes an interrupted search");
  app.add_flag("--merge", explore.merge, "Merge the results of shards, as printed by --format json");
  CLI::Option* what_if = app.add_flag("--what-if", explore.what_if,
                                      "Disturb the scenario instead of its schedule: an input more or less, "
                                      "a skipped step, an early exit or a slow rank, on every rank in turn");
  app.add_flag("--crash-each", explore.crash_each,
               "With --what-if: also let every rank die at each of its calls")
      ->needs(what_if);
  declare_seed(app, line);
}

void declare_minimize(CLI::App& app, CommandLine& line) {
  app.add_option("FILE", line.file, "A scenario that fails")->required();
  declare_seed(app, line);
}

void declare_view(CLI::App& app, CommandLine& line) {
  app.add_option("PATH", line.paths,
                 "A JSON report; a scenario, which is run; dumps or traces of a job, or their directory. Two "
                 "scenarios or reports are compared")
      ->required();
  app.add_flag("--open", line.open, "Open the page in the browser");
}

void declare_test(CLI::App& app, CommandLine& line) {
  TestArguments& test = line.test;
  app.add_option(
      "PATH", line.paths,
      "Files, directories, or FILE::case such as 'a.json::[world_size=4]'; ./scenarios by default");
  option(app, "-k", "EXPR", test.keywords,
         "Run scenarios whose path, name or tags match: \"ddp and not slow\"");
  option(app, "-m", "TAGS", test.tags, "Run scenarios with these tags; and, or, not work as in -k");
  CLI::Option* first = app.add_flag("-x,--exitfirst", test.stop_at_first, "Stop at the first failure");
  option(app, "--maxfail", "N", test.failures_max, "Stop after N failures")->excludes(first);
  app.add_flag("--lf,--last-failed", test.last_failed,
               "Run only what failed last time, or everything if nothing did");
  app.add_flag("--list,--collect-only", test.list, "List what would run, without running it");
  option(app, "-j,--jobs", "N", test.jobs, "Number of parallel jobs; one per core by default")
      ->check(whole_number(1, 1024));
  declare_seed(app, line, "each scenario's");
  option(app, "--timeout", "TIME", test.timeout, "Time limit for each scenario; 60s by default");
  option(app, "--memory", "SIZE", test.memory, "Memory limit for each scenario; 8GiB by default");
  option(app, "--golden", "DIR", test.golden,
         "Compare every rank's calls with the golden files in this directory");
  app.add_flag("--update-golden", test.update_golden, "Rewrite these files, and those that scenarios name");
}

void declare_list(CLI::App& app, CommandLine& line) {
  app.add_option("PATH", line.paths, "Scenario files or directories; ./scenarios by default");
}

CLI::Option* declare_kernels_from(CLI::App& app, CommandLine& line) {
  return option(app, "--kernels-from", "TRACE", line.predict.kernels_from,
                "For a script: times of operations measured on one GPU, a trace of torch.profiler with "
                "record_shapes=True; the roofline gives the others")
      ->check(CLI::Validator(CLI::ExistingFile).description(""));
}

void declare_predict(CLI::App& app, CommandLine& line) {
  PredictArguments& predict = line.predict;
  app.add_option("OP", predict.subject,
                 "A collective such as all_reduce, a scenario file, or a Python script");
  app.add_option("ARGS", line.paths, "The script's arguments, after --");
  option(app, "--model", "MODEL", predict.model,
         "Predict a training step of this transformer: llama3-8b, or sizes such as layers=32,hidden=4096");
  option(app, "--layout", "WORDS", predict.layout,
         "How the model is spread, such as fsdp=8,tp=2,microbatch=2,float8");
  option(app, "--what-if", "WORDS", predict.what_if,
         "Also with these changes, such as cluster=h200-8,slow=5%; for a model, also any word of --model or "
         "--layout, and longer=5%; for a scenario or a script, also world_size=, bucket=, microbatches= and "
         "precision=");
  option(app, "--gpu", "NAME", predict.gpu, "A GPU that differs from the cluster's, such as h100-500w");
  option(app, "--cluster", "NAME", predict.cluster,
         "A preset such as h100-8 or a100-2x8, or a file that describes a cluster");
  option(app, "--bytes", "A:B", predict.bytes, "Message sizes, doubling from A to B; 8B:1GiB by default");
  option(app, "--dtype", "TYPE", predict.dtype, "Element type; float32 by default");
  option(app, "--reduce-op", "OP", predict.reduce_op, "Reduction operation; SUM by default");
  option(app, "--algorithm", "NAME", predict.algorithm, "Use only this algorithm, like NCCL_ALGO");
  option(app, "--protocol", "NAME", predict.protocol, "Use only this protocol, like NCCL_PROTO");
  option(app, "--nccl", "RELEASE", predict.nccl, "NCCL's release, 2.27 to 2.30; 2.28.9 by default");
  option(
      app, "--calibrate", "FILE", predict.calibrate,
      "Correct the times by rows measured on the cluster: output of nccl-tests or PARAM, two rows or more");
  option(app, "--gpus-per-process", "N", predict.gpus_per_process,
         "GPUs that one thread launches on, like nccl-tests -g; 1 by default")
      ->check(whole_number(1, 1024));
  app.add_flag("--cuda-graphs", predict.cuda_graphs, "Launches are replayed from CUDA graphs");
  app.add_flag("--symmetric-memory", predict.symmetric_memory,
               "Buffers are registered as symmetric windows, like nccl-tests -R 2");
  option(app, "--svg", "FILE", predict.svg, "Write a plot of the bus bandwidth");
  app.add_flag("--explain", predict.explain,
               "List every algorithm and protocol with its time, or the reason it is excluded");
  app.add_flag("--measure", predict.measure, "Also measure on this machine's GPUs, with one thread for each");
  app.add_flag("--residuals", predict.residuals,
               "For a scenario: add corrections fitted to measurements to NCCL's model");
  option(app, "-n,--world-size", "N", line.record.world_size,
         "For a script: number of ranks; by default the cluster's GPUs")
      ->check(whole_number(1, 4096));
  option(app, "--sample", "N", line.record.sampled,
         "For a script: run only N of the ranks, and all if they differ; 4 from 17 ranks on")
      ->check(whole_number(2, 4096));
  declare_kernels_from(app, line);
  option(app, "--tokens-per-step", "N", predict.tokens_per_step,
         "Tokens that all ranks together train on in a step; adds tokens per second to the report")
      ->check(CLI::Validator(CLI::PositiveNumber).description(""));
  option(app, "--python", "PROGRAM", line.record.python, "For a script: the Python interpreter");
  declare_trace_files(app, line.trace);
}

void declare_slow(CLI::App& app, CommandLine& line) {
  app.add_option(
         "FILE", line.paths,
         "Tables of nccl-tests or PARAM, logs of NCCL Inspector, or one file of times by rank (docs/slow.md)")
      ->required();
  option(app, "--cluster", "NAME", line.predict.cluster,
         "What the machine should be: a preset such as h100-2x8, or a file that describes a cluster");
}

void declare_cluster(CLI::App& app, CommandLine& line) {
  app.add_option("from", line.word, "The word \"from\"")->required()->check(CLI::IsMember({"from"}));
  app.add_option("FILE", line.paths,
                 "NCCL's log (NCCL_DEBUG=INFO), and files of NCCL_TOPO_DUMP_FILE and NCCL_GRAPH_DUMP_FILE")
      ->required();
}

void declare_diagnose(CLI::App& app, CommandLine& line) {
  app.add_option("PATH", line.paths, "Dumps, traces and logs of a job, or directories that hold them")
      ->required();
  app.add_flag(
      "--hung", line.hung,
      "Treat the job as hung, as where a timeout wrote the dumps: ranks that did not arrive are to blame");
  declare_trace(app, line.trace);
}

void declare_real_ranks(CLI::App& app, CommandLine& line) {
  RealArguments& real = line.real;
  option(app, "--backend", "BACKEND", real.backend,
         "gloo, nccl, or auto: the first one that this machine can run")
      ->check(CLI::IsMember(names_of_backends()));
  option(app, "--ranks", "N", real.ranks, "Number of processes; overrides the scenario's world_size")
      ->check(whole_number(1, 1024));
  option(app, "--deadline", "TIME", real.deadline, "Time limit of the run; 10s by default");
  option(app, "--time-scale", "X", real.time_scale, "Seconds to sleep per second of `compute`; 1 by default")
      ->check(check_not_negative);
}

void declare_real(CLI::App& app, CommandLine& line) {
  app.add_option("FILE", line.file, "The scenario")->required();
  declare_real_ranks(app, line);
  option(app, "--calibrate", "FILE", line.real.calibrate,
         "Save how long calls took on the GPUs, for predict --calibrate and slow");
  app.add_flag("--launched", line.real.launched,
               "Run as one rank of a job that torchrun, srun or mpirun started");
  declare_trace(app, line.trace);
}

void declare_compare(CLI::App& app, CommandLine& line) {
  app.add_option("FILE", line.file, "The scenario; or the first of two scenarios or JSON reports")
      ->required();
  app.add_option("OTHER", line.other,
                 "A second scenario or JSON report: compare two simulated runs, before and after a change");
  declare_real_ranks(app, line);
  CLI::Option* record =
      option(app, "--record", "FILE", line.real.record, "Save the results of the real run to this file");
  option(app, "--recorded", "FILE", line.real.recorded,
         "Compare with results saved by --record, without a real run")
      ->excludes(record);
}

void declare_doctor(CLI::App& app, CommandLine& line) {
  RealArguments& real = line.real;
  CLI::Option* prove = app.add_flag("--prove", real.prove,
                                    "Check the simulator's predictions against a real backend, case by case");
  option(app, "--backend", "BACKEND", real.backend,
         "gloo, nccl, or auto: the first one that this machine can run")
      ->check(CLI::IsMember(names_of_backends()))
      ->needs(prove);
  option(app, "--record", "FILE", real.record, "Save the outcomes, with library versions, to this file")
      ->needs(prove);
}

void declare_nothing(CLI::App&, CommandLine&) {}

void declare_explain(CLI::App& app, CommandLine& line) {
  app.add_option("KIND", line.word, "A verdict or kind, as printed in reports; lists all of them if omitted");
}

void declare_import(CLI::App& app, CommandLine& line) {
  app.add_option("KIND", line.paths,
                 "hang FILE: a file of the hang library. flight-recorder PATH..., or just PATH...: Flight "
                 "Recorder dumps of a real job, as files or directories")
      ->required()
      ->type_name("[KIND] PATH");
  app.add_flag("--fixed", line.fixed, "For hang: import the fixed variant");
}

void declare_export(CLI::App& app, CommandLine& line) {
  app.add_option("FILE", line.paths,
                 "The scenario to run. `flight-recorder FILE -o DIR` means the same as --flight-recorder")
      ->required()
      ->type_name("[KIND] FILE");
  option(app, "--flight-recorder", "DIR", line.dumps.folder,
         "Write the dump of every rank's Flight Recorder to this directory, one file per rank");
  option(app, "--encoding", "ENCODING", line.dumps.encoding, "pickle (as PyTorch's watchdog writes) or json")
      ->check(CLI::IsMember({"pickle", "json"}));
  declare_seed(app, line);
}

void declare_record(CLI::App& app, CommandLine& line) {
  RecordArguments& record = line.record;
  option(app, "-n,--world-size", "N", record.world_size, "Number of ranks")->check(whole_number(1, 4096));
  CLI::Option* simulate = app.add_flag(
      "--simulate", record.simulate,
      fmt::format("Run all ranks together and answer their calls from the simulator; the default "
                  "up to {} ranks",
                  RecordArguments::together_max));
  app.add_flag(
         "--fake", record.fake,
         fmt::format("Run each rank alone; without this, more than {} ranks run alone first, and together "
                     "if the script reads received data",
                     RecordArguments::together_max))
      ->excludes(simulate);
  app.add_flag("--live", record.live,
               "Record a real job; what follows is the command that starts it, such as torchrun")
      ->excludes(simulate)
      ->excludes("--fake");
  option(app, "--sample", "N", record.sampled,
         "Run only N of the ranks alone; if they make the same calls, assume that the others make them, too")
      ->check(whole_number(2, 4096))
      ->excludes(simulate)
      ->excludes("--live");
  option(app, "--records", "DIR", record.records,
         "Keep each rank's record in this directory; without a script, use the records found there");
  option(app, "--python", "PROGRAM", record.python,
         "The Python interpreter; by default the first python3 that has torch");
  option(app, "--patience", "TIME", record.patience,
         "Stop a rank that makes no call for this long; 10min by default");
  CLI::Option* cluster = option(app, "--cluster", "NAME", line.predict.cluster,
                                "The cluster that kernels run on: a preset such as h100-8, or a file");
  app.add_flag("--kernels", record.kernels,
               "Record what GPUs would compute, too; times are those of the cluster's GPUs")
      ->needs(cluster)
      ->excludes("--live");
  cluster->needs("--kernels");
  declare_kernels_from(app, line)->needs("--kernels");
  app.add_flag("!--no-pretend", record.pretends_gpus,
               "Do not pretend GPUs where there are none and the script asks for one");
  option(app, "--ranks-see", "N", record.gpus_per_host,
         "GPUs of each host, for one rank each; by default all ranks are on one host")
      ->check(whole_number(1, 4096));
  declare_trace(app, line.trace);
  app.footer(
      "The script comes after the options, and its own arguments after the script. A\n"
      "real job is recorded by `record --live -o train.json -- torchrun train.py`.");
}

void declare_watch(CLI::App& app, CommandLine& line) {
  option(app, "--after", "TIME", line.watch.after,
         "Report when nothing has moved for this long while a rank waits; by default three times the job's "
         "longest pause so far, and at least 4s");
  CLI::Option* node =
      app.add_flag("--node", line.watch.is_node,
                   "This is one of several nodes, each with its own watch; node 0 judges. The "
                   "number comes from SLURM_NODEID, GROUP_RANK, NODE_RANK or JOB_COMPLETION_INDEX");
  option(app, "--meet", "HOST:PORT", line.watch.meet,
         "Where node 0 listens for the others; by default MASTER_ADDR, and the port after MASTER_PORT")
      ->needs(node);
  option(app, "--token-file", "FILE", line.watch.token_file,
         "A file with the secret that all nodes share; by default it is in ROLLCALL_TOKEN")
      ->needs(node);
  option(app, "--serve", "PORT", line.watch.page_port,
         "Show the job's last minute on a page for a browser of this machine, at this port; 0: "
         "any that is free. The page's address is printed at startup")
      ->check(whole_number(0, 65535));
  app.add_flag("--no-row", line.watch.no_row, "Do not keep the terminal's last row for the job's status");
  option(app, "--records", "DIR", line.record.records,
         "Keep the ranks' rings and stacks in this directory, for diagnose, import and view");
  app.footer(
      "The command that starts the job comes after the options. It is run as it is: its\n"
      "output is untouched, signals reach it, and rollcall exits with its exit code.\n"
      "Reports go to standard error.");
}

void declare_attach(CLI::App& app, CommandLine& line) {
  app.add_option(
         "TARGET", line.paths,
         "host:port of torch's debug server (its page), a process id of a rank or of what started the ranks, "
         "ras:host[:port] of NCCL's RAS; several are combined")
      ->required();
  option(app, "--records", "DIR", line.record.records, "Keep what was collected in this directory");
}

void declare_init(CLI::App& app, CommandLine& line) {
  app.add_option("DIR", line.file, "The repository; the current directory by default");
  option(app, "--ci", "CI", line.ci, "Which CI to write a job for; both by default")
      ->check(CLI::IsMember({"github", "gitlab", "all", "none"}));
}

void declare_completion(CLI::App& app, CommandLine& line) {
  app.add_option("SHELL", line.word, "The shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

constexpr const char* for_hangs = "Find the rank that hangs a job";
constexpr const char* for_tests = "Test programs for hangs";
constexpr const char* for_times = "Predict and judge times";
constexpr const char* for_real_ranks = "Run on real ranks";
constexpr const char* for_files = "Show and convert";
constexpr const char* for_setup = "Set up";
constexpr auto no_reports = nullptr;
constexpr bool passes_words_on = true;

constexpr std::array<Command, 23> table = {{
    {"diagnose",
     "Find the culprit of a hang from what the job left: dumps, traces, logs, stacks",
     declare_diagnose,
     diagnose,
     for_hangs,
     {"diagnose dumps/                         # all files in it, together",
      "diagnose dumps/ --report html=hang.html"},
     page_kinds},
    {"watch",
     "Run a real job as it is and name the culprit while it hangs",
     declare_watch,
     watch_job,
     for_hangs,
     {"watch -- torchrun --nproc_per_node 4 train.py", "watch --after 5s -- python3 launch.py"},
     no_reports,
     passes_words_on},
    {"attach",
     "Find the culprit of a job that hangs and runs without rollcall",
     declare_attach,
     attach_to_job,
     for_hangs,
     {"attach node1:25999                      # torch's debug server (2.14)",
      "attach 4711                             # processes of this machine"},
     page_kinds},
    {"record",
     "Run a PyTorch script on simulated ranks, without GPUs, and judge it",
     declare_record,
     record_script,
     for_hangs,
     {"record -n 4 train.py --epochs 1         # --epochs is the script's",
      "record -n 4 -o train.json train.py      # and keep it as a scenario"},
     page_kinds,
     passes_words_on},
    {"run",
     "Simulate one scenario and report the verdict",
     declare_run,
     run_scenario,
     for_tests,
     {"run uneven_inputs.json --timeline",
      "run uneven_inputs.json --trace hang.json --report html=hang.html"},
     run_kinds},
    {"test",
     "Run scenarios as tests and list those that do not meet their expectations",
     declare_test,
     test_scenarios,
     for_tests,
     {"test scenarios -k \"ddp and not slow\"", "test scenarios --report github --report junit=rollcall.xml"},
     run_kinds},
    {"explore",
     "Try many schedules of one scenario, to find failures that depend on timing",
     declare_explore,
     explore_scenario,
     for_tests,
     {"explore race.json", "explore train.json --what-if            # disturb the ranks instead"},
     page_kinds},
    {"minimize",
     "Reduce a scenario to the smallest one that fails in the same way",
     declare_minimize,
     minimize_scenario,
     for_tests,
     {"minimize hang.json", "minimize hang.json -o smallest.json"}},
    {"list",
     "List scenarios with their expected verdicts",
     declare_list,
     list_scenarios,
     for_tests,
     {"list", "list scenarios --format json"}},
    {"init",
     "Add a first scenario and a CI job to a repository",
     declare_init,
     init_repository,
     for_tests,
     {"init", "init --ci github ~/my-training"}},
    {"predict",
     "Predict how long a collective, a scenario or a training step takes on a cluster",
     declare_predict,
     predict_times,
     for_times,
     {"predict all_reduce --cluster h100-2x8 --bytes 1KiB:8GiB",
      "predict --model llama3-8b --layout fsdp=8,tp=2 --cluster h100-2x8"},
     page_kinds},
    {"slow",
     "Find the rank, NIC, link or node that is slow, from measured times",
     declare_slow,
     find_slow,
     for_times,
     {"slow all_reduce_perf.txt --cluster h100-2x8", "slow dumps/"}},
    {"cluster",
     "Describe a cluster by the files that NCCL writes on it",
     declare_cluster,
     make_cluster,
     for_times,
     {"cluster from nccl.log -o mine.json", "cluster from topo.xml graph.xml"}},
    {"real",
     "Run one scenario on real ranks, one process each",
     declare_real,
     run_on_real_ranks,
     for_real_ranks,
     {"real ring.json --backend gloo", "real ring.json --ranks 8 --report html=real.html"},
     page_kinds},
    {"compare",
     "Compare a scenario's simulated run with a real one, or two simulated runs",
     declare_compare,
     compare_with_real_ranks,
     for_real_ranks,
     {"compare ring.json                       # simulated and real", "compare before.json after.json"},
     page_kinds},
    {"doctor",
     "Show which real backends this machine can run",
     declare_doctor,
     examine_machine,
     for_real_ranks,
     {"doctor", "doctor --prove --backend gloo"}},
    {"view",
     "Write a run, a job's dumps or a trace as an HTML page and print its path",
     declare_view,
     view_report,
     for_files,
     {"view dumps/ --open", "view before.json after.json -o changes.html"}},
    {"explain",
     "Explain what a verdict or kind means",
     declare_explain,
     explain_kind,
     for_files,
     {"explain deadlock", "explain                                 # the list of them"}},
    {"import",
     "Convert Flight Recorder dumps (or a hang-library file) to a scenario",
     declare_import,
     import_file,
     for_files,
     {"import dumps/ -o hang.json", "import hang crossed.json"}},
    {"export",
     "Write the Flight Recorder dumps that a simulated job would leave behind",
     declare_export,
     export_dumps,
     for_files,
     {"export hang.json --flight-recorder dumps",
      "export hang.json --flight-recorder dumps --encoding json"}},
    {"schema",
     "Print the JSON Schema of scenario files",
     declare_nothing,
     print_schema,
     for_setup,
     {"schema", "schema -o scenario-v1.schema.json"}},
    {"completion",
     "Print a shell completion script",
     declare_completion,
     print_completion,
     for_setup,
     {"completion bash > ~/.local/share/bash-completion/completions/rollcall",
      "completion fish > ~/.config/fish/completions/rollcall.fish"}},
    {"manual",
     "Print the manual page, for man(1)",
     declare_nothing,
     print_manual,
     for_setup,
     {"manual | man -l -", "manual -o rollcall.1"}},
}};

}  // namespace

std::span<const Command> commands() { return table; }

}  // namespace rollcall::cli
