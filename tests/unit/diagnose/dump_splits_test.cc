// Judges all-to-alls that do not end: recorders store how much each rank passes, and not how it is split.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/unit/diagnose/dump_builder.h"

namespace rollcall::check::dump_splits_test {
namespace {

using test::DumpBuilder;

using Shapes = std::vector<std::vector<std::int64_t>>;

DumpRecord& all_to_all(DumpBuilder& dumps, Rank rank, const Shapes& inputs, const Shapes& outputs,
                       bool finished) {
  DumpCall call;
  call.backend = "nccl";
  call.op = "all_to_all";
  call.inputs = inputs;
  call.outputs = outputs;
  call.input_dtypes.assign(inputs.size(), "Float");
  call.output_dtypes.assign(outputs.size(), "Float");
  return dumps.add(rank, call, finished, 0);
}

// Four ranks reduce, and exchange these elements. Those in `done` see the end of it and wait in the next call.
struct Exchange {
  std::vector<std::int64_t> in;
  std::vector<std::int64_t> out;
  RankSet done{};
  bool starts_are_recorded = false;
};

Diagnosis judged(const Exchange& exchange) {
  DumpBuilder dumps(4);
  for (Rank rank = 0; rank < 4; ++rank) {
    dumps.call(rank, "all_reduce", 100);
    const auto at = static_cast<std::size_t>(rank);
    const bool is_done = exchange.done.contains(rank);
    DumpRecord& record = all_to_all(dumps, rank, {{exchange.in[at]}}, {{exchange.out[at]}}, is_done);
    if (exchange.starts_are_recorded && !is_done) {
      record.state = DumpRecord::State::started;
    }
    dumps.call(rank, "all_reduce", 100, false);
  }
  dumps.everyone_silent();
  return judge_dump(dumps.job);
}

bool settles(const Diagnosis& diagnosis, const std::string& text) {
  for (const std::string& line : diagnosis.would_settle) {
    if (line.find(text) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("who sends more than others take out of an all-to-all is to blame, and not a device", "[dump]") {
  // The pairs of ranks 0 and 3 fit, so the call is over for them.
  const Diagnosis diagnosis = judged({{800, 900, 800, 800}, {800, 800, 800, 800}, {0, 3}});
  CHECK(diagnosis.finding.kind == FindingKind::split_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{1});
  CHECK(diagnosis.confidence == Diagnosis::Confidence::medium);  // rank 2 may take out too little
  CHECK(diagnosis.alternatives.empty());
  CHECK_THAT(diagnosis.finding.headline, Contains("rank 1 passes other sizes to all_to_all #2"));
  CHECK_THAT(diagnosis.finding.cause, Contains("rank 1 puts 900 elements in and takes 800 out"));
}

TEST_CASE("a rank whose sizes differ from those of all others is suspected, even if the sums fit", "[dump]") {
  const Diagnosis diagnosis = judged({{800, 800, 1200, 800}, {800, 800, 1200, 800}});
  CHECK(diagnosis.finding.kind == FindingKind::split_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{2});
  CHECK(diagnosis.confidence == Diagnosis::Confidence::medium);
  CHECK(settles(diagnosis, "split sizes"));
}

TEST_CASE("sums that do not fit are a mistake, also where no rank stands out", "[dump]") {
  const Diagnosis diagnosis = judged({{700, 900, 800, 850}, {800, 650, 900, 800}});
  CHECK(diagnosis.finding.kind == FindingKind::split_mismatch);
  CHECK(diagnosis.finding.tie);
  CHECK(diagnosis.finding.culprits == RankSet::range(0, 3));
  CHECK_FALSE(diagnosis.confidence == Diagnosis::Confidence::high);
}

TEST_CASE("splits that may not fit are never ruled out", "[dump]") {
  const std::vector<std::int64_t> even(4, 800);
  for (const Exchange& exchange :
       {Exchange{{700, 900, 800, 850}, {800, 850, 900, 700}, {}, true},       // all wait
        Exchange{{700, 900, 800, 850}, {800, 850, 900, 700}, {}, false},      // and starts are not recorded
        Exchange{{700, 900, 800, 850}, {800, 850, 900, 700}, {0, 3}, false},  // it is over for some
        Exchange{even, even, {}, true}, Exchange{even, even, {0, 3}, false}}) {
    const Diagnosis diagnosis = judged(exchange);
    CAPTURE(to_string(diagnosis.finding.kind), diagnosis.finding.headline);
    CHECK_FALSE(diagnosis.confidence == Diagnosis::Confidence::high);
    CHECK(settles(diagnosis, "split sizes"));
    CHECK_THAT(diagnosis.finding.headline + diagnosis.finding.cause,
               !Contains("equal arguments") && !Contains("not to blame"));
  }
}

TEST_CASE("of lists of tensors, the parts that do not fit are named", "[dump]") {
  DumpBuilder dumps(4);
  for (Rank rank = 0; rank < 4; ++rank) {
    const std::int64_t first = rank == 3 ? 5 : 2;  // what rank 3 sends to rank 0
    all_to_all(dumps, rank, {{first}, {2}, {2}, {2}}, {{2}, {2}, {2}, {2}}, rank == 1 || rank == 2);
    dumps.call(rank, "all_reduce", 100, false);
  }
  dumps.everyone_silent();
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::split_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{3});
  REQUIRE_FALSE(diagnosis.evidence.empty());
  CHECK(diagnosis.evidence.front() == "rank 3 sends 5 elements to rank 0, which expects 2");
}

TEST_CASE("sizes prove nothing where nothing lists who takes part", "[dump]") {
  DumpBuilder dumps(4);
  dumps.job.groups.front().is_by_use = true;
  for (Rank rank = 0; rank < 4; ++rank) {
    all_to_all(dumps, rank, {{rank == 1 ? 900 : 800}}, {{800}}, false);
  }
  dumps.everyone_silent();
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind != FindingKind::split_mismatch);
  CHECK_FALSE(diagnosis.confidence == Diagnosis::Confidence::high);
}

TEST_CASE("an uneven all-to-all whose end one rank has not noticed is over if a later call is", "[dump]") {
  DumpBuilder dumps(4);
  for (Rank rank = 0; rank < 4; ++rank) {
    const bool notices = rank != 2;
    all_to_all(dumps, rank, {{700 + rank}}, {{703 - rank}}, notices);
    dumps.call(rank, "all_reduce", 100, notices);
    if (rank != 1) {
      dumps.call(rank, "all_reduce", 100, false);
    }
  }
  dumps.everyone_silent();
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CAPTURE(to_string(diagnosis.finding.kind), diagnosis.finding.headline);
  CHECK(diagnosis.finding.kind != FindingKind::split_mismatch);
}

}  // namespace rollcall::check::dump_splits_test
