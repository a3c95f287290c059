#pragma once

// Seat: one rank's place in a real run, and how it finds the others.

#include <memory>
#include <string>
#include <vector>

#include "real/rank/store.h"
#include "sim/base/time.h"
#include "sim/c10d/process_group.h"

namespace rollcall::real {

struct Seat {
  Rank rank = 0;                       // global
  std::vector<GroupMembers> groups{};  // by GroupId; the world first
  std::shared_ptr<Store> store{};
  std::string address{};  // of this machine, as others reach it; empty: the loopback device
  TorchRelease torch = newest_torch;
  Duration timeout = 0;   // of operations; 0: the backend's own default
  double time_scale = 1;  // real seconds per second that the program computes
  bool eager = false;     // init_process_group got a device_id: groups connect when they are made
};

}  // namespace rollcall::real
