#pragma once

// Seat: one rank's place in a real run, and how it finds the others.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "real/launch/store.h"
#include "sim/dist/process_group.h"
#include "sim/dist/time.h"

namespace rollcall::real {

struct Seat {
  Rank rank = 0;                       // global
  std::vector<GroupMembers> groups{};  // by GroupId; the world first
  std::string folder{};                // where ranks of one machine leave their addresses; private to the run
  std::string hub{};                   // the address of the run's hub, where there is one instead
  std::uint16_t port = 0;              // of the hub
  std::string address{};               // of this machine, as others reach it; empty: the loopback device
  Duration timeout = 0;                // of operations; 0: the backend's own default
  double time_scale = 1;               // real seconds per second that the program computes

  std::unique_ptr<Store> store() const { return hub.empty() ? file_store(folder) : tcp_store(hub, port); }
};

}  // namespace rollcall::real
