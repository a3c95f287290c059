#pragma once

// Hub: what a run's supervisor keeps for all ranks: the stores in which they find each other and share values,
// and, in a launched run, the place to which the supervisors of other ranks send their logs.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "real/process/process.h"
#include "real/rank/frames.h"
#include "real/rank/greeting.h"
#include "real/rank/recorder.h"
#include "sim/c10d/store_state.h"

namespace rollcall::real {

class Hub {
 public:
  explicit Hub(const RunClock& clock) : clock_(clock) {}

  // Accepts connections from the job's processes (greeting.h). Listens at this address, or at all addresses if it is
  // not this machine's. Throws std::runtime_error if the port is taken.
  void listen(const std::string& address, std::uint16_t port, std::string token);
  // How many connections were refused.
  int refused() const { return entrance_ ? entrance_->refused() : 0; }
  // The other end of a new connection, for a process that is about to be started. Throws std::system_error.
  Descriptor connect();

  // A supervisor's connection, from which a rank's records come.
  struct LogConnection {
    Rank rank = 0;
    Descriptor connection;
    std::string records;  // those that came with the first frame
  };

  // Adds the descriptors to poll.
  void watch(std::vector<pollfd>& polled) const;
  // Serves all clients that have sent something, or whose keys have been set. Returns the logs that began.
  std::vector<LogConnection> serve();

 private:
  // A call that a client waits for.
  struct Request {
    StoreState* store = nullptr;
    StoreCall call;
    std::optional<Time> until;
  };
  struct Client {
    Descriptor connection;
    std::string received;
    std::optional<Request> request{};
  };

  bool hear(Client& client, std::vector<LogConnection>& logs);
  bool take_call(Client& client, std::vector<LogConnection>& logs);
  Request request_of(const Frame& content);
  void answer_all();
  bool answer(Client& client);

  const RunClock& clock_;
  std::optional<Entrance> entrance_;
  std::vector<Client> clients_;
  std::map<std::string, StoreState> stores_;
};

}  // namespace rollcall::real
