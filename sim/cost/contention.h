#pragma once

// Calls that run at once share resources: the port of a GPU that is in two groups, a NIC that several groups of a node
// use, the multiprocessors of a GPU whose NCCL kernels run alongside its own work.
//
// Each call states how much of a port and of a NIC it needs to take the time it takes alone. Where the calls in
// progress need more than there is, all of them slow down by the same factor until a call begins or ends; the rest then
// continues at another speed. Work on a GPU slows down by the share of multiprocessors that channels hold.
//
// Messages are not counted, nor is the memory that kernels share. Shares are integers, so that all machines agree.

#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/time.h"
#include "sim/c10d/op.h"

namespace rollcall::cost {

// The resources that a call needs while it runs. Null: none that others could need.
struct Demand {
  const std::vector<Rank>* gpus = nullptr;          // global ranks
  const std::vector<std::int32_t>* nics = nullptr;  // numbered across all nodes
  std::int64_t port_share = 0;                      // of each GPU's port, in millionths
  std::int64_t nic_share = 0;                       // of each NIC
  int channels = 0;                                 // multiprocessors, of each GPU
};

// The multiprocessors of a GPU of that generation: NCCL's kernels take one for each channel. Variants with fewer (H20)
// are not distinguished.
int multiprocessors(int compute_capability);

class Contention {
 public:
  // The caller's name for something that runs.
  struct Key {
    int kind = 0;
    GroupId group = 0;
    Rank rank = 0;  // for work: its rank
    std::int64_t seq = 0;

    friend bool operator==(const Key&, const Key&) = default;
  };

  Contention(Rank ranks, int multiprocessors);

  // `alone`: how long the call takes with nothing else running, which is assumed until the next settle().
  void start(const Key& key, Time now, Duration alone, const Demand& demand);
  // Work of the rank's own GPU, which ends at `latest` at the latest.
  void start_work(const Key& key, Time now, Duration alone, Time latest = never);

  // The jobs that run at another speed from now on, and their new ends. Call it before time advances.
  struct Change {
    Key key;
    Time end = 0;
  };
  std::vector<Change> settle(Time now);

  // Ends a job. Empty if it was not started here.
  struct Past {
    Time start = 0;
    Duration alone = 0;
    std::string_view because{};  // why it took longer; empty: it ran alone
  };
  std::optional<Past> finish(const Key& key);

 private:
  static constexpr std::int64_t whole = 1'000'000;

  enum class Cause : std::uint8_t { none, port, nic, multiprocessors };
  struct Speed {
    std::int64_t slowness = whole;  // how many times as long, in millionths
    Cause cause = Cause::none;
  };
  struct Job {
    Key key;
    Demand demand;  // empty for work
    Time start = 0;
    Time latest = never;
    Duration alone = 0;
    Duration left = 0;  // what remains at `since`, as time alone
    Time since = 0;
    Speed speed{};
    Speed worst{};

    Time end() const;
  };

  void load(const Demand& demand, int sign);
  Speed speed_of(const Job& job) const;

  int multiprocessors_;
  std::vector<Job> jobs_;            // under way, in the order in which they began
  std::vector<std::int64_t> ports_;  // by rank: how much of its port is needed, in millionths
  std::vector<std::int64_t> nics_;
  std::vector<int> channels_;  // by rank: multiprocessors that NCCL's kernels hold
  bool has_changed_ = false;
};

}  // namespace rollcall::cost
