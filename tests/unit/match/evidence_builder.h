#pragma once

// EvidenceBuilder: the end of a run, made by hand, without running ranks. A test says which rank called what and how
// every rank ended; the builder keeps the matcher, the scopes and the incidents as an engine would.
//
//   EvidenceBuilder run(3);
//   run.waits({1, 2}, all_reduce(4));
//   run.finishes({0});
//   const Verdict verdict = run.judge();

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/judge/judge.h"
#include "sim/match/evidence.h"

namespace rollcall::check::test {

inline Op all_reduce(std::int64_t numel, Dtype dtype = Dtype::float32, ReduceOp reduce = ReduceOp::sum) {
  Op op;
  op.kind = OpKind::all_reduce;
  op.numel = numel;
  op.dtype = dtype;
  op.reduce = reduce;
  return op;
}
inline Op broadcast(std::int64_t numel, Rank root) {
  Op op;
  op.kind = OpKind::broadcast;
  op.numel = numel;
  op.root = root;
  return op;
}
inline Op barrier() { return {}; }
inline Op on(GroupId group, Op op) {
  op.group = group;
  return op;
}
inline Op at_line(std::uint32_t line, Op op) {
  op.site = {"train.py", line, 1};
  return op;
}

class EvidenceBuilder {
 public:
  explicit EvidenceBuilder(Rank world_size, std::string backend = "gloo")
      : backend_(std::move(backend)), status_(static_cast<std::size_t>(world_size)) {
    group("world", RankSet::range(0, world_size - 1));
  }

  GroupId group(std::string name, const RankSet& ranks) {
    members_.push_back({static_cast<GroupId>(members_.size()), std::move(name), ranks.to_vector()});
    matchers_.emplace_back(members_.back().size());
    groups_.push_back({&members_.back(), &matchers_.back()});
    return members_.back().id;
  }

  // Returns `op`, issued inside the scope `name`: a user's label, or a strict one as in the Join protocol.
  Op labeled(std::string_view name, Op op) {
    op.scope = scopes_.enter(op.scope, name);
    return op;
  }
  Op strict(std::string_view name, Op op) {
    op.scope = scopes_.enter_paired(op.scope, name, name);
    return op;
  }
  Op paired(std::string_view name, std::string_view pairing, Op op) {
    op.scope = scopes_.enter_paired(op.scope, name, pairing);
    return op;
  }
  // Returns the same call, made by a joined rank's hook.
  Op hook(std::string_view name, const Op& op) {
    Op shadow = strict(name, op);
    shadow.shadow = true;
    return shadow;
  }

  // Each of these ranks issues `op` and continues.
  void issues(const RankSet& ranks, const Op& op) {
    for (const Rank rank : ranks.to_vector()) {
      arrive(rank, op);
    }
  }
  // Each of these ranks issues `op` and waits for it; the wait may end at once.
  void waits(const RankSet& ranks, const Op& op) {
    for (const Rank rank : ranks.to_vector()) {
      const Rank member = members_[op.group].rank_of(rank);
      RankStatus& status = of(rank);
      status.group = op.group;
      status.group_rank = member;
      status.seq = matchers_[op.group].calls_of(member);
      status.state = RankStatus::State::waiting;
      arrive(rank, op);
    }
  }
  void finishes(const RankSet& ranks) { end(ranks, RankStatus::State::finished); }
  void raises(const RankSet& ranks, std::string type, std::string message) {
    fails(ranks, RankStatus::State::raised, std::move(type), std::move(message));
  }
  void crashes(const RankSet& ranks, std::string message) {
    fails(ranks, RankStatus::State::crashed, "SIGABRT", std::move(message));
  }
  void took_inputs(const RankSet& ranks, std::int64_t inputs) {
    for (const Rank rank : ranks.to_vector()) {
      of(rank).inputs = inputs;
      of(rank).ran_out = true;
    }
  }
  void gives_device(DeviceIncident incident) { device_ = std::move(incident); }
  void reaches_limit(FindingKind limit, std::int64_t value) { limit_ = {limit, value}; }

  // Valid until the next change, and no longer than the builder.
  Evidence evidence() const {
    Evidence all;
    all.backend = backend_;
    all.groups = groups_;
    all.ranks = status_;
    all.exceptions = exceptions_;
    all.scopes = &scopes_;
    all.mispairing = mispairing_;
    all.device = device_;
    all.limit = limit_;
    if (suspect_) {
      const Slot& slot = *matchers_[suspect_->first].find(suspect_->second);
      all.mismatch = incident(suspect_->first, slot, variants_by_call(matchers_[suspect_->first], slot));
    }
    return all;
  }
  Verdict judge() const { return check::judge(evidence()); }
  std::vector<RankClass> classes() const { return classify(evidence()); }
  const ScopeTable& scopes() const { return scopes_; }

 private:
  RankStatus& of(Rank rank) { return status_[static_cast<std::size_t>(rank)]; }

  void arrive(Rank rank, Op op) {
    GroupMatcher& matcher = matchers_[op.group];
    op.rank = members_[op.group].rank_of(rank);
    if (has_tensor(op.kind) && op.tensors.inputs == nullptr) {
      tensors_.push_back(Tensor::zeros({op.numel}, op.dtype, op.device));
      op.tensors.input = tensors_.back().storage();
    }
    Slot& slot = matcher.arrive(op);
    if (slot.differs && !suspect_) {
      suspect_ = {op.group, slot.seq};
    }
    if (slot.phase == Slot::Phase::full && !slot.differs) {
      complete(op.group, slot);
    }
  }

  void complete(GroupId group, Slot& slot) {
    if (!mispairing_ && is_mispaired(slot, scopes_)) {
      mispairing_ = incident(group, slot, variants_by_pairing(matchers_[group], slot, scopes_));
    }
    slot.phase = Slot::Phase::done;
    for (RankStatus& status : status_) {
      if (status.state == RankStatus::State::waiting && status.group == group && status.seq == slot.seq) {
        status.state = RankStatus::State::running;
      }
    }
    matchers_[group].retire();
  }

  Incident incident(GroupId group, const Slot& slot, std::vector<OpVariant> variants) const {
    for (OpVariant& variant : variants) {
      for (Rank& rank : variant.ranks) {
        rank = members_[group].ranks[static_cast<std::size_t>(rank)];
      }
    }
    return {0, group, slot.seq, std::move(variants)};
  }

  void end(const RankSet& ranks, RankStatus::State state) {
    for (const Rank rank : ranks.to_vector()) {
      of(rank).state = state;
    }
  }

  void fails(const RankSet& ranks, RankStatus::State state, std::string type, std::string message) {
    exceptions_.push_back({std::move(type), std::move(message)});
    end(ranks, state);
    for (const Rank rank : ranks.to_vector()) {
      of(rank).exception = static_cast<std::int32_t>(exceptions_.size()) - 1;
    }
  }

  std::string backend_;
  std::deque<GroupMembers> members_;  // deques: evidence points into them
  std::deque<GroupMatcher> matchers_;
  std::vector<GroupEvidence> groups_;
  std::vector<RankStatus> status_;
  std::vector<Exception> exceptions_;
  std::deque<Tensor> tensors_;
  ScopeTable scopes_;
  std::optional<std::pair<GroupId, std::int64_t>> suspect_;  // the first slot whose calls differ
  std::optional<Incident> mispairing_;
  std::optional<DeviceIncident> device_;
  std::optional<LimitIncident> limit_;
};

}  // namespace rollcall::check::test
