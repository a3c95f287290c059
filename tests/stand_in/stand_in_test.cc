// rollcall's NCCL backend on the stand-in of tests/stand_in: every shipped scenario for nccl, the cases of `doctor
// --prove`, and the mistakes for which the stand-in ends a process. All of it proves rollcall's side of the API, and
// nothing about NCCL.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "real/backends/doctor.h"
#include "real/nccl/gpu_probe.h"
#include "real/nccl/nccl_api.h"
#include "real/process/forked_work.h"
#include "scenarios/compare/claims.h"
#include "scenarios/compare/simulated_facts.h"
#include "scenarios/compare/times.h"
#include "scenarios/measured/bench_table.h"
#include "scenarios/measured/calibrate.h"
#include "scenarios/prove/prove.h"
#include "scenarios/run/real_run.h"
#include "sim/cost/group_cost.h"
#include "tests/catch.h"
#include "tests/folder.h"
#include "tests/shipped_scenarios.h"
#include "tests/stand_in/use_stand_in.h"

namespace rollcall::stand_in_test {
namespace {

using compare::Claim;

using StandIn = test::UseStandIn;

// Scenarios whose outcome on the stand-in differs from the simulator's, and the reason why it may.
struct Exception {
  std::string_view name;
  std::string_view because;
};

constexpr std::string_view one_gpu_each = "real ranks take a GPU each, so that no two of them have the same";
constexpr std::string_view held_up =
    "a first collective holds up its host on real ranks alone: decision 0167";
constexpr std::string_view too_large = "it moves too much for a test";

constexpr Exception exceptions[] = {
    {"everyone_on_gpu_0", one_gpu_each},
    {"all-ranks-on-gpu0", one_gpu_each},
    {"download-barrier-before-set-device", one_gpu_each},
    {"opposite-sends-on-two-communicators", held_up},
    {"three-communicators-reversed", held_up},
    {"new_group_local", "real ranks make groups together: use_local_synchronization is only simulated"},
    {"ddp_distributed_sampler", too_large},
    {"ddp_sharded_dataset", too_large},
    {"ddp_sharded_dataset_join", too_large},
    {"mirrored_strategy", too_large},
    {"multi_worker_mirrored_strategy", too_large},
    {"context_parallel", too_large},
    {"pipeline_dual_pipe_v", too_large},
    {"ddp_zero_even_inputs", too_large},
    {"fsdp", too_large},
    {"fsdp_hybrid", too_large},
    {"fsdp_uneven_inputs", too_large},
    {"fully_shard", too_large},
    {"fully_shard_hybrid", too_large},
    {"join_costs", too_large},
    {"dropped_batches", too_large},
};

const Exception* exception_of(const std::filesystem::path& path) {
  const auto found = std::ranges::find(exceptions, path.stem().string(), &Exception::name);
  return found == std::end(exceptions) ? nullptr : found;
}

// Returns the claims that differ, one per line.
std::string differences(const std::filesystem::path& path) {
  const scenario::Scenario loaded = scenario::load_scenario(path.string(), {.backend = "nccl"});
  const compare::Facts simulated = compare::simulate(loaded).facts;
  const real::Run run =
      scenario::run_real(loaded, {.backend = "nccl", .deadline = 20 * second, .time_scale = 0});
  std::string text;
  for (const Claim& claim : compare::compare(simulated, compare::facts_of_run(run), "nccl")) {
    if (claim.judgement == Claim::Judgement::differs) {
      text += fmt::format("{}: {}: simulated {}; real {}; {}\n", path.filename().string(), claim.about,
                          claim.simulated, claim.real, claim.because);
    }
  }
  return text;
}

// Returns the scenarios for nccl with few ranks.
std::vector<std::filesystem::path> nccl_scenarios(const std::vector<std::filesystem::path>& all) {
  constexpr Rank most_ranks = 8;
  std::vector<std::filesystem::path> paths;
  for (const std::filesystem::path& path : all) {
    const scenario::Scenario loaded = scenario::load_scenario(path.string(), {});
    if (loaded.options.backend == "nccl" && loaded.options.world_size <= most_ranks) {
      paths.push_back(path);
    }
  }
  return paths;
}

// Runs several at a time: ranks that hang take time, but no processor.
std::string differences(const std::vector<std::filesystem::path>& paths) {
  constexpr std::size_t at_a_time = 8;
  std::string text;
  std::vector<std::unique_ptr<real::ForkedWork>> shares;
  for (std::size_t share = 0; share < at_a_time; ++share) {
    shares.push_back(std::make_unique<real::ForkedWork>(
        [&, share] {
          std::string own;
          for (std::size_t i = share; i < paths.size(); i += at_a_time) {
            own += exception_of(paths[i]) == nullptr ? differences(paths[i]) : "";
          }
          return own;
        },
        real::ForkedWork::Output::shown));
  }
  for (const auto& share : shares) {
    const real::Ending ending = share->ending();
    text +=
        ending.kind == real::Ending::Kind::returned ? ending.result : "a process that compares ended early\n";
  }
  return text;
}

// While it lives, processes that lose their parent become children of this process, so that none can be missed.
class Orphanage {
 public:
  Orphanage() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~Orphanage() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
  Orphanage(const Orphanage&) = delete;
  Orphanage& operator=(const Orphanage&) = delete;

