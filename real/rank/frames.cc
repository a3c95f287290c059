#include "real/rank/frames.h"

#include <cstring>
#include <stdexcept>

#include "real/rank/sockets.h"

namespace rollcall::real {
namespace {

// Key and value have these lengths.
struct Head {
  FrameKind kind;
  std::uint32_t key;
  std::uint32_t value;
};

}  // namespace

std::string frame(const Frame& content) {
  Head head = {};
  head.kind = content.kind;
  head.key = static_cast<std::uint32_t>(content.key.size());
  head.value = static_cast<std::uint32_t>(content.value.size());
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + content.key + content.value;
}

std::optional<Frame> take_frame(std::string& bytes, std::size_t bytes_max) {
  Head head = {};
  if (bytes.size() < sizeof head) {
    return std::nullopt;
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  const std::size_t size = sizeof head + std::size_t{head.key} + head.value;
  if (head.kind > FrameKind::welcome || size > bytes_max) {
    throw std::runtime_error("invalid data on a connection of the run");
  }
  if (bytes.size() < size) {
    return std::nullopt;
  }
  Frame taken{head.kind, bytes.substr(sizeof head, head.key),
              bytes.substr(sizeof head + head.key, head.value)};
  bytes.erase(0, size);
  return taken;
}

Frame receive_frame(const Descriptor& connection) {
  std::string bytes;
  for (;;) {
    if (std::optional<Frame> taken = take_frame(bytes)) {
      return std::move(*taken);
    }
    const std::string more = receive_some(connection);
    if (more.empty()) {
      throw Disconnected("the connection to the run's hub is lost");
    }
    bytes += more;
  }
}

}  // namespace rollcall::real
