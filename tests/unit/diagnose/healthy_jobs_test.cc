// Healthy jobs, dumped while they run: hosts that run ahead of their devices, watchdogs that notice late, ranks that
// are dumped one after another, rings that have wrapped. None of them may be called a hang.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/conformance/random.h"

namespace rollcall::check::healthy_jobs_test {
namespace {

constexpr std::int64_t us = 1'000;
constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t epoch = 1'700'000'000'000'000'000;

struct Shape {
  Rank world = 4;
  Rank tensor = 1;              // ranks that split a layer; 1: data parallel only
  std::int64_t step = 10 * ms;  // for a host, without waiting
  std::int64_t network = 1;     // how slow the network is
  std::int64_t checkpoint = 0;  // rank 0 writes one after the last step, while the others continue
  int ahead = 0;                // how many steps a host may be ahead of its device
  std::int64_t stagger = 0;     // between the dumps of adjacent ranks
  std::size_t ring = 2000;
  std::uint64_t seed = 1;
};

// Keeps two times per rank, its host's and its device's.
class HealthyJob {
 public:
  explicit HealthyJob(const Shape& shape) : shape_(shape), chance_(shape.seed) {
    job_.stacks.emplace_back();
    add_group("0", "default_pg", all());
    for (Rank first = 0; shape.tensor > 1 && first < shape.world; first += shape.tensor) {
      std::vector<Rank> members;
      for (Rank rank = first; rank < first + shape.tensor; ++rank) {
        members.push_back(rank);
      }
      add_group(fmt::format("tp{}", first), "mesh_tp", members);
    }
    for (Rank rank = 0; rank < shape.world; ++rank) {
      hosts_.push_back(random(2 * ms));
    }
    devices_.resize(hosts_.size(), 0);
    calls_.resize(hosts_.size());
  }

  JobDump dump_after(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
    }
    std::int64_t moment = *std::min_element(hosts_.begin(), hosts_.end()) - random(shape_.step);
    if (shape_.checkpoint > 0) {
      hosts_.front() += shape_.checkpoint;
      moment += shape_.checkpoint - random(shape_.checkpoint / 2);
    }
    // Runs until the last dump, because the job continues while dumps are written.
    while (*std::min_element(hosts_.begin(), hosts_.end()) <
           moment + shape_.stagger * shape_.world + 10 * shape_.step) {
      step();
    }
    for (Rank rank = 0; rank < shape_.world; ++rank) {
      job_.ranks.push_back(dump_of(rank, moment + rank * shape_.stagger));
    }
    return std::move(job_);
  }

 private:
  struct Made {
    DumpRecord record;
    std::int64_t noticed = 0;
  };

  std::vector<Rank> all() const {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < shape_.world; ++rank) {
      ranks.push_back(rank);
    }
    return ranks;
  }

  void add_group(const std::string& name, const std::string& description, std::vector<Rank> members) {
    job_.groups.push_back({name, description, std::move(members)});
  }

  std::uint32_t call_number(const std::string& op, std::int64_t numel) {
    DumpCall call;
    call.backend = "nccl";
    call.op = op;
    call.inputs = call.outputs = {{numel}};
    call.input_dtypes = call.output_dtypes = {"Float"};
    const auto place = std::find(job_.calls.begin(), job_.calls.end(), call);
    const auto number = static_cast<std::uint32_t>(place - job_.calls.begin());
    if (place == job_.calls.end()) {
      job_.calls.push_back(call);
    }
    return number;
  }

  void collective(std::uint32_t group, const std::string& op, std::int64_t numel, std::int64_t takes) {
    const std::uint32_t call = call_number(op, numel);
    std::int64_t start = 0;
    const std::vector<Rank> members = job_.groups[group].members;
    for (const Rank rank : members) {
      const auto r = static_cast<std::size_t>(rank);
      hosts_[r] += 30 * us + random(20 * us);
      start = std::max({start, hosts_[r], devices_[r]});
    }
    for (const Rank rank : members) {
      const auto r = static_cast<std::size_t>(rank);
      devices_[r] = start + takes * shape_.network;
      Made made;
      made.record.call = call;
      made.record.group = group;
      made.record.created_ns = epoch + hosts_[r];
      made.record.collective_seq = ++numbers_[{rank, group}];
      made.record.timeout_ms = 600'000;
      made.noticed = devices_[r] + random(100 * ms);  // a watchdog looks every 100 ms
      calls_[r].push_back(made);
    }
  }

