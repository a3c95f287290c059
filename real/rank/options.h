#pragma once

// The options of a real run.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/c10d/backend.h"
#include "sim/report/sample_use.h"

namespace rollcall::check {
class Outlook;
}

namespace rollcall::real {

using Program = std::function<void(Rank)>;

struct Group {
  std::string name;
  std::vector<Rank> ranks;  // global
};

struct Options {
  Rank world_size = 1;
  std::string backend = "gloo";       // "gloo" or "nccl": see real/backends/backends.h
  TorchRelease torch = newest_torch;  // the release whose rules apply
  std::vector<Device> devices{};      // what get_device() says, per rank; empty: the CPU
  std::vector<Group> groups{};        // besides "world"
  Rank gpus_per_host = 0;             // the number that the program sees
  // Ranks that have not found each other by then never will.
  Duration connecting = 60 * second;
  // From the moment all ranks are connected. Ranks that provably wait forever do not get that long.
  Duration deadline = 10 * second;
  // How long all ranks must be silent before the supervisor checks whether anything can still happen. By then,
  // everything that has happened has been logged, even on a busy machine.
  Duration patience = 500 * millisecond;
  Duration timeout = 0;              // of the group's operations; 0: the backend's default
  bool eager_communicators = false;  // on nccl: init_process_group gets a device_id
  bool finished_ranks_exit = false;  // otherwise a finished rank's process lingers until all are done
  double time_scale = 1;             // real seconds per second that the program computes
  std::int64_t ops = 1'000'000'000;  // issued calls and loop iterations of one rank
  bool timeline = false;
  bool check_leaks = false;            // every group must be destroyed
  std::optional<SampleUse> samples{};  // if the program's inputs come from a dataset, for the report
  // What is known about the program besides the logs of its ranks; borrowed. Null: only the logs.
  const check::Outlook* outlook = nullptr;
  // Wraps a rank's backend, inside the Recorder: for faults. Called in the rank's process. Null: none.
  std::function<std::unique_ptr<Backend>(Backend&, Rank)> decorate{};
};

}  // namespace rollcall::real
