#include "scenarios/watch/nodes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/core.h>

#include "real/rank/proof.h"
#include "real/rank/sockets.h"
#include "scenarios/watch/clock.h"

namespace rollcall::watch {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t head_bytes = 5;
constexpr std::size_t moment_bytes = 14;
constexpr std::size_t strangers_max = 64;
constexpr Duration proof_within = 5 * second;
constexpr Duration beat_every = second;
constexpr Duration connect_again_after = 2 * second;

template <typename T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T get(std::string_view bytes, std::size_t place) {
  T value = 0;
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

struct Frame {
  NodeFrame kind{};
  std::string content;
};

// Removes the first frame from `bytes`; returns nothing if it is incomplete. `too_long`: it never will be
// complete.
std::optional<Frame> take_frame(std::string& bytes, std::size_t bytes_max, bool& too_long) {
  if (bytes.size() < head_bytes) {
    return std::nullopt;
  }
  const auto length = get<std::uint32_t>(bytes, 0);
  too_long = length > bytes_max;
  if (too_long || bytes.size() < head_bytes + length) {
    return std::nullopt;
  }
  Frame frame{static_cast<NodeFrame>(bytes[4]), bytes.substr(head_bytes, length)};
  bytes.erase(0, head_bytes + length);
  return frame;
}

// Reads what is available. Returns false if the other end has disconnected.
bool receive(const real::Descriptor& connection, std::string& bytes, std::size_t bytes_max) {
  std::array<char, 65536> buffer;
  while (bytes.size() <= bytes_max + head_bytes) {
    const ssize_t count = ::recv(connection.number(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) {
      bytes.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else {
      return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
  }
  return true;
}

// Sends few bytes, for which there is always room; if there is none, the other end does not read.
bool send_at_once(const real::Descriptor& connection, std::string_view bytes) {
  return ::send(connection.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace

std::string node_frame(NodeFrame kind, std::string_view content) {
  std::string bytes;
  put(bytes, static_cast<std::uint32_t>(content.size()));
  put(bytes, static_cast<std::uint8_t>(kind));
  return bytes += content;
}

std::string encode_moments(const std::vector<RankMoment>& ranks) {
  std::string bytes;
  for (const RankMoment& rank : ranks) {
    put(bytes, std::int32_t{rank.rank});
    put(bytes, rank.moves);
    const unsigned flags = (rank.waits ? 1U : 0U) | (rank.is_starting ? 2U : 0U);
    put(bytes, static_cast<std::uint8_t>(flags));
    put(bytes, static_cast<std::uint8_t>(rank.activity));
  }
  return bytes;
}

std::optional<std::vector<RankMoment>> decode_moments(std::string_view bytes) {
  std::vector<RankMoment> ranks;
  if (bytes.size() % moment_bytes != 0) {
    return std::nullopt;
  }
  for (std::size_t place = 0; place < bytes.size(); place += moment_bytes) {
    RankMoment& rank = ranks.emplace_back();
    rank.rank = get<std::int32_t>(bytes, place);
    rank.moves = get<std::uint64_t>(bytes, place + 4);
    rank.waits = (static_cast<unsigned char>(bytes[place + 12]) & 1U) != 0;
    rank.is_starting = (static_cast<unsigned char>(bytes[place + 12]) & 2U) != 0;
    const auto activity = static_cast<std::uint8_t>(bytes[place + 13]);
    if (rank.rank < 0 || activity > static_cast<std::uint8_t>(RankMoment::Activity::gone)) {
      return std::nullopt;
    }
    rank.activity = static_cast<RankMoment::Activity>(activity);
  }
  return ranks;
}

bool is_name_of_evidence(std::string_view name) {
  constexpr std::string_view begin = "rank_";
  constexpr std::array<std::string_view, 4> kinds = {".ring", ".stack", ".held", ".error"};
  if (name == "watch.log") {
    return true;
  }
  if (!name.starts_with(begin)) {
    return false;
  }
  name.remove_prefix(begin.size());
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  return digits > 0 && digits < 8 &&
         std::find(kinds.begin(), kinds.end(), name.substr(digits)) != kinds.end();
}

NodeHub::NodeHub(NodeOptions options, std::string folder)
    : options_(std::move(options)),
      folder_(std::move(folder)),
      listener_(real::listen_at(options_.meet.host, options_.meet.port)),
      port_(real::own_port(listener_)) {}

void NodeHub::accept_all(Time now) {
  for (;;) {
    real::Descriptor connection = real::accept_from(listener_);
    if (!connection.is_open()) {
      return;
    }
    const auto strangers =
        std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.node < 0; });
    if (static_cast<std::size_t>(strangers) >= strangers_max) {
      ++refused_;
      continue;
    }
    Peer peer{std::move(connection), {}, real::nonce(), now};
    if (send_at_once(peer.connection, node_frame(NodeFrame::challenge, peer.nonce))) {
      peers_.push_back(std::move(peer));
    }
  }
}

void NodeHub::serve(Time now) {
  accept_all(now);
  std::erase_if(peers_, [&](Peer& peer) {
    const bool goes_on = hear(peer, now);
    refused_ += !goes_on && peer.node < 0 ? 1 : 0;
    return !goes_on;
  });
}

// Returns false if the connection is of no more use.
bool NodeHub::hear(Peer& peer, Time now) {
  if (peer.node < 0 && now - peer.since > proof_within) {
    return false;
  }
  const bool is_there =
      receive(peer.connection, peer.received, peer.node < 0 ? stranger_bytes_max : frame_bytes_max);
  for (;;) {
    bool too_long = false;
    const std::optional<Frame> frame =
        take_frame(peer.received, peer.node < 0 ? stranger_bytes_max : frame_bytes_max, too_long);
    if (too_long || (frame && !take(peer, frame->kind, frame->content))) {
      return false;
    }
    if (!frame) {
      return is_there;
    }
  }
}

bool NodeHub::take(Peer& peer, NodeFrame kind, std::string_view content) {
  if (peer.node < 0) {
    return kind == NodeFrame::proof && check_proof(peer, content);
  }
  if (kind == NodeFrame::moments) {
    const std::optional<std::vector<RankMoment>> ranks = decode_moments(content);
    if (ranks) {
      heard_[peer.node] = *ranks;
    }
    return ranks.has_value();
  }
  if (kind == NodeFrame::file) {
    return write_file(peer, content);
  }
  peer.owes_evidence = peer.owes_evidence && kind != NodeFrame::collected;
  return kind == NodeFrame::collected;
}

bool NodeHub::check_proof(Peer& peer, std::string_view content) {
  if (content.size() != 2 * real::nonce_bytes + sizeof(std::int32_t)) {
    return false;
  }
  const std::string_view theirs = content.substr(0, real::nonce_bytes);
  const auto node = get<std::int32_t>(content, 2 * real::nonce_bytes);
  if (node <= 0 || !real::is_equal(content.substr(real::nonce_bytes, real::nonce_bytes),
                                   real::proof_of(options_.token, "member", peer.nonce, theirs))) {
    return false;
  }
  std::erase_if(peers_, [&](const Peer& other) { return &other != &peer && other.node == node; });
  peer.node = node;
  return send_at_once(peer.connection, node_frame(NodeFrame::welcome,
                                                  real::proof_of(options_.token, "hub", theirs, peer.nonce)));
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

std::size_t NodeHub::connected() const {
  return static_cast<std::size_t>(
      std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.node >= 0; }));
}

void NodeHub::collect(Duration within) {
  for (Peer& peer : peers_) {
    peer.owes_evidence = peer.node >= 0 && send_at_once(peer.connection, node_frame(NodeFrame::collect, ""));
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
void NodeMember::send(std::string_view bytes) {
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
  if (!receive(connection_, received_, stranger_bytes_max)) {
    drop();
    return false;
  }
  bool is_asked = false;
  bool too_long = false;
  while (const std::optional<Frame> frame = take_frame(received_, stranger_bytes_max, too_long)) {
    if (frame->kind == NodeFrame::challenge && frame->content.size() == real::nonce_bytes &&
        expected_.empty()) {
      nonce_ = real::nonce();
      expected_ = real::proof_of(options_.token, "hub", nonce_, frame->content);
      std::string proof = nonce_ + real::proof_of(options_.token, "member", frame->content, nonce_);
      put(proof, std::int32_t{options_.node});
      send(node_frame(NodeFrame::proof, proof));
    } else if (frame->kind == NodeFrame::welcome && real::is_equal(frame->content, expected_) &&
               !expected_.empty()) {
      is_welcome_ = true;
    } else if (frame->kind == NodeFrame::collect && is_welcome_) {
      is_asked = true;
    } else {
      too_long = true;
    }
    if (too_long) {
      break;
    }
  }
  if (too_long) {  // the other end does not know the token
    drop();
    expected_.clear();
    return false;
  }
  if (is_welcome_ && now - said_at_ >= beat_every) {
    said_at_ = now;
    send(node_frame(NodeFrame::moments, encode_moments(ranks)));
  }
  expected_ = connection_.is_open() ? expected_ : std::string();
  return is_asked;
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
    if (content.view().size() <= frame_bytes_max) {
      send(node_frame(NodeFrame::file, content.view()));
    }
  }
  send(node_frame(NodeFrame::collected, ""));
}

}  // namespace rollcall::watch
