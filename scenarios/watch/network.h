#pragma once

// Questions to servers that others run, which may be slow, rude or dead: each has a deadline and a limit.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "real/process/process.h"
#include "sim/base/time.h"

namespace rollcall::watch {

struct Address {
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const Address&, const Address&) = default;
};

// Why no answer came; one line.
struct NoAnswer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A connection that does not block. Throws NoAnswer.
real::Descriptor connect_to_server(const Address& address, Duration within);

constexpr std::size_t answer_bytes_max = std::size_t{256} << 20;

// Sends `question` and returns what comes until the other end closes, or falls silent after it has said something.
// Throws NoAnswer.
std::string ask_server(const Address& address, std::string_view question, Duration within);

enum class Method { get, post };

// The body of what a server of HTTP/1.x answers. Throws NoAnswer, also for any status but 200.
std::string ask_http(const Address& address, Method method, std::string_view path, Duration within);

}  // namespace rollcall::watch
