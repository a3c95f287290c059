#pragma once

// Hub: what rank 0 of a launched run keeps for all: the store in which ranks find each other, and the place
// where the supervisors of the others send their ranks' logs.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <poll.h>

#include "real/launch/frames.h"
#include "real/launch/process.h"
#include "real/launch/recorder.h"

namespace rollcall::real {

class Hub {
 public:
  // Throws std::runtime_error when the port is taken.
  Hub(std::uint16_t port, const RunClock& clock);

  // A supervisor's connection, from which a rank's records come.
  struct LogConnection {
    Rank rank = 0;
    Descriptor connection;
    std::string records;  // that came with the first frame
  };

  // Adds what is to be polled.
  void watch(std::vector<pollfd>& polled) const;
  // Serves everybody who has something to say. Returns the logs that began.
  std::vector<LogConnection> serve();

 private:
  struct Client {
    Descriptor connection;
    std::string received;
    std::vector<std::string> waits_for;  // keys that it asked for and nobody has set
  };

  bool serve(Client& client, std::vector<LogConnection>& logs);
  void set(const Frame& content);

  const RunClock& clock_;
  Descriptor listener_;
  std::vector<Client> clients_;
  std::map<std::string, std::string> values_;
};

}  // namespace rollcall::real
