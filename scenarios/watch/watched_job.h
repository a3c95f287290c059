#pragma once

// A watched job: starts its command with the observer in the environment, reads the rings that its ranks write, and
// asks for a verdict when nothing moves. The job notices none of that: it is not ended, and survives if this process
// dies.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "real/process/process.h"
#include "real/process/process_state.h"
#include "scenarios/watch/live_page.h"
#include "scenarios/watch/nodes.h"
#include "scenarios/watch/rank_end.h"
#include "scenarios/watch/status_row.h"
#include "sim/diagnose/dump.h"
#include "sim/report/diagnosis.h"
#include "traces/watch/live_ring.h"
#include "traces/watch/pulse.h"
#include "traces/watch/stall.h"

namespace rollcall::watch {

// The position of some ranks. Innermost frame first.
struct StackOfRanks {
  RankSet ranks;
  check::DumpStack frames;  // empty: no answer was received
};

// A verdict about a job, and the occasion for it.
struct Answer {
  enum class Occasion {
    stands_still,
    failed,   // the job has ended with an error
    at_work,  // nothing hangs, but the numbers are wrong
  };

  Occasion occasion = Occasion::stands_still;
  Diagnosis diagnosis;
  std::vector<StackOfRanks> stacks;  // the culprits' first
  Duration silence = 0;              // if the job stands still
};

struct WatchOptions {
  std::vector<std::string> command;
  std::string records;  // the folder for rings and related files; empty: a private one
  StallOptions stall;
  std::optional<NodeOptions> nodes;        // if there are several; none: this is the only one
  bool shows_row = true;                   // in the terminal, if there is one
  std::optional<std::uint16_t> page_port;  // the page is served on it; 0: any
};

struct WatchListener {
  std::function<void(const Answer& answer)> judged;
  std::function<void(Duration after)> went_on;
  std::function<void(const std::string& text)> remark;
  std::function<std::string(const std::string& records)> page;  // about the current state of the job
};

class WatchedJob {
 public:
  // Both are borrowed. Throws std::system_error, and viz::OutputError if a folder cannot be created.
  WatchedJob(const WatchOptions& options, const WatchListener& listener);

  // Call once. Returns the command's exit code, 128 and more for a signal.
  int run();

 private:
  // A rank on this machine.
  struct Watched {
    LiveRing ring;
    real::Descriptor process;  // readable when it has ended; closed: it cannot be watched
    RingLook look{};
    real::ProcessState state{};
    RankMoment::Activity activity = RankMoment::Activity::quiet;
    Time state_at = 0;
    Time at_place_since = -1;  // -1: unknown
    std::string end{};         // "killed by SIGKILL"; empty: it runs
    bool ended_well = false;
  };

  void watch_until_the_end(const real::Descriptor& end);
  void look(Time now);
  void find_rings();
  void forget_earlier_job();
  void look_at_process(Watched& rank, Time now);
  void bury(Watched& rank);
  void answer_hub(Time now);
  std::vector<RankMoment> moments_everywhere() const;
  void ask_where(const RankSet& ranks);
  std::vector<RankMoment> moments() const;
  void look_at_missing(Time now);
  RankSet all_ranks() const;

  void say_standstill(Time now);
  void say_failure();
  void say_went_on();
  bool any_failed() const;
  void look_for_wrong_numbers(Time now);
  std::optional<Diagnosis> judge_records() const;
  void say(Answer::Occasion occasion, const Diagnosis& diagnosis, Duration silence);
  void draw_row(Time now, const std::vector<RankMoment>& moments);
  void say_end(int code);
  void write_log(bool has_ended) const;
  std::vector<RankEnd> ends() const;
  std::vector<StackOfRanks> stacks_of(const Diagnosis& diagnosis) const;
  check::DumpStack read_stack(Rank rank) const;
  std::string path_of(Rank rank, const char* what) const;

  const WatchOptions& options_;
  const WatchListener& listener_;
  real::PrivateFolder package_;  // with the observer
  std::optional<real::PrivateFolder> private_records_;
  std::string records_;
  // A process that may be a rank that has not yet appeared.
  struct Stranger {
    real::ProcessState state;
    Time state_at = 0;
    bool is_quiet = false;
  };

  std::map<Rank, Watched> ranks_;
  std::map<pid_t, Stranger> strangers_;
  std::vector<Rank> ended_;  // in the order in which they ended
  Rank world_size_ = 0;
  Stall stall_;
  Pulse pulse_;
  std::optional<StatusRow> row_;
  Time drawn_at_ = 0;
  std::optional<LivePage> page_;
  std::optional<NodeHub> hub_;
  std::optional<NodeMember> member_;
  std::uint64_t question_ = 0;
  std::uint64_t killed_before_;
  Time looked_at_ = 0;
  Time judged_at_ = 0;
  std::optional<Diagnosis> said_;
  Time moves_since_ = -1;  // -1: it stands still, or was not looked at
  Time numbers_due_ = 0;   // when to check again whether they are wrong; 0: from the first call on
  Duration numbers_every_ = 0;
  bool numbers_are_wrong_ = false;
};

}  // namespace rollcall::watch
