#pragma once

// Supervisor: starts one process per rank, reads their logs while they run, and ends them: when all are
// done, when the remaining ranks provably wait forever, or when the deadline has passed.

#include <optional>
#include <vector>

#include "real/launch/hub.h"
#include "real/launch/launch.h"
#include "real/process/process.h"
#include "real/rank/backend_entry.h"
#include "real/rank/environment.h"
#include "real/rank/recorder.h"

namespace rollcall::real {

class Supervisor {
 public:
  // Borrowed for the lifetime of the object. `groups`: by GroupId. `launched`: null if all ranks are to be
  // started here; otherwise only rank 0 is, and the others connect through their own supervisors (remote.h).
  Supervisor(const Options& options, const Program& program, const BackendEntry& backend,
             const std::vector<GroupMembers>& groups, const LaunchedRank* launched)
      : options_(options), program_(program), backend_(backend), groups_(groups), launched_(launched) {}

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
  void collect(Duration at_most);
  void read_from(Rank rank);
  void take_all(Rank rank, std::string_view bytes);
  void take(Rank rank, Record record);
  void bury(Rank rank);
  void note_end(Rank rank, Death death);
  bool all_through() const;
  bool all_connected() const;
  bool is_waited_for_in_vain() const;
  bool is_hopeless(Duration silence) const;
  void end_all();

  const Options& options_;
  const Program& program_;
  const BackendEntry& backend_;
  const std::vector<GroupMembers>& groups_;
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

}  // namespace rollcall::real