  void step() {
    for (std::size_t r = 0; r < hosts_.size(); ++r) {
      hosts_[r] += shape_.step / 2 + random(shape_.step);
    }
    for (std::uint32_t group = 1; group < job_.groups.size(); ++group) {
      collective(group, "all_gather", 8192, 200 * us);
      collective(group, "reduce_scatter", 8192, 200 * us);
    }
    collective(0, "all_reduce", 4096, 500 * us);
    collective(0, "all_reduce", 1, 50 * us);
    ends_.push_back(devices_);
    const std::size_t behind = static_cast<std::size_t>(shape_.ahead);
    for (std::size_t r = 0; r < hosts_.size() && ends_.size() > behind; ++r) {
      hosts_[r] = std::max(hosts_[r], ends_[ends_.size() - 1 - behind][r]);
    }
  }

  RankDump dump_of(Rank rank, std::int64_t moment) const {
    RankDump dump;
    dump.rank = rank;
    for (std::uint32_t group = 0; group < job_.groups.size(); ++group) {
      if (std::ranges::binary_search(job_.groups[group].members, rank)) {
        dump.groups.push_back(group);
      }
    }
    for (const Made& made : calls_[static_cast<std::size_t>(rank)]) {
      if (made.record.created_ns > epoch + moment) {
        break;
      }
      dump.records.push_back(made.record);
      if (made.noticed <= moment) {
        dump.records.back().state = DumpRecord::State::completed;
        dump.records.back().completed_ns = epoch + made.noticed;
        dump.records.back().retired = true;
      }
    }
    dump.without_gaps = true;
    dump.from_start = dump.records.size() <= shape_.ring;
    if (!dump.from_start) {
      dump.records.erase(dump.records.begin(), dump.records.end() - static_cast<std::ptrdiff_t>(shape_.ring));
    }
    return dump;
  }

  Shape shape_;
  std::int64_t random(std::int64_t limit) {
    return static_cast<std::int64_t>(chance_.next() % static_cast<std::uint64_t>(limit));
  }

  conformance::Random chance_;
  JobDump job_;
  std::vector<std::int64_t> hosts_;
  std::vector<std::int64_t> devices_;
  std::vector<std::vector<std::int64_t>> ends_;  // of steps, by rank
  std::vector<std::vector<Made>> calls_;
  std::map<std::pair<Rank, std::uint32_t>, std::int64_t> numbers_;
};

}  // namespace

TEST_CASE("healthy jobs that are dumped while they run raise no alarm", "[dump][healthy-jobs]") {
  int jobs = 0;
  std::vector<std::string> alarms;
  for (const Rank world : {4, 8}) {
    for (const Rank tensor : {1, 2}) {
      for (const int ahead : {0, 1, 4}) {
        for (const std::int64_t stagger : {0 * ms, 5 * ms, 50 * ms, 200 * ms, 1000 * ms}) {
          for (const std::size_t ring : {60U, 2000U}) {
            for (const std::int64_t network : {1, 15}) {
              ++jobs;
              Shape shape{world, tensor};
              shape.network = network;
              shape.ahead = ahead;
              shape.stagger = stagger;
              shape.ring = ring;
              shape.seed = static_cast<std::uint64_t>(jobs);
              const Diagnosis diagnosis = judge_dump(HealthyJob(shape).dump_after(40));
              if (diagnosis.finding.kind != FindingKind::no_fault) {
                alarms.push_back(fmt::format(
                    "{} ranks, tp {}, ahead {}, stagger {} ms, ring {}, network {}: {} {} {}", world, tensor,
                    ahead, stagger / ms, ring, network, to_string(diagnosis.finding.kind),
                    to_string(diagnosis.finding.culprits), to_string(diagnosis.confidence)));
              }
            }
          }
        }
      }
    }
  }
  CHECK(jobs == 240);
  CHECK(alarms == std::vector<std::string>());
}

// One moment cannot distinguish a rank that writes a checkpoint from one that hangs, and the diagnosis has to say so.
TEST_CASE("a checkpoint that lets the others wait raises no alarm", "[dump][healthy-jobs]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Shape shape;
    shape.checkpoint = 1500 * ms;
    shape.ahead = seed % 2 == 0 ? 1 : 0;
    shape.seed = seed;
    const Diagnosis diagnosis = judge_dump(HealthyJob(shape).dump_after(40));
    CAPTURE(seed, diagnosis.finding.headline);
    CHECK_FALSE(is_alarm(diagnosis));
    if (diagnosis.finding.kind != FindingKind::no_fault) {
      CHECK(diagnosis.finding.culprits == RankSet{0});
      CHECK_THAT(diagnosis.would_settle.back(), Contains("second dump"));
    }
  }
}

}  // namespace rollcall::check::healthy_jobs_test
