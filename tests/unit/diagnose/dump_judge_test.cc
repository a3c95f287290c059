#include "sim/diagnose/dump_judge.h"

#include "tests/catch.h"
#include "tests/unit/diagnose/dump_builder.h"

namespace rollcall::check::dump_judge_test {
namespace {

using test::DumpBuilder;

// Every rank made `count` equal calls on the world, and all finished.
void common_past(DumpBuilder& dumps, int count) {
  for (const RankDump& dump : dumps.job.ranks) {
    for (int i = 0; i < count; ++i) {
      dumps.call(dump.rank, "all_reduce", i % 2 == 0 ? 4096 : 1);
    }
  }
}

}  // namespace

TEST_CASE("a job whose calls are all finished has no fault", "[dump]") {
  DumpBuilder dumps(4);
  common_past(dumps, 8);
  CHECK(judge_dump(dumps.job).finding.kind == FindingKind::no_fault);
}

TEST_CASE("a job caught between two calls is not said to hang", "[dump]") {
  DumpBuilder dumps(4);
  common_past(dumps, 8);
  dumps.call(0, "all_reduce", 4096, false);
  const Diagnosis running = judge_dump(dumps.job);
  CHECK(running.finding.kind == FindingKind::no_fault);
  CHECK_FALSE(running.would_settle.empty());
}

TEST_CASE("calls that peers have seen finish and most ranks have not yet are those of a moving job",
          "[dump]") {
  DumpBuilder dumps(4);
  common_past(dumps, 8);
  for (const Rank rank : {0, 1, 3}) {
    dumps.dump_of(rank).records.back().state = DumpRecord::State::scheduled;
    dumps.call(rank, "all_reduce", 4096, false);
  }
  CHECK(judge_dump(dumps.job).finding.kind == FindingKind::no_fault);
}

TEST_CASE("that most of a job waits is a hang, shown by a long silence and presumed without", "[dump]") {
  DumpBuilder dumps(4);
  common_past(dumps, 8);
  for (const Rank rank : {0, 1, 3}) {
    dumps.call(rank, "all_reduce", 4096, false);
    dumps.silence(rank, -500'000);  // the last event is half a call time after the last call
  }
  const Diagnosis presumed = judge_dump(dumps.job);
  CHECK(presumed.finding.kind == FindingKind::stuck_host);
  CHECK(presumed.confidence == Diagnosis::Confidence::low);
  CHECK_FALSE(is_alarm(presumed));
  CHECK_THAT(presumed.would_settle.back(), Contains("second dump"));

  dumps.everyone_silent();
  const Diagnosis hung = judge_dump(dumps.job);
  CHECK(hung.finding.kind == FindingKind::stuck_host);
  CHECK(hung.confidence == Diagnosis::Confidence::high);
  CHECK(is_alarm(hung));
  CHECK(hung.finding.culprits == RankSet{2});
  CHECK(hung.finding.at->call.seq == 9);
  CHECK(hung.finding.at->waiting == RankSet{0, 1, 3});
}

TEST_CASE("a rank that others always wait for is slow, not stuck, as long as no silence shows more",
          "[dump]") {
  DumpBuilder dumps(4);
  for (int step = 0; step < 8; ++step) {
    for (Rank rank = 0; rank < 4; ++rank) {
      dumps.call(rank, "all_reduce", 4096).duration_ms = rank == 2 ? 0.1F : 3.0F;
    }
  }
  for (const Rank rank : {0, 1, 3}) {
    dumps.call(rank, "all_reduce", 4096, false);
  }
  CHECK(judge_dump(dumps.job).finding.kind == FindingKind::straggler);
  dumps.everyone_silent();
  CHECK(judge_dump(dumps.job).finding.kind == FindingKind::stuck_host);
}

TEST_CASE("a counter that runs ahead by a whole round of the loop is off, not early", "[dump]") {
  DumpBuilder dumps(4);
  common_past(dumps, 8);
  for (const Rank rank : {0, 1, 3}) {
    dumps.call(rank, "all_reduce", 4096, false);
  }
  for (DumpRecord& record : dumps.dump_of(2).records) {
    record.collective_seq += 2;  // its calls also look like those of the other ranks there
  }
  dumps.everyone_silent();
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{2});
}

TEST_CASE("coalesced calls are compared part by part", "[dump]") {
  DumpBuilder dumps(3);
  common_past(dumps, 4);
  for (Rank rank = 0; rank < 3; ++rank) {
    DumpRecord& part = dumps.call(rank, "_all_gather_base", rank == 1 ? 17 : 16, false);
    const std::int64_t seq = part.collective_seq;
    dumps.call(rank, "coalesced", 0, false).collective_seq = seq;
  }
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::size_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{1});
}

