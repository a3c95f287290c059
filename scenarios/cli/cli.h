#pragma once

// The command line: `rollcall COMMAND ...`. arguments/parse.cc turns arguments into a CommandLine, one file
// per command executes it, and guarded.cc handles errors.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scenarios/cli/terminal/progress_wish.h"
#include "scenarios/program/units.h"
#include "sim/c10d/op.h"
#include "viz/base/text_style.h"

namespace rollcall::cli {

// Uses pytest's exit codes, because users know them.
enum class ExitCode : int {
  as_expected = 0,
  differs = 1,  // the verdict is not the expected one
  interrupted = 2,
  internal_error = 3,  // rollcall's own fault
  invalid = 4,  // the user's fault: arguments, a scenario file, a file or an address that cannot be used
  nothing_selected = 5,
  undecided = 6,     // diagnose: a pause would have left the same evidence
  unavailable = 77,  // automake's "skipped": this machine lacks what the command needs
};

// The request cannot be carried out. The message is one line, for the user.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Format { text, json };

// The arguments of `predict`.
struct PredictArguments {
  std::string subject;  // an operation, a scenario file, or a script; empty if there is a model
  std::string model;    // a transformer's sizes; may be empty
  std::string layout;   // how it is distributed over GPUs
  std::string gpu;      // instead of the cluster's; may be empty
  std::vector<std::string> what_if{};  // changes of a step
  std::string cluster;                 // a preset, or a file; may be empty
  std::string bytes = "8B:1GiB";
  std::string dtype = "float32";
  std::string reduce_op = "SUM";
  std::string algorithm;                 // may be empty
  std::string protocol;                  // may be empty
  std::string svg;                       // may be empty
  std::string nccl;                      // a release; may be empty
  std::vector<std::string> calibrate{};  // files with measured rows
  int gpus_per_process = 1;
  bool cuda_graphs = false;
  bool symmetric_memory = false;
  std::string kernels_from;                     // a trace of torch.profiler; may be empty
  std::optional<std::int64_t> tokens_per_step;  // of all ranks together
  bool explain = false;
  bool residuals = false;
  bool measure = false;
};

// Where timelines are written, and how much of them.
struct TraceArguments {
  std::vector<std::string> files;
  std::string directory;  // may be empty
  std::string ranks;      // may be empty: all
  std::string window;     // may be empty: all the time
  std::string time = "ns";
  bool chart = false;  // --timeline
  bool ascii = false;
};

// The arguments of `real` and `compare`.
struct RealArguments {
  std::string backend = "auto";
  std::optional<Rank> ranks;  // instead of the scenario's
  std::string deadline = "10s";
  double time_scale = 1;
  bool launched = false;  // real: this process is one rank of a launcher's job
  bool prove = false;     // doctor: run the cases
  std::string record;     // compare, doctor: a file for the real side; may be empty
  std::string calibrate;  // real: a file for the times of its calls; may be empty
  std::string recorded;   // compare: a file of --record, instead of a real run; may be empty
};

// The arguments of `export`.
struct DumpArguments {
  std::string folder;
  std::string encoding = "pickle";  // or "json"
};

// The arguments of `explore`.
struct ExploreArguments {
  std::int64_t schedules = 10'000;
  std::string scheduler = "auto";
  std::optional<std::size_t> preemptions_max;  // empty: any number
  std::uint32_t jobs = 1;
  std::string shard = "1/1";
  bool full = false;        // without reduction
  std::string checkpoint;   // a file; may be empty
  bool merge = false;       // the paths are results of shards
  bool what_if = false;     // vary the scenario instead of the schedule
  bool crash_each = false;  // the same, and also crash ranks
};

// The arguments of `record`. The script and its arguments are in CommandLine::paths.
struct RecordArguments {
  // Up to this many processes run at the same time. They make calls in the order of real ranks, so a file that one of
  // them writes exists when another one reads it.
  static constexpr Rank together_max = 16;

  std::optional<Rank> world_size;
  std::string python;  // the interpreter; may be empty
  std::string patience = "10min";
  std::string records;  // the folder for the ranks' records; may be empty
  bool simulate = false;
  bool fake = false;
  bool live = false;
  bool pretends_gpus = true;
  bool kernels = false;               // on the GPUs of PredictArguments::cluster
  std::optional<Rank> sampled;        // the number of ranks that are run alone; empty: all
  std::optional<Rank> gpus_per_host;  // empty: one for each rank, on one host
};

// The arguments of `watch`. The command is in CommandLine::paths, the folder in RecordArguments::records.
struct WatchArguments {
  std::string after;       // a time; empty: derived from the job's own pauses
  bool is_node = false;    // one of several
  std::string meet;        // "host:port" of node 0; empty: from the launcher's variables
  std::string token_file;  // empty: ROLLCALL_TOKEN
  bool no_row = false;     // no status row in the terminal
  int page_port = -1;      // -1: no page; 0: any
};

// The arguments of `test`.
struct TestArguments {
  std::string keywords;  // -k
  std::string tags;      // -m
  std::string golden;    // a folder; may be empty
  std::string timeout = "60s";
  std::string memory = "8GiB";
  bool stop_at_first = false;
  std::uint32_t failures_max = 0;  // 0: any number
  bool last_failed = false;
  bool list = false;
  bool update_golden = false;
  std::uint32_t jobs = 0;  // 0: one per core
  std::string command;     // as it was typed, for reports
};

// All arguments of a command line. A command reads those that it has declared.
struct CommandLine {
  ExitCode (*execute)(const CommandLine& line) = nullptr;  // the command

