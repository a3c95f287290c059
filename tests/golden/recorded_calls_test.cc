// The Flight Recorder of simulated Gloo ranks writes what that of real ones does: one program, dumped by torch
// 2.14.1 and exported from its recorded scenario.

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/core.h>

#include "scenarios/recordings/recorded_run.h"
#include "tests/catch.h"
#include "traces/formats/recordings.h"

namespace rollcall::scenario {
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

}  // namespace rollcall::scenario
