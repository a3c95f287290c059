#pragma once

// The connection to one rank of a script that runs under the simulator: lines of JSON, some followed by bytes.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "real/process/process.h"
#include "real/process/process_state.h"

namespace rollcall::scenario {

// Thrown when a rank has made no call for so long that it must be checked.
struct RankIsSilent {};

class RankLink {
 public:
  RankLink(real::Descriptor connection, std::chrono::milliseconds patience)
      : connection_(std::move(connection)), patience_(patience) {}

  // The next line, without its end; nothing if the rank has disconnected. Blocks. Throws RankIsSilent.
  std::optional<std::string> line();
  // The bytes that follow a line. Fewer if the rank has disconnected.
  std::string bytes(std::int64_t count);
  // Waits until the rank says more, or has disconnected. Returns false if it is seen to be blocked before that: its
  // process and its workers sleep, and move no bytes. Throws RankIsSilent.
  bool comes();
  // Sends a line and bytes. Sends nothing to a rank that has disconnected.
  void say(std::string_view line, std::string_view bytes = {});
  // The rank has made a call: the patience with it begins anew.
  void has_called() { waited_ = {}; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Look {
    real::ProcessState process;
    Clock::time_point at;
    bool is_blocked = false;
  };

  bool receive_within(std::chrono::milliseconds limit);
  bool looks_blocked();
  static bool sleeps_between(const Look& before, const Look& now);

  real::Descriptor connection_;
  std::chrono::milliseconds patience_;
  Clock::duration waited_{};    // for the next call
  std::optional<Look> looked_;  // since anything has come
  bool is_connected_ = true;
  std::string received_;
  std::size_t searched_ = 0;  // this many received bytes contain no end of a line
};

}  // namespace rollcall::scenario
