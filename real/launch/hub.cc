#include "real/launch/hub.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "real/launch/sockets.h"

namespace rollcall::real {
namespace {

void answer(const Descriptor& connection, const std::string& value) {
  try {
    send_all(connection, frame({FrameKind::answer, {}, value}));
  } catch (const std::runtime_error&) {
    // it has gone; its connection is dropped when it is next looked at
  }
}

}  // namespace

Hub::Hub(std::uint16_t port, const RunClock& clock) : clock_(clock), listener_(listen_on(port)) {}

void Hub::watch(std::vector<pollfd>& polled) const {
  polled.push_back({listener_.number(), POLLIN, 0});
  for (const Client& client : clients_) {
    polled.push_back({client.connection.number(), POLLIN, 0});
  }
}

std::vector<Hub::LogConnection> Hub::serve() {
  std::vector<pollfd> polled;
  watch(polled);
  ::poll(polled.data(), polled.size(), 0);
  std::vector<LogConnection> logs;
  for (std::size_t i = clients_.size(); i > 0; --i) {  // from the back: some go
    if (polled[i].revents != 0 && !serve(clients_[i - 1], logs)) {
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    }
  }
  if (polled.front().revents != 0) {
    if (Descriptor connection = accept_from(listener_); connection.is_open()) {
      clients_.push_back({.connection = std::move(connection), .received = {}, .waits_for = {}});
    }
  }
  return logs;
}

// False when the client has gone, or its connection now carries a log.
bool Hub::serve(Client& client, std::vector<LogConnection>& logs) {
  const std::string bytes = receive_some(client.connection);
  if (bytes.empty()) {
    return false;
  }
  client.received += bytes;
  while (const std::optional<Frame> content = take_frame(client.received)) {
    switch (content->kind) {
      case FrameKind::set:
        set(*content);
        break;
      case FrameKind::get:
        if (const auto value = values_.find(content->key); value != values_.end()) {
          answer(client.connection, value->second);
        } else {
          client.waits_for.push_back(content->key);
        }
        break;
      case FrameKind::log: {
        Rank rank = -1;
        std::from_chars(content->key.data(), content->key.data() + content->key.size(), rank);
        answer(client.connection, std::to_string(clock_.now()));
        logs.push_back({rank, std::move(client.connection), std::move(client.received)});
        return false;
      }
      case FrameKind::answer:
        return false;  // nobody answers the hub
    }
  }
  return true;
}

void Hub::set(const Frame& content) {
  values_[content.key] = content.value;
  for (Client& client : clients_) {
    if (std::erase(client.waits_for, content.key) > 0) {
      answer(client.connection, content.value);
    }
  }
}

}  // namespace rollcall::real
