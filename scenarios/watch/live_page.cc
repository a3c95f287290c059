#include "scenarios/watch/live_page.h"

#include <array>
#include <exception>
#include <optional>
#include <string_view>

#include <sys/socket.h>
#include <unistd.h>

#include <fmt/core.h>

#include "real/rank/proof.h"
#include "real/rank/sockets.h"

namespace rollcall::watch {

namespace {

constexpr std::size_t answers_max = 4;  // at a time
constexpr std::size_t request_bytes_max = 8192;
constexpr int refresh_s = 10;

std::string secret_word() {
  std::string word;
  for (const char byte : real::nonce().substr(0, 16)) {
    word += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return word;
}

std::string response(std::string_view status, std::string_view type, std::string_view body,
                     std::string_view more = "") {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n{}\r\n{}",
      status, type, body.size(), more, body);
}

// Reads up to the empty line; returns nothing if it does not come in time, or there are too many bytes.
std::optional<std::string> read_request(const real::Descriptor& connection) {
  std::string request;
  for (std::array<char, 2048> bytes; request.find("\r\n\r\n") == std::string::npos;) {
    const ssize_t count = ::recv(connection.number(), bytes.data(), bytes.size(), 0);
    if (count <= 0 || request.size() + static_cast<std::size_t>(count) > request_bytes_max) {
      return std::nullopt;
    }
    request.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return request;
}

// True if the request names this machine: a foreign page whose name resolves to this machine would not. The port may
// differ: it may be a tunnel's.
bool names_this_machine(std::string_view request) {
  for (const std::string_view name : {"localhost", "127.0.0.1"}) {
    for (const std::string_view field : {"\r\nHost: ", "\r\nhost: "}) {
      const std::string wanted = fmt::format("{}{}", field, name);
      const std::size_t place = request.find(wanted);
      if (place != std::string_view::npos &&
          std::string_view(":\r").find(request[place + wanted.size()]) != std::string_view::npos) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

LivePage::LivePage(std::uint16_t port, std::function<std::string()> render, Patience patience)
    : render_(std::move(render)),
      patience_(patience),
      listener_(real::listen_at("127.0.0.1", port)),
      port_(real::own_port(listener_)),
      secret_(secret_word()) {}

std::string LivePage::url() const { return fmt::format("http://127.0.0.1:{}/{}", port_, secret_); }

void LivePage::watch(std::vector<pollfd>& polled) const { polled.push_back({listener_.number(), POLLIN, 0}); }

void LivePage::serve() {
  std::erase_if(answers_, [](const Answer& answer) {
    pollfd ended = {answer.end.number(), POLLIN, 0};
    return ::poll(&ended, 1, 0) > 0;
  });
  while (answers_.size() < answers_max) {
    const real::Descriptor connection = real::accept_from(listener_);
    if (!connection.is_open()) {
      return;  // no connection is waiting
    }
    real::ChildProcess process([&] {
      answer(connection);
      ::_exit(0);
    });
    real::Descriptor end = process.watch();
    answers_.push_back({std::move(process), std::move(end)});
  }
}

// Runs in a process of its own, which the kernel ends when the time is over. A limit for each byte would not be enough:
// a client that sends or reads one now and then would occupy a slot forever.
void LivePage::answer(const real::Descriptor& connection) const {
  ::alarm(patience_.request_s);
  const std::optional<std::string> request = read_request(connection);
  if (!request) {
    return;
  }
  ::alarm(patience_.answer_s);
  const std::string text = response_to(*request);
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t sent = ::send(connection.number(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;  // it has disconnected, or does not read
    }
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string LivePage::response_to(const std::string& request) const {
  if (!request.starts_with("GET ")) {
    return response("405 Method Not Allowed", "text/plain", "this page can only be read\n");
  }
  const std::string wanted = fmt::format("GET /{} ", secret_);
  if (!names_this_machine(request) || !real::is_equal(request.substr(0, wanted.size()), wanted)) {
    return response("404 Not Found", "text/plain", "there is no such page\n");
  }
  try {
    return response("200 OK", "text/html", render_(), fmt::format("Refresh: {}\r\n", refresh_s));
  } catch (const std::exception& error) {
    return response("500 Internal Server Error", "text/plain", error.what());
  }
}

}  // namespace rollcall::watch
