#pragma once

// A page about the job that runs, for the browser of whoever runs it: served on this machine's loopback address, behind
// a path that nobody can guess.

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include <poll.h>

#include "real/process/process.h"

namespace rollcall::watch {

// How long a browser may take to ask; and how long the page may take to be made and read.
struct Patience {
  unsigned request_s = 10;
  unsigned answer_s = 60;
};

class LivePage {
 public:
  // `port` 0: any that is free. `render` makes the page, in a process of its own: a slow reader, or a page that takes
  // long, holds nobody up. Throws std::system_error when nothing can listen there.
  LivePage(std::uint16_t port, std::function<std::string()> render, Patience patience = {});

  // "http://127.0.0.1:8700/5f2c..."
  std::string url() const;

  void watch(std::vector<pollfd>& polled) const;
  // Answers who has come. Does not block.
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
