#pragma once

// A page about the running job, for the browser of the person who started it: served on this machine's loopback
// address, at a path that cannot be guessed.

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include <poll.h>

#include "real/process/process.h"

namespace rollcall::watch {

// How long a browser may take to send its request; and how long making and reading the page may take.
struct Patience {
  unsigned request_s = 10;
  unsigned answer_s = 60;
};

class LivePage {
 public:
  // `port` 0: any free one. `render` makes the page, in a process of its own: a slow reader, or a page that takes long,
  // delays nothing else. Throws std::system_error if it cannot listen there.
  LivePage(std::uint16_t port, std::function<std::string()> render, Patience patience = {});

  // "http://127.0.0.1:8700/5f2c..."
  std::string url() const;

  void watch(std::vector<pollfd>& polled) const;
  // Answers clients that have connected. Does not block.
  void serve();

 private:
  void answer(const real::Descriptor& connection) const;
  std::string response_to(const std::string& request) const;

  struct Answer {
    real::ChildProcess process;
    real::Descriptor end;
  };

  std::function<std::string()> render_;
  Patience patience_;
  real::Descriptor listener_;
  std::uint16_t port_;
  std::string secret_;
  std::list<Answer> answers_;
};

}  // namespace rollcall::watch