  Format format = Format::text;
  viz::TextStyle::Detail detail = viz::TextStyle::Detail::normal;
  viz::ColorChoice color = viz::ColorChoice::automatic;
  std::string output;     // a file instead of standard output; may be empty
  bool progress = false;  // also without a terminal
  ProgressWish progress_wish() const { return {detail == viz::TextStyle::Detail::quiet, progress}; }

  std::string file;                   // run, compare; init: the repository, may be empty
  std::string other;                  // compare: the second of two runs; may be empty
  std::optional<std::uint64_t> seed;  // run, export, test
  TraceArguments trace;               // run
  std::vector<std::string> reports;   // run, test, real, compare, diagnose: "html=FILE"
  bool open = false;                  // view
  PredictArguments predict;           // predict
  RealArguments real;                 // real, compare
  DumpArguments dumps;                // export
  RecordArguments record;             // record, watch, attach
  WatchArguments watch;               // watch
  TestArguments test;                 // test
  ExploreArguments explore;           // explore; its file is in `paths`
  std::string schedule;               // run: only this one; may be empty
  bool no_repair = false;             // run
  std::vector<std::string>
      paths;               // list, diagnose, view, record; import and export, which may begin with a kind
  std::string word;        // explain: the kind; may be empty. completion: the shell
  std::string ci = "all";  // init: github, gitlab, all or none
  bool fixed = false;      // import hang: the variant with the fix
  bool hung = false;       // diagnose: the job stood still when the dumps were written
};

// Returns the CommandLine, or the exit code if there is nothing left to do, as after --help and --version.
// Throws UsageError.
std::variant<CommandLine, ExitCode> parse(int argc, const char* const* argv);

// Returns the value of an option. Throws UsageError, which begins with `option`, if it could not be read, or is less
// than `least`: then `complaint` says what it must be.
std::int64_t at_least(std::int64_t least, const scenario::Quantity& read, const std::string& option,
                      std::string_view complaint);

// Runs a whole command, and turns errors into one line and an exit code. Throws nothing, and needs no memory to report
// that memory has run out. An exception that is thrown where none may be thrown ends the process in the same way.
ExitCode guarded(int argc, const char* const* argv) noexcept;

// The commands. Results go where the command line says, remarks to standard error. They throw
// UsageError and viz::OutputError.
ExitCode run_scenario(const CommandLine& line);
ExitCode test_scenarios(const CommandLine& line);
ExitCode explore_scenario(const CommandLine& line);
ExitCode minimize_scenario(const CommandLine& line);
ExitCode list_scenarios(const CommandLine& line);
ExitCode diagnose(const CommandLine& line);
ExitCode print_schema(const CommandLine& line);
ExitCode explain_kind(const CommandLine& line);
ExitCode predict_times(const CommandLine& line);
ExitCode predict_script(const CommandLine& line);  // if its subject is a script
ExitCode find_slow(const CommandLine& line);
ExitCode make_cluster(const CommandLine& line);
ExitCode import_file(const CommandLine& line);
ExitCode export_dumps(const CommandLine& line);
ExitCode record_script(const CommandLine& line);
ExitCode run_on_real_ranks(const CommandLine& line);
ExitCode compare_with_real_ranks(const CommandLine& line);
ExitCode examine_machine(const CommandLine& line);
ExitCode attach_to_job(const CommandLine& line);
ExitCode watch_job(const CommandLine& line);
ExitCode view_report(const CommandLine& line);
ExitCode init_repository(const CommandLine& line);
ExitCode print_completion(const CommandLine& line);
ExitCode print_manual(const CommandLine& line);

// For remarks and errors: writes a line to standard error, made of `parts`. A failed write is not an error.
void remark(std::initializer_list<std::string_view> parts) noexcept;
void remark(std::string_view text) noexcept;

// For commands: writes `text` to --output or standard output.
void emit(const CommandLine& line, const std::string& text);
// Decides by --color, the environment, and the output: standard output, or another stream.
bool wants_color(const CommandLine& line, int stream = 1);
// The same for a whole report, which is also no wider than the terminal that it is written to.
viz::TextStyle text_style(const CommandLine& line);

}  // namespace rollcall::cli
