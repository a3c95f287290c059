// The Flight Recorder of simulated ranks writes what that of real ones does. On Gloo: one program, dumped by torch
// 2.14.1. On NCCL: scripts on Lightning, Transformers, Accelerate, FSDP2 and others, dumped by two ranks of torch
// 2.11.0 and recorded without their GPU (tests/data/recorded_as_on_nccl).

#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "scenarios/recordings/recorded_run.h"
#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/shell.h"
#include "traces/formats/recordings.h"

namespace rollcall::scenario::recorded_calls_test {
namespace {

using check::DumpCall;
using check::DumpRecord;
using check::JobDump;
using check::RankDump;

std::int64_t elements(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::int64_t total = 0;
  for (const std::vector<std::int64_t>& shape : shapes) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
      count *= extent;
    }
    total += count;
  }
  return total;
}

std::string first(const std::vector<std::string>& dtypes) { return dtypes.empty() ? "" : dtypes.front(); }

// What a scenario keeps of a call: it has no shapes, but numbers of elements.
std::string text_of(const JobDump& job, const DumpRecord& record) {
  const DumpCall& call = job.calls[record.call];
  return fmt::format("{} {} {} -> {} {} group {} collective {} message {} {}", call.op, elements(call.inputs),
                     first(call.input_dtypes), elements(call.outputs), first(call.output_dtypes),
                     job.groups[record.group].name, record.collective_seq, record.p2p_seq,
                     record.is_over() ? "over" : "open");
}

std::vector<std::string> records_of(const JobDump& job, const RankDump& dump) {
  std::vector<std::string> texts;
  for (const DumpRecord& record : dump.records) {
    texts.push_back(text_of(job, record));
  }
  return texts;
}

// Bytes are pickled objects, which name devices and files, so their number may differ.
std::string line_of(const DumpCall& call) {
  const bool is_pickled = call.dtype() == "Byte";
  return is_pickled ? fmt::format("{} of bytes", call.op)
                    : fmt::format("{} of {} {} -> {} {}", call.op, elements(call.inputs), call.input_dtypes,
                                  elements(call.outputs), call.output_dtypes);
}

std::map<Rank, std::vector<std::string>> calls_in(const std::string& folder) {
  const JobDump job = traces::read_recordings({folder}).job;
  std::map<Rank, std::vector<std::string>> calls;
  for (const RankDump& dump : job.ranks) {
    for (const DumpRecord& record : dump.records) {
      calls[dump.rank].push_back(line_of(job.calls[record.call]));
    }
  }
  return calls;
}

}  // namespace

TEST_CASE("the recorder of a simulated Gloo job has the records of a real one",
          "[flight-recorder][recordings][fiber]") {
  const std::filesystem::path folder =
      std::filesystem::path(ROLLCALL_SOURCE_DIR) / "tests/data/torch_2_14/flight_recorder";
  std::vector<std::string> dumps;
  for (int rank = 0; rank < 4; ++rank) {
    dumps.push_back((folder / fmt::format("nccl_trace_rank_{}", rank)).string());
  }
  const JobDump real = traces::read_recordings(dumps).job;
  const JobDump simulated = record_run(load_scenario((folder / "all_calls.json").string())).job;
  REQUIRE(real.ranks.size() == 4);
  REQUIRE(simulated.ranks.size() == 4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CAPTURE(rank);
    CHECK(records_of(simulated, simulated.ranks[rank]) == records_of(real, real.ranks[rank]));
    CHECK(real.ranks[rank].records.size() > 30);
  }
}

TEST_CASE("scripts on libraries are recorded with the calls that they make on real GPUs", "[real-dumps]") {
  std::size_t scripts = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(ROLLCALL_SOURCE_DIR "/tests/data/recorded_as_on_nccl")) {
    if (!entry.is_directory()) {
      continue;
    }
    ++scripts;
    CAPTURE(entry.path().filename().string());
    const test::Shell shell;
    const std::string recorded = "'" + (entry.path() / "recorded.json").string() + "'";
    CHECK(shell.rollcall("export --flight-recorder dumps " + recorded).code == 0);
    const auto real = calls_in((entry.path() / "pickle").string());
    CHECK(real.size() == 2);
    CHECK(calls_in(shell.path("dumps")) == real);
    const Diagnosis diagnosis =
        check::judge_dump(traces::read_recordings({(entry.path() / "pickle").string()}).job);
    CHECK(diagnosis.finding.kind == FindingKind::no_fault);
  }
  CHECK(scripts == 8);
}

}  // namespace rollcall::scenario::recorded_calls_test
