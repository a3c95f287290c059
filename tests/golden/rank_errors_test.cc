// What three real ranks print when one of them raises (tests/data/rank_errors): the rank, the error where it began, and
// what to do about it, whatever PyTorch it is.

#include <filesystem>
#include <string>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "traces/formats/recordings.h"

namespace rollcall::traces::rank_errors_test {
namespace {

namespace fs = std::filesystem;

struct Mistake {
  const char* name;
  const char* cause;
  const char* advice;
  FindingKind kind = FindingKind::crashed_rank;
};

constexpr Mistake mistakes[] = {
    {"worker_killed", "DataLoader worker", "what ended the process that loads data"},
    {"worker_bus_error", "DataLoader worker", "/dev/shm"},
    {"worker_exits", "DataLoader worker", "num_workers=0"},
    {"worker_raises", "OSError: corrupt jpeg (in DataLoader worker process 1)", "fix that error first"},
    {"leaves_out", "Expected to have finished reduction", "find_unused_parameters=True"},
    {"uses_twice", "Expected to mark a variable ready only once.", "use_reentrant=False"},
    {"memory", "can't allocate memory: you tried to allocate 562949953421312 bytes.", "no memory left"},
    {"many_files", "[Errno 24] Too many open files: '/job/train.py'", "ulimit -n"},
    {"full_disk", "[Errno 28] No space left on device", "disk of this rank"},
    {"raises_from",
     "RuntimeError: the data set has no statistics (raised from FileNotFoundError: [Errno 2] No such file or "
     "directory: 'no/such/file.pt')",
     "fix that error first"},
    // All ranks raise these, and each names another one.
    {"has_a_layer_more", "how many parameters need gradients", "the same model on every rank",
     FindingKind::size_mismatch},
    {"freezes_a_layer", "how many parameters need gradients", "frozen parameters",
     FindingKind::size_mismatch},
};

}  // namespace

TEST_CASE("the log of a rank that raised says where its error began, and what to do about it",
          "[job-log][real-dumps]") {
  for (const char* release : {"1.13", "2.6", "2.14"}) {
    for (const Mistake& mistake : mistakes) {
      CAPTURE(release, mistake.name);
      const fs::path folder =
          fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/rank_errors" / release / mistake.name;
      const Diagnosis diagnosis = check::judge_dump(read_recordings({folder.string()}).job);
      CHECK(diagnosis.finding.kind == mistake.kind);
      CHECK(diagnosis.finding.culprits == RankSet{1});
      CHECK_THAT(diagnosis.finding.cause, Contains(mistake.cause));
      CHECK_THAT(diagnosis.finding.advice, Contains(mistake.advice));
    }
  }
}

TEST_CASE("what CUDA says of a rank on NCCL has advice as well", "[job-log][real-dumps]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data";
  const auto advice_in = [&data](const char* log) {
    return check::judge_dump(read_recordings({(data / log).string()}).job).finding.advice;
  };
  CHECK_THAT(advice_in("nccl_jobs/memory_runs_out/log"), Contains("`rollcall predict`"));
  CHECK_THAT(advice_in("nccl_jobs/index_out_of_range/log"), Contains("an index that is out of range"));
  CHECK_THAT(advice_in("nccl_libraries/ddp.unused/log"), Contains("find_unused_parameters=True"));
}

TEST_CASE("an error in the log of a rank without a dump is why it has none",
          "[flight-recorder][real-dumps]") {
  const fs::path folder = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/nccl_jobs/memory_runs_out";
  const Diagnosis diagnosis =
      check::judge_dump(read_recordings({(folder / "pickle").string(), (folder / "log").string()}).job);
  CHECK(diagnosis.finding.culprits == RankSet{3});
  CHECK_THAT(diagnosis.finding.headline, Contains("rank 3 left no dump"));
  CHECK_THAT(diagnosis.finding.cause, StartsWith("torch.OutOfMemoryError: CUDA out of memory."));
  CHECK_THAT(diagnosis.finding.advice, Contains("`rollcall predict`"));
  CHECK(diagnosis.would_settle.empty());  // the log is there
}

}  // namespace rollcall::traces::rank_errors_test