  // A process that was ended a moment ago may not have exited yet.
  bool is_empty() const {
    pid_t child = 0;
    for (int looks = 0; looks < 100 && child >= 0; ++looks) {
      child = ::waitpid(-1, nullptr, WNOHANG);
      if (child == 0) {
        ::usleep(20'000);
      }
    }
    return child < 0 && errno == ECHILD;
  }
};

// Returns the message of a process that the stand-in has ended.
std::string ended_with(const std::function<void()>& body) {
  real::ForkedWork work(
      [&] {
        body();
        return std::string("nothing was said");
      },
      real::ForkedWork::Output::kept);
  const real::Ending ending = work.ending();
  return ending.kind == real::Ending::Kind::killed && ending.number == SIGABRT ? ending.said : ending.result;
}

// The libraries, a stream and some memory of one rank.
struct OneGpu {
  real::CudaApi cuda;
  real::NcclApi nccl;
  cudaStream_t stream = nullptr;
  void* memory = nullptr;

  OneGpu() {
    cuda.set_device(0);
    cuda.stream_create(&stream, cudaStreamNonBlocking);
    cuda.malloc(&memory, 1024);
  }

  ncclComm_t start(int blocking) const {
    ncclUniqueId id = {};
    nccl.get_unique_id(&id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking;
    ncclComm_t communicator = nullptr;
    nccl.comm_init(&communicator, 1, id, 0, &config);
    return communicator;
  }
  void settle(ncclComm_t communicator) const {
    for (ncclResult_t state = ncclInProgress; state == ncclInProgress;) {
      nccl.async_error(communicator, &state);
    }
  }
  void sum(ncclComm_t communicator, void* where, std::size_t count) const {
    nccl.all_reduce(where, where, count, ncclFloat32, ncclSum, communicator, stream);
  }
};

}  // namespace

TEST_CASE("shipped examples for nccl end on the stand-in as simulated", "[fiber][real][stand-in]") {
  const StandIn libraries;
  const auto paths = nccl_scenarios(test::shipped_examples());
  CHECK(!paths.empty());
  CHECK(differences(paths) == "");
}

TEST_CASE("shipped hangs for nccl end on the stand-in as simulated, and leave no process",
          "[fiber][real][stand-in]") {
  const StandIn libraries;
  const Orphanage orphanage;
  const auto paths = nccl_scenarios(test::shipped_hangs());
  CHECK(!paths.empty());
  CHECK(differences(paths) == "");
  CHECK(orphanage.is_empty());
}

TEST_CASE("the cases of doctor --prove agree on the stand-in", "[fiber][real][stand-in]") {
  const StandIn libraries;
  const prove::Plan plan = prove::plan("nccl");
  std::size_t told = 0;
  const prove::Proofs proofs = prove::prove(plan, [&told](const prove::Proofs&) { ++told; });
  CHECK(told == plan.cases);
  CHECK(proofs.proofs.size() == plan.cases);
  for (const prove::Proof& proof : proofs.proofs) {
    INFO(proof.subject << ": " << proof.observed);
    CHECK(proof.judgement != prove::Proof::Judgement::differs);
    CHECK(proof.judgement != prove::Proof::Judgement::cannot_be_judged);
  }
}

TEST_CASE("the doctor takes the stand-in for what it is", "[real][stand-in]") {
  const StandIn libraries;
  CHECK(real::probe_gpus().is_stand_in);
  for (const real::Diagnosis& diagnosis : real::examine()) {
    if (diagnosis.subject == "gpus") {
      CHECK_THAT(diagnosis.meaning, Contains("nothing about NCCL"));
    }
  }
}

TEST_CASE("the stand-in ends a host that touches a GPU's memory", "[real][stand-in]") {
  const StandIn libraries;
  CHECK_THAT(ended_with([] { *static_cast<volatile int*>(OneGpu().memory) = 1; }),
             Contains("stand-in: the host touched memory of a GPU"));
}

TEST_CASE("the stand-in ends a use of a communicator that is in progress", "[real][stand-in]") {
  const StandIn libraries;
  CHECK_THAT(ended_with([] {
               const OneGpu gpu;
               const ncclComm_t communicator = gpu.start(0);
               gpu.settle(communicator);
               gpu.sum(communicator, gpu.memory, 4);
               gpu.sum(communicator, gpu.memory, 4);
             }),
             Contains("while it was ncclInProgress"));
}

TEST_CASE("the stand-in ends a use of a stream before NCCL has issued its kernel", "[real][stand-in]") {
  const StandIn libraries;
  CHECK_THAT(ended_with([] {
               const OneGpu gpu;
               const ncclComm_t communicator = gpu.start(0);
               gpu.settle(communicator);
               gpu.sum(communicator, gpu.memory, 4);
               cudaEvent_t event = nullptr;
               gpu.cuda.event_create(&event, cudaEventDefault);
               gpu.cuda.event_record(event, gpu.stream);
             }),
             Contains("before NCCL had issued its kernel"));
}

TEST_CASE("the stand-in ends a use of an aborted communicator", "[real][stand-in]") {
  const StandIn libraries;
  CHECK_THAT(ended_with([] {
               const OneGpu gpu;
               const ncclComm_t communicator = gpu.start(1);
               gpu.nccl.comm_abort(communicator);
               gpu.sum(communicator, gpu.memory, 4);
             }),
             Contains("aborted or destroyed"));
}

TEST_CASE("the stand-in ends calls on memory that is too small, freed or the host's", "[real][stand-in]") {
  const StandIn libraries;
  CHECK_THAT(ended_with([] {
               const OneGpu gpu;
               gpu.sum(gpu.start(1), gpu.memory, 1024);
             }),
             Contains("less memory than the call needs"));
  CHECK_THAT(ended_with([] {
               const OneGpu gpu;
               gpu.cuda.free(gpu.memory);
               gpu.sum(gpu.start(1), gpu.memory, 4);
             }),
             Contains("that has been freed"));
  CHECK_THAT(ended_with([] {
               const OneGpu gpu;
               float host = 0;
               gpu.sum(gpu.start(1), &host, 1);
             }),
             Contains("memory of the host"));
  CHECK_THAT(ended_with([] {
               const OneGpu gpu;
               gpu.cuda.free(gpu.memory);
               gpu.cuda.free(gpu.memory);
             }),
             Contains("the same twice"));
}

namespace {

// Five calls with each of two sizes, on both ranks.
constexpr const char* repeated = R"({
  "name": "repeated", "world_size": 2, "backend": "nccl", "cluster": "h100-2",
  "program": [{"repeat": 6, "do": [
    {"all_reduce": {"numel": 1024}}, {"all_reduce": {"numel": 262144}}, {"all_gather": {"numel": 1024}}]}]
})";

}  // namespace

TEST_CASE("times of calls on the GPU come back as a calibration, and as claims", "[fiber][real][stand-in]") {
  const StandIn libraries;
  const test::Folder folder;
  const std::string file = folder.write("repeated.json", repeated);
  const scenario::Scenario loaded = scenario::load_scenario(file, {});
  const real::Run run = scenario::run_real(loaded, {.backend = "nccl", .deadline = 20 * second});
  compare::Facts facts = compare::facts_of_run(run);
  REQUIRE(facts.times.size() == 3);
  for (const compare::CallTimes& times : facts.times) {
    CHECK(times.ranks == 2);
    CHECK(times.nodes == 1);
    CHECK(times.times.size() >= 5);
    CHECK(*std::ranges::min_element(times.times) > 0);
  }

  // The measurements calibrate the prediction.
  const std::string kept = folder.write("times.json", compare::calibration_file(facts.times, "stand-in"));
  const cost::Cluster cluster = loaded.options.cluster.value();
  const auto rows = measured::measurements_of(measured::read_bench_tables({kept}), cluster);
  REQUIRE(rows.size() == 3);
  const cost::Cluster calibrated = measured::calibrate(cluster, rows);
  const cost::GroupCost group(cost::communicator_of(calibrated, 2, 1));
  for (const cost::Measurement& row : rows) {
    CHECK(group.predict({.kind = row.kind, .bytes = row.bytes})->fitted == Approx(row.time).epsilon(0.01));
  }

  // The same times are claims, with which the calibrated cluster agrees; times of the stand-in are not judged.
  const auto judged = [&](const compare::Facts& real) {
    std::vector<Claim::Judgement> judgements;
    for (const Claim& claim : compare::time_claims(real, calibrated)) {
      judgements.push_back(claim.judgement);
    }
    return judgements;
  };
  CHECK(judged(facts) == std::vector(3, Claim::Judgement::agrees));
  facts.no_times = compare::why_no_times("nccl", 2).because;
  CHECK(judged(facts) == std::vector{Claim::Judgement::cannot_be_judged});
}

TEST_CASE("ranks that share a GPU pose as hosts of their own on the stand-in", "[fiber][real][stand-in]") {
  const StandIn libraries;
  ::setenv("ROLLCALL_STAND_IN_GPUS", "1", 1);
  // The stand-in refuses two ranks of one communicator on one GPU of one host, as NCCL does.
  const auto path = test::example_file("all_reduce");
  CHECK(differences(path) == "");
  ::unsetenv("ROLLCALL_STAND_IN_GPUS");
}

}  // namespace rollcall::stand_in_test