TEST_CASE("a call that outlived its timeout shows a standstill", "[dump]") {
  DumpBuilder dumps(2);
  common_past(dumps, 8);
  dumps.call(0, "all_reduce", 4096, false).retired = true;
  dumps.silence(0, -500'000);
  CHECK(judge_dump(dumps.job).finding.culprits == RankSet{1});
}

TEST_CASE("a call that finished after its timeout did so because it was aborted", "[dump]") {
  DumpBuilder dumps(4);
  common_past(dumps, 8);
  for (const Rank rank : {0, 1, 3}) {
    DumpRecord& record = dumps.call(rank, "all_reduce", 4096);
    record.completed_ns = record.created_ns + 700'000'000'000;
  }
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{2});
}

TEST_CASE("the victims of a wait across groups are no culprits", "[dump]") {
  DumpBuilder dumps(4);
  const std::uint32_t left = dumps.group("1", "tp", {0, 1});
  const std::uint32_t right = dumps.group("2", "tp", {2, 3});
  for (Rank rank = 0; rank < 4; ++rank) {
    for (int i = 0; i < 4; ++i) {
      dumps.call(rank, "all_gather", 64, true, rank < 2 ? left : right);
      dumps.call(rank, "all_reduce", 4096);
    }
  }
  dumps.call(2, "all_gather", 64, false, right);
  for (const Rank rank : {0, 1}) {
    dumps.call(rank, "all_gather", 64, true, left);
    dumps.call(rank, "all_reduce", 4096, false);
  }
  dumps.everyone_silent();
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.culprits == RankSet{3});
  CHECK(diagnosis.group_name == "2");
  REQUIRE(diagnosis.finding.chain.size() == 2);
  CHECK(diagnosis.finding.chain[0] == "ranks 0-1 wait in all_reduce #5 on default_pg for ranks 2-3");
  CHECK(diagnosis.finding.chain[1] == "rank 2 waits in all_gather #5 on tp for rank 3");
}

TEST_CASE("a rank without a dump is to blame only when nobody else is", "[dump]") {
  DumpBuilder dumps(4);
  common_past(dumps, 8);
  for (const Rank rank : {0, 1, 2}) {
    dumps.call(rank, "all_reduce", 4096, false);
  }
  dumps.everyone_silent();
  JobDump without_victim = dumps.job;
  without_victim.ranks.erase(without_victim.ranks.begin());
  CHECK(judge_dump(without_victim).finding.culprits == RankSet{3});
  JobDump without_culprit = dumps.job;
  without_culprit.ranks.pop_back();
  const Diagnosis diagnosis = judge_dump(without_culprit);
  CHECK(diagnosis.finding.kind == FindingKind::crashed_rank);
  CHECK(diagnosis.finding.culprits == RankSet{3});
}

TEST_CASE("between two ranks the one that breaks with its habit is odd", "[dump]") {
  DumpBuilder dumps(2);
  common_past(dumps, 8);
  dumps.call(0, "all_reduce", 4096, false);
  dumps.call(1, "all_reduce", 2048, false);
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::size_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{1});
  CHECK_FALSE(diagnosis.finding.tie);
  CHECK(diagnosis.confidence == Diagnosis::Confidence::medium);
}

TEST_CASE("between two ranks without a past nothing decides", "[dump]") {
  DumpBuilder dumps(2);
  dumps.call(0, "all_reduce", 4096, false);
  dumps.call(1, "broadcast", 4096, false);
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::op_type_mismatch);
  CHECK(diagnosis.finding.tie);
  CHECK(diagnosis.finding.culprits == RankSet{0, 1});
}

TEST_CASE("a call left out is found by the calls after it", "[dump]") {
  DumpBuilder dumps(3);
  common_past(dumps, 6);
  for (const Rank rank : {0, 2}) {
    for (const std::int64_t numel : {64, 7, 8, 9}) {
      dumps.call(rank, "all_reduce", numel, false);
    }
  }
  for (const std::int64_t numel : {7, 8, 9}) {
    dumps.call(1, "all_reduce", numel, false);
  }
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::skipped_collective);
  CHECK(diagnosis.finding.culprits == RankSet{1});
  CHECK(diagnosis.finding.at->call.seq == 7);
}

TEST_CASE("a call too many is found by the calls after it", "[dump]") {
  DumpBuilder dumps(3);
  common_past(dumps, 6);
  for (const Rank rank : {0, 1, 2}) {
    for (const std::int64_t numel : {64, 7, 8, 9}) {
      if (rank == 2 && numel == 7) {
        dumps.call(rank, "all_reduce", 500, false);
      }
      dumps.call(rank, "all_reduce", numel, numel == 64);
    }
  }
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::extra_collective);
  CHECK(diagnosis.finding.culprits == RankSet{2});
  CHECK(diagnosis.finding.at->call.seq == 8);
}

