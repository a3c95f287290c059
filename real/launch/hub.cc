#include "real/launch/hub.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <system_error>

#include "real/rank/encode_store.h"
#include "real/rank/sockets.h"
#include "sim/base/error.h"

namespace rollcall::real {
namespace {

void send_to(const Descriptor& connection, const Frame& content) {
  try {
    send_all(connection, frame(content));
  } catch (const Disconnected&) {
    // its connection is dropped when it is next polled
  }
}

}  // namespace

void Hub::listen(const std::string& address, std::uint16_t port, std::string token) {
  entrance_.emplace(listen_on(address, port), std::move(token), "rank", hub_version);
}

Descriptor Hub::connect() {
  auto [here, there] = connected_pair();
  clients_.push_back({.connection = std::move(here), .received = {}});
  return std::move(there);
}

void Hub::watch(std::vector<pollfd>& polled) const {
  if (entrance_) {
    entrance_->watch(polled);
  }
  for (const Client& client : clients_) {
    polled.push_back({client.connection.number(), POLLIN, 0});
  }
}

std::vector<Hub::LogConnection> Hub::serve() {
  if (entrance_) {
    for (Entrance::Guest& guest : entrance_->serve(clock_.now())) {
      clients_.push_back({.connection = std::move(guest.connection), .received = {}});
    }
  }
  std::vector<pollfd> polled;
  watch(polled);
  poll_all(polled, 0);
  const std::size_t first = polled.size() - clients_.size();
  std::vector<LogConnection> logs;
  for (std::size_t i = clients_.size(); i-- > 0;) {  // from the back, because some are erased
    if (polled[first + i].revents != 0 && !hear(clients_[i], logs)) {
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  answer_all();
  return logs;
}

// False if the client is gone or sends nonsense, or if its connection now carries a log.
bool Hub::hear(Client& client, std::vector<LogConnection>& logs) {
  const std::string bytes = receive_some(client.connection);
  try {
    client.received += bytes;
    return !bytes.empty() && take_call(client, logs);
  } catch (const std::system_error&) {
    throw;  // not the client's fault
  } catch (const std::runtime_error&) {
    return false;
  }
}

// Likewise.
bool Hub::take_call(Client& client, std::vector<LogConnection>& logs) {
  const std::optional<Frame> content = take_frame(client.received);
  if (!content) {
    return true;
  }
  if (content->kind == FrameKind::call) {
    client.request = request_of(*content);  // the client sends the next after the answer
    return true;
  }
  if (content->kind == FrameKind::log) {
    Rank rank = -1;
    std::from_chars(content->key.data(), content->key.data() + content->key.size(), rank);
    send_to(client.connection, {FrameKind::answer, {}, std::to_string(clock_.now())});
    logs.push_back({rank, std::move(client.connection), std::move(client.received)});
  }
  return false;
}

Hub::Request Hub::request_of(const Frame& content) {
  Request request{nullptr, decode_value<StoreCall>(content.value), {}};
  if (!is_sound(request.call)) {
    throw std::runtime_error("a call on the store is invalid");
  }
  request.store = &stores_[content.key];
  if (request.call.timeout) {
    request.until = clock_.now() + *request.call.timeout;
  }
  return request;
}

// Answers requests until none can be answered: a key that one rank sets may be what another waits for.
void Hub::answer_all() {
  for (bool moved = true; moved;) {
    moved = false;
    for (Client& client : clients_) {
      moved = (client.request && answer(client)) || moved;
    }
  }
}

// False if the client has to wait.
bool Hub::answer(Client& client) {
  const Request& request = *client.request;
  Frame reply{FrameKind::answer, {}, {}};
  if (!request.store->awaited_by(request.call).empty()) {
    if (!request.until || clock_.now() < *request.until) {
      return false;
    }
    reply.kind = FrameKind::late;
  } else {
    try {
      reply.value = encode_value(request.store->apply(request.call));
    } catch (const ValueError& error) {
      reply = {FrameKind::refusal, {}, error.what()};
    }
  }
  client.request.reset();
  send_to(client.connection, reply);
  return true;
}

}  // namespace rollcall::real
