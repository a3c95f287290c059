#pragma once

// Report: everything a run leaves behind. Writers (terminal, JSON, Chrome trace) and tests see only this.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/device_memory.h"
#include "sim/report/join_cost.h"
#include "sim/report/sample_use.h"
#include "sim/report/search_result.h"
#include "sim/report/source_line.h"
#include "sim/report/timeline.h"
#include "sim/report/verdict.h"

namespace rollcall {

// Ranks in the same state, shown as one line.
struct RankClass {
  enum class State : std::uint8_t { finished, waiting, raised, crashed, running };

  RankSet ranks;
  State state = State::finished;
  std::optional<Call> call;            // waiting: the call it is blocked in
  std::optional<Call> last_completed;  // the last call of that group that completed
  std::int64_t inputs = -1;            // inputs taken so far; -1: the program does not count
  std::string exception;  // raised, crashed: "ValueError: bad sample"; running: "did not come", or empty
  RankSet waits_for;      // waiting: the ranks that have not arrived
};

std::string_view to_string(RankClass::State state);

// A line a rank printed, or a warning it caused.
struct OutputLine {
  Rank rank = 0;
  Time time = 0;
  bool warning = false;
  std::string text;
};

// The contents of a rank's tensor at the end of the run.
struct TensorValue {
  Rank rank = 0;
  std::string tensor;  // the program's name for it
  std::int64_t numel = 0;
  std::vector<double> elements;  // one where all are equal
};

// A process group of the run.
struct ReportGroup {
  std::string name;
  RankSet ranks;
};

// The memory that an object of kind "dp" uses on each GPU.
struct MemoryUse {
  std::string object;
  std::vector<DeviceMemory> devices;  // by GPU
};

struct Report {
  std::string scenario;
  std::uint64_t seed = 0;
  std::string replay;  // the command that repeats this run
  Rank world_size = 0;
  std::string backend;  // "nccl" or "gloo"
  std::string torch;    // the release that the run simulates: "2.14"; empty: unknown
  Verdict verdict;
  std::vector<RankClass> ranks;     // by first rank
  std::vector<OutputLine> output;   // by rank, then in program order
  std::vector<TensorValue> values;  // those that were asked for
  Time simulated_time = 0;
  bool measured = false;  // of real ranks: times are a clock's, and differ from run to run
  std::int64_t ops = 0;   // issued by all ranks together
  std::int64_t timeouts =
      0;  // waits of simulated ranks that reached their limits, before the verdict was clear
  std::int64_t schedules = 1;
  bool exhaustive = true;              // no choice was left open: every schedule gives this verdict
  std::optional<SearchResult> search;  // of a search through other schedules
  std::optional<bool> expected;        // whether the run ended as the scenario expects
  std::vector<std::string> unmet;      // expectations that did not hold, one sentence each
  std::vector<JoinCost> joins;         // contexts that every rank has left, in order
  std::optional<SampleUse> samples;    // of one epoch, where inputs come from a dataset
  std::vector<MemoryUse> memory;
  Timeline timeline;                // empty unless asked for
  std::vector<ReportGroup> groups;  // in order of creation; with a timeline only
  std::vector<SourceLine> sources;  // by site; only those that could be read

  // The class a rank is in. The rank must exist.
  const RankClass& of(Rank rank) const;
};

}  // namespace rollcall