TEST_CASE("one rank in a call that all others are done without is the culprit itself", "[dump]") {
  DumpBuilder dumps(4);
  common_past(dumps, 8);
  dumps.call(0, "barrier", 1, false);
  dumps.everyone_silent();
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::extra_collective);
  CHECK(diagnosis.finding.culprits == RankSet{0});
}

TEST_CASE("counters that are off by a constant are lined up by what was called", "[dump]") {
  DumpBuilder dumps(4);
  for (Rank rank = 0; rank < 4; ++rank) {
    for (const std::int64_t numel : {1, 2, 3, 4, 5, 6, 7, 8}) {
      dumps.call(rank, "all_reduce", numel);
    }
    dumps.call(rank, "all_reduce", 9, rank == 9);
  }
  for (DumpRecord& record : dumps.dump_of(2).records) {
    record.collective_seq += 5;  // batches advanced it, and have left the ring
  }
  dumps.dump_of(2).from_start = false;
  dumps.dump_of(3).records.pop_back();
  dumps.everyone_silent();
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{3});
  CHECK(diagnosis.finding.at->call.seq == 9);
}

TEST_CASE("one counter for all groups is replaced by counting each group's calls", "[dump]") {
  DumpBuilder dumps(4);
  const std::uint32_t pair = dumps.group("1", "tp", {0, 1});
  for (Rank rank = 0; rank < 4; ++rank) {
    for (int i = 0; i < 6; ++i) {
      if (rank < 2) {
        dumps.call(rank, "all_gather", 64, true, pair);
      }
      if (rank != 3 || i < 5) {
        dumps.call(rank, "all_reduce", 4096, i < 5);
      }
    }
    std::int64_t counter = 0;  // as TorchComms counts
    for (DumpRecord& record : dumps.dump_of(rank).records) {
      record.collective_seq = counter++;
    }
  }
  dumps.everyone_silent();
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{3});
}

TEST_CASE("two ranks that send to each other first wait in a cycle", "[dump]") {
  DumpBuilder dumps(2);
  for (const Rank rank : {0, 1}) {
    dumps.message(rank, "send", 1 - rank, false);
    dumps.message(rank, "recv", 1 - rank, false);
  }
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::p2p_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{0, 1});
  CHECK(diagnosis.finding.tie);
}

TEST_CASE("where most ranks have nothing unfinished, none of them is certainly stuck", "[dump]") {
  for (const bool others_wait : {true, false}) {
    DumpBuilder dumps(8);
    const std::uint32_t pair = dumps.group("1", "ep", {2, 3});
    const std::uint32_t others = dumps.group("2", "dp", {0, 1, 4, 5, 6, 7});
    for (Rank rank = 0; rank < 8; ++rank) {
      dumps.call(rank, "all_reduce", 100);
      dumps.call(rank, "all_reduce", 200);
    }
    dumps.call(3, "all_reduce", 300, false, pair);
    for (const Rank rank : {0, 1, 4, 5, 6, 7}) {
      if (others_wait) {
        dumps.call(rank, "all_reduce", 400, true, others);
        dumps.call(rank, "all_reduce", 500, false);
      }
    }
    dumps.everyone_silent();
    const Diagnosis diagnosis = judge_dump(dumps.job);
    CAPTURE(others_wait, diagnosis.finding.headline);
    CHECK(diagnosis.finding.culprits == RankSet{2});
    CHECK((diagnosis.confidence == Diagnosis::Confidence::high) == others_wait);
  }
}

TEST_CASE("a rank that leaves a message out of a step is known by earlier steps, and not by a loop that ends",
          "[dump]") {
  for (const int steps : {1, 4}) {
    DumpBuilder dumps(3);
    const std::uint32_t pair = dumps.group("1", "dp", {1, 2});
    for (int step = 0; step < steps; ++step) {
      const bool is_last = step == steps - 1;
      for (int i = 0; i < 4; ++i) {
        const bool is_left_out = is_last && i == 3;
        dumps.message(0, "send", 1, !is_left_out);
        if (!is_left_out) {
          dumps.message(1, "recv", 0);
        }
      }
      for (const Rank rank : {1, 2}) {
        dumps.call(rank, "all_reduce", 100, true, pair);
      }
    }
    dumps.everyone_silent();
    const Diagnosis diagnosis = judge_dump(dumps.job);
    CAPTURE(steps, diagnosis.finding.headline);
    CHECK(diagnosis.finding.culprits == RankSet{1});
    CHECK((diagnosis.confidence == Diagnosis::Confidence::high) == (steps > 1));
  }
}

