#pragma once

// The connection to one rank of a script that runs under the simulator: lines of JSON, some followed by bytes.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "real/process/process.h"

namespace rollcall::scenario {

// A rank has said nothing for so long that somebody has to look at it.
struct RankIsSilent {};

class RankLink {
 public:
  RankLink(real::Descriptor connection, std::chrono::milliseconds patience)
      : connection_(std::move(connection)), patience_(patience) {}

  // The next line, without its end; nothing when the rank has gone. Blocks. Throws RankIsSilent.
  std::optional<std::string> line();
  // The bytes that follow a line. Fewer when the rank has gone.
  std::string bytes(std::int64_t count);
  // A line and bytes. To a rank that has gone, nothing.
  void say(std::string_view line, std::string_view bytes = {});

 private:
  bool receive();

  real::Descriptor connection_;
  std::chrono::milliseconds patience_;
  std::string received_;
  std::size_t searched_ = 0;  // of what was received: so far there is no end of a line
};

}  // namespace rollcall::scenario
