#pragma once

// Calls that run at once share what they need: the port of a GPU that is in two groups, a NIC that several groups of a
// node use, the multiprocessors of a GPU whose kernels of NCCL run beside its own work.
//
// Each call says how much of a port and of a NIC it needs while it takes the time it takes alone. Where the calls under
// way need more than there is, all of them slow down by the same factor. It holds until a call begins or ends; what is
// left then goes on at another speed. Work on a GPU slows down by the share of multiprocessors that channels hold.
//
// Messages are not counted, nor is the memory that kernels share. Shares are integers, so that all machines agree.

#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/time.h"
#include "sim/c10d/op.h"

namespace rollcall::cost {

// What a call needs of the machine while it runs. Null: nothing that others could need.
struct Demand {
  const std::vector<Rank>* gpus = nullptr;          // global ranks
  const std::vector<std::int32_t>* nics = nullptr;  // of all nodes, numbered through
  std::int64_t port_share = 0;                      // of each GPU's port, in millionths
  std::int64_t nic_share = 0;                       // of each NIC
  int channels = 0;                                 // multiprocessors, of each GPU
};

// Of a GPU of that generation: NCCL's kernels take one for each channel. Variants with fewer (H20) are not told apart.
int multiprocessors(int compute_capability);

class Contention {
 public:
  static constexpr Time never = std::numeric_limits<Time>::max();

  // The asker's name for something that runs.
  struct Key {
    int kind = 0;
    GroupId group = 0;
    Rank rank = 0;  // of work: whose
    std::int64_t seq = 0;

    friend bool operator==(const Key&, const Key&) = default;
  };

  Contention(Rank ranks, int multiprocessors);

  // `alone`: how long the call takes with nothing beside it, and so it is taken to until the next settle().
  void start(const Key& key, Time now, Duration alone, const Demand& demand);
  // Work of the rank's own GPU, which ends at `latest` at last.
  void start_work(const Key& key, Time now, Duration alone, Time latest = never);

  // Who runs at another speed from now on, and when that ends. To be asked before time goes on.
  struct Change {
    Key key;
    Time end = 0;
  };
  std::vector<Change> settle(Time now);

  // It is over. Nothing where it was not started here.
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
    Demand demand;  // of work: nothing
    Time start = 0;
    Time latest = never;
    Duration alone = 0;
    Duration left = 0;  // alone, at `since`
    Time since = 0;
    Speed speed{};
    Speed worst{};

    Time end() const;
  };

  void load(const Demand& demand, int sign);
  Speed speed_of(const Job& job) const;

  int multiprocessors_;
  std::vector<Job> jobs_;            // under way, in the order in which they began
  std::vector<std::int64_t> ports_;  // by rank: what is needed of it, in millionths
  std::vector<std::int64_t> nics_;
  std::vector<int> channels_;  // by rank: multiprocessors that NCCL's kernels hold
  bool has_changed_ = false;
};

}  // namespace rollcall::cost
