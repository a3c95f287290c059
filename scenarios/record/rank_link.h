#pragma once

// The connection to one rank of a script that runs under the simulator: lines of JSON, some followed by bytes.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "real/process/process.h"

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
  // Sends a line and bytes. Sends nothing to a rank that has disconnected.
  void say(std::string_view line, std::string_view bytes = {});
  // The rank has made a call: the patience with it begins anew.
  void has_called() { waited_ = {}; }

 private:
  bool receive();

  real::Descriptor connection_;
  std::chrono::milliseconds patience_;
  std::chrono::steady_clock::duration waited_{};  // for the next call
  std::string received_;
  std::size_t searched_ = 0;  // this many received bytes contain no end of a line
};

}  // namespace rollcall::scenario
