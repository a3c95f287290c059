#pragma once

// A job under watch: starts its command with the observer in the environment, looks at the rings that its ranks
// write, and asks the judge when nothing moves. The job notices none of that: it is not ended, and lives on when this
// process dies.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "real/process/process.h"
#include "scenarios/watch/nodes.h"
#include "scenarios/watch/process_state.h"
#include "sim/diagnose/dump.h"
#include "sim/report/diagnosis.h"
#include "traces/watch/live_ring.h"
#include "traces/watch/stall.h"

namespace rollcall::watch {

// Where some ranks are. Innermost first.
struct StackOfRanks {
  RankSet ranks;
  check::DumpStack frames;  // empty: no answer came
};

struct Standstill {
  Diagnosis diagnosis;
  std::vector<StackOfRanks> stacks;  // the culprits' first
  Duration silence = 0;              // 0: the job has ended
};

struct WatchOptions {
  std::vector<std::string> command;
  std::string records;  // the folder for rings and what goes with them; empty: a private one
  StallOptions stall;
  std::optional<NodeOptions> nodes;  // of several; none: this is the only one
};

struct WatchListener {
  std::function<void(const Standstill& standstill)> stands_still;  // or its job failed
  std::function<void(Duration after)> went_on;
  std::function<void(const std::string& text)> remark;
};

class WatchedJob {
 public:
  // Both are borrowed. Throws std::system_error, and viz::OutputError for a folder that cannot be made.
  WatchedJob(const WatchOptions& options, const WatchListener& listener);

  // Once. Returns the command's exit code, 128 and more for a signal.
  int run();

 private:
  // A rank on this machine.
  struct Watched {
    LiveRing ring;
    real::Descriptor process;  // readable when it has ended; closed: it cannot be watched
    RingLook look{};
    ProcessState state{};
    RankMoment::Activity activity = RankMoment::Activity::quiet;
    Time state_at = 0;
    Time at_place_since = -1;  // -1: that is not known
    std::string end{};         // "killed by SIGKILL"; empty: it runs
    bool ended_well = false;
  };

  void watch_until_the_end(const real::ChildProcess& job, const real::Descriptor& end);
  void look(Time now);
  void find_rings();
  void look_at_process(Watched& rank, Time now);
  void bury(Watched& rank);
  void answer_hub(Time now);
  std::vector<RankMoment> moments_everywhere() const;
  void ask_where(const RankSet& ranks);
  std::vector<RankMoment> moments() const;
  RankSet all_ranks() const;
  RankSet local_ranks() const;

  void say_standstill(Time now, bool has_ended);
  void say_end(int code);
  void write_log(bool has_ended) const;
  std::vector<StackOfRanks> stacks_of(const Diagnosis& diagnosis) const;
  check::DumpStack read_stack(Rank rank) const;
  std::string path_of(Rank rank, const char* what) const;

  const WatchOptions& options_;
  const WatchListener& listener_;
  real::PrivateFolder package_;  // with the observer
  std::optional<real::PrivateFolder> private_records_;
  std::string records_;
  std::map<Rank, Watched> ranks_;
  std::vector<Rank> ended_;  // by when
  Rank world_size_ = 0;
  Stall stall_;
  std::optional<NodeHub> hub_;
  std::optional<NodeMember> member_;
  std::uint64_t question_ = 0;
  std::uint64_t killed_before_;
  Time looked_at_ = 0;
  Time judged_at_ = 0;
  std::optional<Diagnosis> said_;
};

}  // namespace rollcall::watch
