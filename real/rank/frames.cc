#include "real/rank/frames.h"

#include <stdexcept>

#include "real/rank/sockets.h"
#include "sim/base/encoding.h"

namespace rollcall::real {
namespace {

constexpr std::size_t head_bytes = sizeof(std::uint32_t) + sizeof(std::uint8_t);

Frame frame_of(const Packet& packet) {
  Frame frame{static_cast<FrameKind>(packet.kind), {}, {}};
  if (frame.kind > FrameKind::log) {
    throw std::runtime_error("invalid data on a connection of the run");
  }
  Reader read(packet.content);
  read(frame.key, frame.value);
  return frame;
}

}  // namespace

std::string encode_packet(std::uint8_t kind, std::string_view content) {
  Encoder head;
  head(static_cast<std::uint32_t>(content.size()), kind);
  return head.bytes.append(content);
}

std::optional<Packet> take_packet(std::string& bytes, std::size_t bytes_max) {
  if (bytes.size() < head_bytes) {
    return std::nullopt;
  }
  std::uint32_t size = 0;
  Packet taken;
  Reader read(bytes);
  read(size, taken.kind);
  if (size > bytes_max) {
    throw std::runtime_error("invalid data on a connection of the run");
  }
  if (bytes.size() < head_bytes + size) {
    return std::nullopt;
  }
  taken.content = bytes.substr(head_bytes, size);
  bytes.erase(0, head_bytes + size);
  return taken;
}

Packet receive_packet(const Descriptor& connection) {
  std::string bytes;
  for (;;) {
    if (std::optional<Packet> taken = take_packet(bytes)) {
      return std::move(*taken);
    }
    const std::string more = receive_some(connection);
    if (more.empty()) {
      throw Disconnected("the connection to the run's hub is lost");
    }
    bytes += more;
  }
}

std::string frame(const Frame& content) {
  Encoder encode;
  encode(content.key, content.value);
  return packet(content.kind, encode.bytes);
}

std::optional<Frame> take_frame(std::string& bytes, std::size_t bytes_max) {
  const std::optional<Packet> taken = take_packet(bytes, bytes_max);
  return taken ? std::optional(frame_of(*taken)) : std::nullopt;
}

Frame receive_frame(const Descriptor& connection) { return frame_of(receive_packet(connection)); }

}  // namespace rollcall::real
