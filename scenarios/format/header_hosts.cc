// The part of HeaderReader that reads where ranks are: on a cluster's nodes one after another, or on hosts that
// the file names.

#include <algorithm>

#include <fmt/core.h>

#include "scenarios/format/header_reader.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/program/rank_sets.h"

namespace rollcall::scenario {
namespace {

// The same as the schema's gpus_per_node. No machine has more, and a device's number must fit its type.
constexpr Rank ranks_per_host_max = 1024;
constexpr Rank nowhere = -1;

// The host of each rank, as in the file's "hosts".
class HostTable {
 public:
  explicit HostTable(Rank world_size) : host_of_(static_cast<std::size_t>(world_size), nowhere) {}

  // Adds the next host. Returns a rank that already has one, or `nowhere`.
  Rank add(const RankSet& ranks) {
    const auto count = static_cast<Rank>(ranks.size());
    const Rank first = number_ * size_;
    const auto world_size = static_cast<Rank>(host_of_.size());
    are_blocks_ = are_blocks_ && count > 0 && ranks == RankSet::range(first, first + count - 1) &&
                  (number_ == 0 || count == size_ || (count < size_ && first + count == world_size));
    size_ = std::max(size_, count);
    for (const Rank rank : ranks.to_vector()) {
      Rank& host = host_of_[static_cast<std::size_t>(rank)];
      if (host != nowhere) {
        return rank;
      }
      host = number_;
    }
    ++number_;
    return nowhere;
  }

  // The first rank without a host, or `nowhere`.
  Rank homeless() const {
    const auto found = std::ranges::find(host_of_, nowhere);
    return found == host_of_.end() ? nowhere : static_cast<Rank>(found - host_of_.begin());
  }
  Rank count() const { return number_; }
  Rank largest() const { return size_; }
  // True if the hosts have consecutive ranks and one size, except the last: the engine describes these by their size.
  bool are_blocks() const { return are_blocks_; }
  std::vector<Rank> take() { return std::move(host_of_); }

 private:
  std::vector<Rank> host_of_;
  Rank number_ = 0;
  Rank size_ = 0;
  bool are_blocks_ = true;
};

}  // namespace

void HeaderReader::read_cluster() {
  const auto given = root_.find("cluster");
  cluster_ = given ? scenario::read_cluster(*given, diagnostics_) : std::nullopt;
  if (!cluster_) {
    return;
  }
  scenario_.options.cluster = cluster_->cluster;
  scenario_.options.residuals = cluster_->residuals;
  if (!root_.find("hosts")) {
    spread_over_nodes(*cluster_);
  }
}

void HeaderReader::spread_over_nodes(const ClusterSetting& setting) {
  const std::int64_t world_size = scenario_.options.world_size;
  // More than all ranks is the same as all ranks.
  const std::int64_t ranks_per_host = std::min(setting.gpus_per_node, world_size);
  const std::int64_t needed = (world_size + ranks_per_host - 1) / ranks_per_host;
  if (setting.nodes && setting.nodes->integer() < needed) {
    error(*setting.nodes,
          fmt::format("{} ranks need {} nodes of {} GPUs", world_size, needed, setting.gpus_per_node));
  }
  scenario_.options.ranks_per_host = static_cast<Rank>(ranks_per_host);
}

void HeaderReader::read_hosts() {
  const auto hosts = root_.find("hosts");
  if (!hosts) {
    return;
  }
  HostTable table(scenario_.options.world_size);
  for (Json host : hosts->children()) {
    const auto ranks = read_ranks(host, scenario_.options.world_size, diagnostics_);
    if (!ranks) {
      return;
    }
    if (const Rank twice = table.add(*ranks); twice != nowhere) {
      error(host, fmt::format("rank {} has two hosts", twice));
      return;
    }
  }
  if (const Rank homeless = table.homeless(); homeless != nowhere) {
    error(*hosts, fmt::format("rank {} has no host", homeless));
  } else if (holds_hosts(*hosts, table.count(), table.largest())) {
    scenario_.options.ranks_per_host = table.largest();
    if (!table.are_blocks()) {
      scenario_.options.hosts = table.take();
    }
  }
}

// True if the machines can be these hosts.
bool HeaderReader::holds_hosts(const Json& hosts, Rank count, Rank largest) {
  if (largest > ranks_per_host_max) {
    error(hosts, fmt::format("a host holds at most {} ranks", ranks_per_host_max));
    return false;
  }
  if (cluster_ && largest > cluster_->gpus_per_node) {
    error(hosts, fmt::format("a host has {} ranks, and a node of the cluster {} GPUs", largest,
                             cluster_->gpus_per_node));
    return false;
  }
  if (cluster_ && cluster_->nodes && cluster_->nodes->integer() < count) {
    error(*cluster_->nodes, fmt::format("{} hosts need {} nodes", count, count));
    return false;
  }
  return true;
}

}  // namespace rollcall::scenario
