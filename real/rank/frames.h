#pragma once

// Frames: the messages between the hub of a launched run and all other processes.

#include <cstdint>
#include <optional>
#include <string>

#include "real/process/process.h"

namespace rollcall::real {

enum class FrameKind : std::uint8_t {
  call,     // a StoreCall; key: which of the hub's stores. Answered, perhaps later, by one of the next three
  answer,   // a StoreReply
  refusal,  // the call was wrong: the text of a ValueError
  late,     // the keys were not set in time
  log,      // key: the rank's number. Answered by the hub's time as text; records follow on this connection
  challenge,  // these three begin a connection: greeting.h
  proof,
  welcome,
};

// The maximum size of a frame. The limit is lower before the sender has proven that it belongs to the run.
inline constexpr std::size_t frame_bytes_max = std::size_t{64} << 20;
inline constexpr std::size_t greeting_bytes_max = 256;

struct Frame {
  FrameKind kind = FrameKind::call;
  std::string key;
  std::string value;
};

std::string frame(const Frame& content);

// Takes the first frame off `bytes`; null if it has not arrived in full. Throws std::runtime_error if it is longer than
// `bytes_max`, or of an unknown kind.
std::optional<Frame> take_frame(std::string& bytes, std::size_t bytes_max = frame_bytes_max);

// Blocks until one frame, and nothing more, has arrived. Throws std::runtime_error if the other end closes, or sends
// something else.
Frame receive_frame(const Descriptor& connection);

}  // namespace rollcall::real
