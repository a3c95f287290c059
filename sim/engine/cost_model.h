#pragma once

// How long matched calls take: the engine's question to a model. The run's options choose the
// model; the engine asks once per full slot and once per message.

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sim/c10d/process_group.h"
#include "sim/cost/contention.h"
#include "sim/cost/group_cost.h"

namespace rollcall::sim {

struct Options;

class CostModel {
 public:
  virtual ~CostModel() = default;

  // True if concurrent calls slow each other down. Then `demand_of` says which resources they use.
  virtual bool contends() const { return false; }
  virtual cost::Demand demand_of(const Op& /*op*/, const GroupMembers& /*group*/) { return {}; }

  // From the last member's arrival to the completion everywhere; more than 0, so that a loop of calls ends
  // in a limit. `op` is one member's call: numel and dtype are its own input's.
  virtual Duration of(const Op& op, const GroupMembers& group) = 0;
  // The same for a message that both ends have posted. Both are in `group`.
  virtual Duration of_message(const Op& send, Rank receiver, const GroupMembers& group) = 0;
  // The interval that contains the times of nine in ten such calls, as text for people; empty if unknown.
  virtual std::string interval_of(const Op& /*op*/, const GroupMembers& /*group*/) { return {}; }
};

// The textbook model: a latency per step of a binary tree over the members, and every byte crosses one
// uniform link. It orders events and makes timelines readable; it does not predict a real cluster (see
// docs/decisions/0004-uniform-cost.md). Integer arithmetic.
class UniformCost final : public CostModel {
 public:
  static constexpr Duration step_latency = 5 * microsecond;
  static constexpr std::int64_t bytes_per_microsecond = 25'000;  // 25 GB/s

  Duration of(const Op& op, const GroupMembers& group) override;
  Duration of_message(const Op& send, Rank receiver, const GroupMembers& group) override;

  // `bytes` is one member's input.
  Duration of(OpKind kind, std::int64_t bytes, Rank members) const;
};

// NCCL's tuner on a cluster, for each group with the nodes of its members. Answers are
// cached: training repeats itself.
class NcclCost final : public CostModel {
 public:
  // Ranks are on the cluster's nodes in blocks of `ranks_per_host`, unless `hosts` gives each rank's node.
  NcclCost(const cost::Cluster& cluster, Rank ranks_per_host, bool with_residuals,
           std::vector<Rank> hosts = {});

  Duration of(const Op& op, const GroupMembers& group) override;
  Duration of_message(const Op& send, Rank receiver, const GroupMembers& group) override;
  // Empty unless times are measured expectations rather than NCCL's own estimates.
  std::string interval_of(const Op& op, const GroupMembers& group) override;
  bool contends() const override { return with_residuals_; }
  cost::Demand demand_of(const Op& op, const GroupMembers& group) override;

 private:
  using Key = std::tuple<OpKind, Dtype, ReduceOp, std::int64_t, bool>;  // the last two: bytes; on one node
  struct Answer {
    Duration time = 0;
    std::int64_t port_share = 0;
    std::int64_t nic_share = 0;
    int channels = 0;
  };
  struct Group {
    const cost::GroupCost* model = nullptr;
    std::vector<std::int32_t> nics;  // that its members use
    Key last_key{};
    Answer last{};
    std::map<Key, Answer> known;
  };

  Group& group_of(const GroupMembers& members);
  const Answer& ask(Group& group, const Key& key);
  const Answer& ask(const Op& op, const GroupMembers& members);
  std::vector<std::int32_t> nics_of(const std::vector<Rank>& ranks) const;
  Rank node_of(Rank rank) const {
    return hosts_.empty() ? rank / ranks_per_host_ : hosts_[static_cast<std::size_t>(rank)];
  }
  int nodes_of(const std::vector<Rank>& ranks) const;

  cost::Cluster cluster_;
  Rank ranks_per_host_;
  bool with_residuals_;
  std::vector<Rank> hosts_;
  std::map<std::pair<int, int>, std::unique_ptr<cost::GroupCost>> models_;  // by ranks and nodes
  std::deque<Group> groups_;  // by GroupId; addresses are stable, because calls in flight refer to them
};

// The model that the options ask for: NCCL's on nccl with a cluster, the uniform one otherwise.
std::unique_ptr<CostModel> make_cost_model(const Options& options);

}  // namespace rollcall::sim
