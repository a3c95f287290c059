// Join's hooks, recognized by the stacks of ended calls.

#include <string>
#include <vector>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/unit/diagnose/dump_builder.h"

namespace rollcall::check::dump_join_test {
namespace {

using test::DumpBuilder;

constexpr const char* join = "/x/torch/distributed/algorithms/join.py";

// Ranks under Join whose iteration calls are all_reduces of one element, like Join's own.
class JoinedJob {
 public:
  explicit JoinedJob(Rank world) : dumps_(world) {
    notice_ = stack({{"notify_join_context", join, 1}, {"step", "train.py", 3}});
    iteration_ = stack({{"step", "train.py", 4}});
    count_ = stack({{"_get_num_nonjoined_procs", join, 2}, {"__exit__", join, 3}, {"train", "train.py", 9}});
    shadow_ = stack({{"main_hook", "hook.py", 1}, {"__exit__", join, 3}, {"train", "train.py", 9}});
  }

  void iterate(Rank rank, int times) {
    for (int i = 0; i < times; ++i) {
      call(rank, notice_);
      call(rank, iteration_);
      call(rank, iteration_);
    }
  }
  void shadow(Rank rank, int calls) {
    call(rank, count_);
    for (int i = 0; i < calls; ++i) {
      call(rank, shadow_);
    }
  }

  const JobDump& job() const { return dumps_.job; }

 private:
  std::uint32_t stack(DumpStack frames) {
    dumps_.job.stacks.push_back(std::move(frames));
    return static_cast<std::uint32_t>(dumps_.job.stacks.size() - 1);
  }
  void call(Rank rank, std::uint32_t stack) { dumps_.call(rank, "all_reduce", 1).stack = stack; }

  DumpBuilder dumps_;
  std::uint32_t notice_ = 0;
  std::uint32_t iteration_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t shadow_ = 0;
};

}  // namespace

TEST_CASE("a hook that makes too few calls is found though every call finishes", "[dump]") {
  JoinedJob wrong(3);
  wrong.iterate(0, 2);
  wrong.shadow(0, 1);
  wrong.shadow(0, 1);
  wrong.iterate(1, 3);
  wrong.iterate(2, 3);
  const Diagnosis diagnosis = judge_dump(wrong.job());
  CHECK(diagnosis.finding.kind == FindingKind::join_shadow_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{0});
  CHECK(diagnosis.finding.at->call.seq == 9);
  CHECK_THAT(diagnosis.finding.cause,
             Contains("counts who has inputs") && Contains("a call of an iteration"));
}

TEST_CASE("a hook that repeats an iteration's calls is no finding", "[dump]") {
  JoinedJob right(3);
  right.iterate(0, 2);
  right.shadow(0, 2);
  right.iterate(1, 3);
  right.iterate(2, 3);
  CHECK(judge_dump(right.job()).finding.kind == FindingKind::no_fault);
}

}  // namespace rollcall::check::dump_join_test
