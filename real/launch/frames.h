#pragma once

// Frames: what is said between the hub of a launched run and everybody else.

#include <cstdint>
#include <optional>
#include <string>

#include "real/launch/process.h"

namespace rollcall::real {

enum class FrameKind : std::uint8_t {
  set,     // key, value
  get,     // key; answered by `answer`, perhaps later
  answer,  // value
  log,     // key: the rank's number. Answered by the hub's time; records follow on this connection
};

struct Frame {
  FrameKind kind = FrameKind::set;
  std::string key;
  std::string value;
};

std::string frame(const Frame& content);

// Takes the first frame off `bytes`; nothing when it has not come in full.
std::optional<Frame> take_frame(std::string& bytes);

// Blocks until one frame, and nothing more, has come. Throws std::runtime_error when the other end closes.
Frame receive_frame(const Descriptor& connection);

}  // namespace rollcall::real
