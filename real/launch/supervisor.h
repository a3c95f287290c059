#pragma once

// Supervisor: starts one process per rank, reads their logs while they run, and ends them: when all are
// through, when what is left can be proven to wait for ever, or when the deadline has passed.

#include <optional>
#include <vector>

#include "real/backends.h"
#include "real/launch/launch.h"
#include "real/launch/process.h"
#include "real/launch/recorder.h"

namespace rollcall::real {

class Supervisor {
 public:
  // Borrowed for the lifetime of the object. `groups` by GroupId.
  Supervisor(const Options& options, const Program& program, const BackendEntry& backend,
             const std::vector<GroupMembers>& groups)
      : options_(options), program_(program), backend_(backend), groups_(groups) {}

  // Once. No process of the run is left when it returns or throws. An interrupt (SIGINT, SIGTERM) ends the
  // run, and then the caller's process as it would have without us.
  RunLog run();

 private:
  struct Child {
    ChildProcess process;
    Descriptor log;   // what it writes; closed: it has ended
    Descriptor hold;  // it lingers until this is closed
    Decoder decoder{};
    bool connected = false;
    bool through = false;  // its program has ended
  };

  void start(Rank rank);
  void collect(Duration at_most);
  void read_from(Rank rank);
  void take(Rank rank, Record record);
  void bury(Rank rank);
  bool all_through() const;
  bool all_connected() const;
  bool is_hopeless(Duration silence) const;
  void end_all();

  const Options& options_;
  const Program& program_;
  const BackendEntry& backend_;
  const std::vector<GroupMembers>& groups_;
  RunClock clock_;
  std::optional<PrivateFolder> folder_{std::in_place};
  std::vector<Child> children_;  // by rank
  RunLog log_;
  Time last_news_ = 0;
  Time connected_at_ = -1;
};

}  // namespace rollcall::real
