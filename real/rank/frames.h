#pragma once

// Packets and frames: the messages between the processes of one job. A packet is its length, a kind, and bytes. Each
// protocol has its own kinds, and all begin with the same handshake (greeting.h).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "real/process/process.h"

namespace rollcall::real {

struct Packet {
  std::uint8_t kind = 0;
  std::string content;

  template <typename Kind>
  bool is(Kind other) const {
    return kind == static_cast<std::uint8_t>(other);
  }
};

// The maximum size of a content. The limit is lower before the sender has proven that it belongs to the job.
inline constexpr std::size_t packet_bytes_max = std::size_t{64} << 20;

std::string encode_packet(std::uint8_t kind, std::string_view content);
template <typename Kind>
std::string packet(Kind kind, std::string_view content) {
  return encode_packet(static_cast<std::uint8_t>(kind), content);
}

// Takes the first packet off `bytes`; null if it has not arrived in full. Throws std::runtime_error if its content is
// longer than `bytes_max`.
std::optional<Packet> take_packet(std::string& bytes, std::size_t bytes_max = packet_bytes_max);

// Blocks until one packet, and nothing more, has arrived. Throws std::runtime_error if the other end closes, or sends
// something else.
Packet receive_packet(const Descriptor& connection);

// The packets between the hub of a launched run and all other processes.
enum class FrameKind : std::uint8_t {
  challenge = 1,  // these three begin a connection: greeting.h
  proof,
  welcome,
  call,     // a StoreCall; key: which of the hub's stores. Answered, perhaps later, by one of the next three
  answer,   // a StoreReply
  refusal,  // the call was wrong: the text of a ValueError
  late,     // the keys were not set in time
  log,      // key: the rank's number. Answered by the hub's time as text; records follow on this connection
};

struct Frame {
  FrameKind kind = FrameKind::call;
  std::string key;
  std::string value;
};

// The same as above, for frames. They also throw std::runtime_error for a packet that is not a frame.
std::string frame(const Frame& content);
std::optional<Frame> take_frame(std::string& bytes, std::size_t bytes_max = packet_bytes_max);
Frame receive_frame(const Descriptor& connection);

}  // namespace rollcall::real