TEST_CASE("a device that starts nothing while its peers have started is stuck", "[dump]") {
  DumpBuilder dumps(3);
  common_past(dumps, 4);
  for (Rank rank = 0; rank < 3; ++rank) {
    dumps.dump_of(rank).records.front().started_ns = 1;  // the recorder keeps starts
    DumpRecord& record = dumps.call(rank, "all_reduce", 64, false);
    record.state = rank == 1 ? DumpRecord::State::scheduled : DumpRecord::State::started;
  }
  dumps.everyone_silent();
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::stuck_device);
  CHECK(diagnosis.finding.culprits == RankSet{1});
}

TEST_CASE("the rank that came to a call after the others' timeout is late", "[dump]") {
  const auto judged = [](std::vector<Rank> paused) {
    DumpBuilder builder(3);
    for (Rank rank = 0; rank < 3; ++rank) {
      builder.call(rank, "all_reduce");
      DumpRecord& last = builder.call(rank, "all_reduce", 1, false);
      last.timeout_ms = 4000;
      last.created_ns += std::ranges::count(paused, rank) > 0 ? 8'000'000'000 : 0;
    }
    builder.job.is_known_to_hang = true;
    return judge_dump(builder.job);
  };
  const Diagnosis late = judged({1});
  CHECK(late.finding.kind == FindingKind::watchdog_timeout);
  CHECK(late.finding.culprits == RankSet{1});
  CHECK(late.finding.headline ==
        "rank 1 came to all_reduce #2 on default_pg 8 s after its call before that; the others wait 4 s");
  // If several paused, nobody waited that long for one of them.
  CHECK(judged({1, 2}).finding.kind == FindingKind::stall_all_arrived);
  CHECK(judged({}).finding.kind == FindingKind::stall_all_arrived);
}

TEST_CASE("an all-to-all may differ in shape from rank to rank", "[dump]") {
  DumpBuilder dumps(3);
  common_past(dumps, 4);
  for (Rank rank = 0; rank < 3; ++rank) {
    dumps.call(rank, "all_to_all", 10 + rank, false);
  }
  dumps.everyone_silent();
  CHECK(judge_dump(dumps.job).finding.kind == FindingKind::stall_all_arrived);
}

TEST_CASE("of a gather and a scatter only the root has the lists, and what all ranks pass has to agree",
          "[dump]") {
  for (const std::string op : {"gather", "scatter"}) {
    for (const std::int64_t part_of_rank_1 : {3, 4}) {
      DumpBuilder dumps(3);
      common_past(dumps, 4);
      for (Rank rank = 0; rank < 3; ++rank) {
        DumpCall call;
        call.backend = "nccl";
        call.op = op;
        auto& common = op == "gather" ? call.inputs : call.outputs;
        auto& list = op == "gather" ? call.outputs : call.inputs;
        common = {{rank == 1 ? part_of_rank_1 : 3}};
        if (rank == 0) {
          list = {{3, 3}};
        }
        call.input_dtypes.assign(call.inputs.size(), "Float");
        call.output_dtypes.assign(call.outputs.size(), "Float");
        dumps.add(rank, call, false, 0);
      }
      dumps.everyone_silent();
      const Finding finding = judge_dump(dumps.job).finding;
      CAPTURE(op, finding.headline);
      CHECK(finding.kind ==
            (part_of_rank_1 == 3 ? FindingKind::stall_all_arrived : FindingKind::size_mismatch));
      CHECK((part_of_rank_1 == 3 || finding.culprits == RankSet{1}));
    }
  }
}

TEST_CASE("a slow rank is one that others wait for and that waits for nobody", "[dump]") {
  DumpBuilder dumps(4);
  const std::uint32_t left = dumps.group("1", "tp", {0, 1});
  const std::uint32_t right = dumps.group("2", "tp", {2, 3});
  for (int step = 0; step < 6; ++step) {
    for (Rank rank = 0; rank < 4; ++rank) {
      // Rank 3 is late to its pair; both ranks of the pair are then late to the world.
      dumps.call(rank, "all_gather", 64, true, rank < 2 ? left : right).duration_ms = rank == 2 ? 3.0F : 0.1F;
      dumps.call(rank, "all_reduce", 64).duration_ms = rank < 2 ? 3.0F : 0.1F;
    }
  }
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::straggler);
  CHECK(diagnosis.finding.culprits == RankSet{3});
}

}  // namespace rollcall::check::dump_judge_test
