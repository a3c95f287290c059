#pragma once

// Requests to servers of other programs, which may be slow, rude, or dead: each has a deadline and a size limit.

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

// The reason why no answer came; one line.
struct NoAnswer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns a nonblocking connection. Throws NoAnswer.
real::Descriptor connect_to_server(const Address& address, Duration within);

constexpr std::size_t answer_bytes_max = std::size_t{256} << 20;

// Sends `question` and returns everything received until the other end closes, or falls silent after an answer has
// begun. Throws NoAnswer.
std::string ask_server(const Address& address, std::string_view question, Duration within);

enum class Method { get, post };

// Returns the body of the answer of a server of HTTP/1.x. Throws NoAnswer, also for any status except 200.
std::string ask_http(const Address& address, Method method, std::string_view path, Duration within);

}  // namespace rollcall::watch
