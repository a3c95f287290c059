#pragma once

// Hub: what a run's supervisor keeps for all ranks: the stores in which they find each other and leave words,
// and, in a launched run, the place where the supervisors of other ranks send their logs.

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

  // Lets those connect that prove to know the token (greeting.h); without one, this user's processes of this
  // machine. At this address of ours, or at all where it is none. Throws std::runtime_error when the port is taken.
  void listen(const std::string& address, std::uint16_t port, std::string token);
  // Who connected and did not prove it in time, or sent something else.
  int refused() const { return refused_; }
  // The other end of a new connection, for a process that is about to be started. Throws std::system_error.
  Descriptor connect();

  // A supervisor's connection, from which a rank's records come.
  struct LogConnection {
    Rank rank = 0;
    Descriptor connection;
    std::string records;  // that came with the first frame
  };

  // Adds what is to be polled.
  void watch(std::vector<pollfd>& polled) const;
  // Serves everybody who has something to say, or waits for what has been said. Returns the logs that began.
  std::vector<LogConnection> serve();

 private:
  // What a client waits for an answer to.
  struct Request {
    StoreState* store = nullptr;
    StoreCall call;
    std::optional<Time> until;
  };
  struct Client {
    Descriptor connection;
    std::string received;
    std::optional<Request> request{};
    std::optional<Greeting> greeting{};  // what a stranger is asked; nothing: it belongs to the run
    Time since = 0;                      // of a stranger
  };

  void accept();
  bool belongs(Client& client) const;
  bool hear(Client& client, std::vector<LogConnection>& logs);
  bool take_call(Client& client, std::vector<LogConnection>& logs);
  Request request_of(const Frame& content);
  void answer_all();
  bool answer(Client& client);

  const RunClock& clock_;
  Descriptor listener_;
  std::string token_;
  int refused_ = 0;
  std::vector<Client> clients_;
  std::map<std::string, StoreState> stores_;
};

}  // namespace rollcall::real
