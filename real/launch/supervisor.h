#pragma once

// Supervisor: starts one process per rank, reads their logs while they run, and ends them: when all are
// done, when the remaining ranks provably wait forever, or when the deadline has passed.

#include <optional>
#include <vector>

#include "real/launch/hub.h"
#include "real/launch/worker.h"
#include "real/process/process.h"
#include "real/rank/environment.h"
#include "real/rank/record.h"

namespace rollcall::real {

class Supervisor {
 public:
  // Borrowed for the lifetime of the object. `launched`: null if all ranks are to be started here; otherwise only
  // rank 0 is, and the others connect through their own supervisors (supervise_for_hub).
  Supervisor(const Plan& plan, const LaunchedRank* launched) : plan_(plan), launched_(launched) {}

  // Call once. No process of the run is left when it returns or throws. An interrupt (SIGINT, SIGTERM) ends the
  // run, and then has its usual effect on the caller's process.
  RunLog run();

 private:
  struct Child {
    std::optional<ChildProcess> process;  // null: another supervisor's
    Descriptor log;                       // its records; closed: it has ended, or has not connected yet
    Descriptor hold;                      // it lingers until this is closed
    Decoder decoder{};
    bool connected = false;
    bool through = false;  // its program has ended
  };

  Child start(Rank rank);
  void adopt(Hub::LogConnection log);
  void look();
  void read_from(Rank rank);
  void take_all(Rank rank, std::string_view bytes);
  void take(Rank rank, Record record);
  void bury(Rank rank);
  void note_end(Rank rank, Death death);
  bool all_through() const;
  bool all_connected() const;
  bool is_waited_for_in_vain() const;
  bool is_hopeless() const;
  void end_all();

  const Plan& plan_;
  const LaunchedRank* launched_;
  RunClock clock_;
  std::optional<Hub> hub_;  // a child of the supervisor has none
  std::optional<PrivateFolder> folder_{std::in_place};
  std::vector<Child> children_;  // by rank
  RunLog log_;
  bool heard_ = false;        // whether the last check heard a rank
  Duration silence_ = 0;      // since a rank was heard
  int hopeless_glances_ = 0;  // in a row
  Time connected_at_ = -1;
};

// Supervises one rank of a launched run, on the machine where the launcher put it: starts the rank, sends its log to
// the hub of rank 0, and ends it when the hub closes the connection or is gone. Returns when the run is over. Throws
// std::runtime_error if there is no hub.
void supervise_for_hub(const Plan& plan, const LaunchedRank& launched);

}  // namespace rollcall::real
