#pragma once

// Connects the supervisors of several nodes. Those of the other nodes connect to that of node 0, prove that they know
// the job's token, and report the state of their ranks once a second. When nothing moves anywhere, node 0 asks for
// rings and stacks.
//
// Unknown peers are refused (real/rank/greeting.h). No peer is ever waited for: a slow or dead supervisor costs its
// node's evidence, and the job nothing.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "real/process/process.h"
#include "real/rank/frames.h"
#include "real/rank/greeting.h"
#include "scenarios/watch/network.h"
#include "sim/base/time.h"
#include "traces/watch/stall.h"

namespace rollcall::watch {

struct NodeOptions {
  int node = 0;  // 0: the others connect to it
  Address meet;  // of node 0
  std::string token;
};

enum class NodeFrame : std::uint8_t { challenge = 1, proof, welcome, moments, collect, file, collected };

std::string encode_moments(const std::vector<RankMoment>& ranks);
// Returns nothing for bytes that are not moments.
std::optional<std::vector<RankMoment>> decode_moments(std::string_view bytes);

// How the names of a rank's files end: "rank_3.ring".
inline constexpr std::array<std::string_view, 4> files_of_ranks = {".ring", ".stack", ".held", ".error"};

// "rank_3.ring", "watch.log": true for the files that a node may send, and for no path that leads elsewhere.
bool is_name_of_evidence(std::string_view name);

// Node 0's side.
class NodeHub {
 public:
  // Listens at `meet` and nowhere else. Files go to `folder`. Throws std::runtime_error if that is not possible.
  NodeHub(const NodeOptions& options, std::string folder);

  // Handles everything received since the last call. Never blocks.
  void serve(Time now);
  // The state of the ranks of all other nodes, as last reported.
  std::vector<RankMoment> moments() const;
  // Asks all nodes for their evidence, and waits until it has arrived, or for `within`.
  void collect(Duration within);

  std::size_t connected() const { return peers_.size(); }
  std::size_t refused() const {
    return static_cast<std::size_t>(entrance_.refused());
  }  // unknown peers so far
  std::uint16_t port() const { return entrance_.port(); }

 private:
  struct Peer {
    real::Descriptor connection;
    int node = 0;
    std::string received{};
    bool owes_evidence = false;
  };

  bool hear(Peer& peer);
  bool take(Peer& peer, const real::Packet& packet);
  bool write_file(const Peer& peer, std::string_view content) const;

  std::string folder_;
  real::Entrance entrance_;
  std::vector<Peer> peers_;
  std::map<int, std::vector<RankMoment>> heard_;  // by node; includes nodes that have disconnected
};

// Another node's side.
class NodeMember {
 public:
  explicit NodeMember(NodeOptions options) : options_(std::move(options)) {}

  // Reports the state of the ranks, at most once a second; connects if there is no connection. Returns true if node 0
  // wants evidence.
  bool serve(Time now, const std::vector<RankMoment>& ranks);
  // Sends all evidence in the folder.
  void send_evidence(const std::string& folder);
  bool is_connected() const { return is_welcome_; }

 private:
  void connect(Time now);
  bool hear(const real::Packet& packet);
  void send(NodeFrame kind, std::string_view content);
  void drop();

  NodeOptions options_;
  real::Descriptor connection_;
  std::string received_;
  std::optional<real::Reply> reply_;  // to the challenge
  Time tried_at_ = -never / 2;
  Time said_at_ = -never / 2;
  bool is_welcome_ = false;
};

}  // namespace rollcall::watch
