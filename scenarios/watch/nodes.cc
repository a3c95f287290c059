#include "scenarios/watch/nodes.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>

#include <fmt/core.h>

#include "real/rank/proof.h"
#include "real/rank/sockets.h"
#include "scenarios/watch/clock.h"
#include "sim/base/encoding.h"

namespace rollcall::watch {

namespace {

namespace fs = std::filesystem;

constexpr Duration beat_every = second;
constexpr Duration connect_again_after = 2 * second;

}  // namespace

std::string encode_moments(const std::vector<RankMoment>& ranks) {
  Encoder encode;
  encode(static_cast<std::uint32_t>(ranks.size()));
  for (const RankMoment& rank : ranks) {
    encode(rank.rank, rank.moves, rank.waits, rank.is_starting, rank.activity);
  }
  return std::move(encode.bytes);
}

std::optional<std::vector<RankMoment>> decode_moments(std::string_view bytes) {
  std::vector<RankMoment> ranks;
  std::uint32_t left = 0;
  Reader read(bytes);
  try {
    for (read(left); left > 0; --left) {
      RankMoment& rank = ranks.emplace_back();
      std::uint8_t waits = 0;
      std::uint8_t is_starting = 0;
      read(rank.rank, rank.moves, waits, is_starting, rank.activity);
      rank.waits = waits != 0;
      rank.is_starting = is_starting != 0;
      if (rank.rank < 0 || rank.activity > RankMoment::Activity::gone) {
        return std::nullopt;
      }
    }
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  return ranks;
}

bool is_name_of_evidence(std::string_view name) {
  constexpr std::string_view begin = "rank_";
  if (name == "watch.log") {
    return true;
  }
  if (!name.starts_with(begin)) {
    return false;
  }
  name.remove_prefix(begin.size());
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  return digits > 0 && digits < 8 &&
         std::ranges::find(files_of_ranks, name.substr(digits)) != files_of_ranks.end();
}

NodeHub::NodeHub(const NodeOptions& options, std::string folder)
    : folder_(std::move(folder)),
      entrance_(real::listen_at(options.meet.host, options.meet.port), options.token, "member") {}

void NodeHub::serve(Time now) {
  std::vector<real::Entrance::Guest> guests;
  try {
    guests = entrance_.serve(now);
  } catch (const std::system_error&) {
    // A watch must not end its job. A member whose connection was lost connects again.
  }
  for (real::Entrance::Guest& guest : guests) {
    // It introduces itself by its number. A node's last connection is the one that counts.
    const std::string& bytes = guest.introduction;
    const int node = bytes.size() == sizeof(std::int32_t) ? decode_value<std::int32_t>(bytes) : 0;
    if (node > 0) {
      std::erase_if(peers_, [&](const Peer& peer) { return peer.node == node; });
      peers_.push_back({std::move(guest.connection), node});
    }
  }
  std::erase_if(peers_, [&](Peer& peer) { return !hear(peer); });
}

// Returns false if the connection is of no more use.
bool NodeHub::hear(Peer& peer) {
  try {
    const bool is_there = real::receive_available(peer.connection, peer.received, real::packet_bytes_max);
    while (const std::optional<real::Packet> packet = real::take_packet(peer.received)) {
      if (!take(peer, *packet)) {
        return false;
      }
    }
    return is_there;
  } catch (const std::runtime_error&) {
    return false;  // a packet is too long, or the connection has failed
  }
}

bool NodeHub::take(Peer& peer, const real::Packet& packet) {
  if (packet.is(NodeFrame::moments)) {
    const std::optional<std::vector<RankMoment>> ranks = decode_moments(packet.content);
    if (ranks) {
      heard_[peer.node] = *ranks;
    }
    return ranks.has_value();
  }
  if (packet.is(NodeFrame::file)) {
    return write_file(peer, packet.content);
  }
  peer.owes_evidence = peer.owes_evidence && !packet.is(NodeFrame::collected);
  return packet.is(NodeFrame::collected);
}

bool NodeHub::write_file(const Peer& peer, std::string_view content) const {
  const std::size_t end = content.find('\0');
  const std::string_view name = content.substr(0, end);
  if (end == std::string_view::npos || !is_name_of_evidence(name)) {
    return false;
  }
  const std::string own =
      name == "watch.log" ? fmt::format("node_{}.watch.log", peer.node) : std::string(name);
  std::ofstream(fs::path(folder_) / own, std::ios::binary) << content.substr(end + 1);
  return true;
}

std::vector<RankMoment> NodeHub::moments() const {
  std::vector<RankMoment> all;
  for (const auto& [node, ranks] : heard_) {
    all.insert(all.end(), ranks.begin(), ranks.end());
  }
  return all;
}

void NodeHub::collect(Duration within) {
  for (Peer& peer : peers_) {
    try {
      peer.owes_evidence = real::send_at_once(peer.connection, real::packet(NodeFrame::collect, ""));
    } catch (const std::system_error&) {
      peer.owes_evidence = false;  // the diagnosis does without its evidence, and says so
    }
  }
  const Time until = monotonic_now() + within;
  const auto owes = [](const Peer& peer) { return peer.owes_evidence; };
  while (monotonic_now() < until && std::any_of(peers_.begin(), peers_.end(), owes)) {
    ::poll(nullptr, 0, 10);
    serve(monotonic_now());
  }
}

void NodeMember::drop() {
  connection_.close();
  received_.clear();
  reply_.reset();
  is_welcome_ = false;
}

void NodeMember::connect(Time now) {
  if (now - tried_at_ < connect_again_after) {
    return;
  }
  tried_at_ = now;
  try {
    connection_ = connect_to_server(options_.meet, second);
  } catch (const NoAnswer&) {
    drop();  // node 0 may start later
  }
}

// A reader that is too slow loses the connection.
void NodeMember::send(NodeFrame kind, std::string_view content) {
  const std::string frame = real::packet(kind, content);
  std::string_view bytes = frame;
  const Time until = monotonic_now() + 2 * second;
  while (connection_.is_open() && !bytes.empty()) {
    const ssize_t sent =
        ::send(connection_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    pollfd polled = {connection_.number(), POLLOUT, 0};
    if ((errno != EAGAIN && errno != EINTR) || monotonic_now() > until || ::poll(&polled, 1, 100) < 0) {
      drop();
    }
  }
}

bool NodeMember::serve(Time now, const std::vector<RankMoment>& ranks) {
  if (!connection_.is_open()) {
    connect(now);
    return false;
  }
  bool is_asked = false;
  try {
    if (!real::receive_available(connection_, received_, real::greeting_bytes_max)) {
      throw std::runtime_error("node 0 has disconnected");
    }
    while (const auto packet = real::take_packet(received_, real::greeting_bytes_max)) {
      is_asked = hear(*packet) || is_asked;
    }
  } catch (const std::runtime_error&) {
    drop();
    return false;
  }
  if (is_welcome_ && now - said_at_ >= beat_every) {
    said_at_ = now;
    send(NodeFrame::moments, encode_moments(ranks));
  }
  return is_asked;
}

// Returns true if node 0 wants evidence. Throws std::runtime_error if the other end does not know the token.
bool NodeMember::hear(const real::Packet& packet) {
  if (packet.is(NodeFrame::challenge) && !reply_) {
    reply_ = real::reply_to(packet.content, options_.token, "member");
    send(NodeFrame::proof, reply_->proof + encode_value(std::int32_t{options_.node}));
  } else if (packet.is(NodeFrame::welcome) && reply_ && real::is_equal(packet.content, reply_->welcome)) {
    is_welcome_ = true;
  } else if (!packet.is(NodeFrame::collect) || !is_welcome_) {
    throw std::runtime_error("what listens at node 0's address is not node 0");
  }
  return packet.is(NodeFrame::collect);
}

void NodeMember::send_evidence(const std::string& folder) {
  std::error_code gone;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, gone)) {
    const std::string name = entry.path().filename();
    if (!is_welcome_ || !is_name_of_evidence(name)) {
      continue;
    }
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream content;
    content << name << '\0' << file.rdbuf();
    if (content.view().size() <= real::packet_bytes_max) {
      send(NodeFrame::file, content.view());
    }
  }
  send(NodeFrame::collected, "");
}

}  // namespace rollcall::watch
