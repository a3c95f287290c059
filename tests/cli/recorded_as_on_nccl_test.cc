// Scripts on Lightning, Transformers, Accelerate, FSDP2 and others: what `record` writes for them, against the Flight
// Recorder dumps of the same scripts on two real ranks with NCCL (tests/data/recorded_as_on_nccl).

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/shell.h"
#include "traces/formats/recordings.h"

namespace rollcall::test {
namespace {

namespace fs = std::filesystem;
using check::DumpCall;
using check::JobDump;

std::int64_t numel_of(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::int64_t total = 0;
  for (const std::vector<std::int64_t>& shape : shapes) {
    std::int64_t numel = 1;
    for (const std::int64_t extent : shape) {
      numel *= extent;
    }
    total += numel;
  }
  return total;
}

// Bytes are pickled objects, which name devices and files, so their number may differ.
std::string line_of(const DumpCall& call) {
  const bool is_pickled = call.dtype() == "Byte";
  return is_pickled ? fmt::format("{} of bytes", call.op)
                    : fmt::format("{} of {} {} -> {} {}", call.op, numel_of(call.inputs), call.input_dtypes,
                                  numel_of(call.outputs), call.output_dtypes);
}

std::map<Rank, std::vector<std::string>> calls_in(const std::string& folder) {
  const JobDump job = traces::read_recordings({folder}).job;
  std::map<Rank, std::vector<std::string>> calls;
  for (const check::RankDump& dump : job.ranks) {
    for (const check::DumpRecord& record : dump.records) {
      calls[dump.rank].push_back(line_of(job.calls[record.call]));
    }
  }
  return calls;
}

}  // namespace

TEST_CASE("scripts on libraries are recorded with the calls that they make on real GPUs", "[real-dumps]") {
  std::size_t scripts = 0;
  for (const auto& entry : fs::directory_iterator(ROLLCALL_SOURCE_DIR "/tests/data/recorded_as_on_nccl")) {
    if (!entry.is_directory()) {
      continue;
    }
    ++scripts;
    CAPTURE(entry.path().filename().string());
    const Shell shell;
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

}  // namespace rollcall::test
