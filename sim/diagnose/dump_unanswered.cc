#include "sim/diagnose/dump_unanswered.h"

#include <algorithm>
#include <map>

namespace rollcall::check {

namespace {

// Since torch 2.5, batches carry a number of their own; before, it stayed 0.
bool has_batch_from(const RankOps& ops, const DumpRecord& record) {
  return record.p2p_seq > 0 && std::any_of(ops.ops.begin(), ops.ops.end(), [&](const DumpOp& op) {
           return op.kind == DumpOp::Kind::batch && op.group == record.group &&
                  ops.record_of(op).p2p_seq >= record.p2p_seq;
         });
}

}  // namespace

std::vector<Unanswered> find_unanswered(const DumpCase& job, const std::vector<const WaitNode*>& nodes) {
  std::vector<Unanswered> found;
  for (const WaitNode* node : nodes) {
    if (node->kind == DumpOp::Kind::collective) {
      continue;
    }
    const RankOps& ops = *job.view.ops_of(node->ranks.front());
    for (const std::uint32_t record : ops.parts_of(*node->ops.front())) {
      if (!job.view.job.calls[ops.dump->records[record].call].is_message()) {
        continue;
      }
      const Counterpart other = job.messages.counterpart(ops, record);
      if (other.ops != nullptr && other.op == nullptr) {
        const bool is_batch = node->kind == DumpOp::Kind::batch;
        found.push_back({node->ranks.front(), other.rank,
                         is_batch && has_batch_from(*other.ops, ops.dump->records[record])});
      }
    }
  }
  return found;
}

bool someone_is_further(const std::vector<Unanswered>& messages) {
  return std::any_of(messages.begin(), messages.end(),
                     [](const Unanswered& message) { return message.peer_is_further; });
}

RankSet common_end(const std::vector<Unanswered>& messages) {
  std::map<Rank, std::size_t> ends;
  for (const Unanswered& message : messages) {
    ++ends[message.waiting];
    ++ends[message.peer];
  }
  std::size_t most = 1;
  RankSet ranks;
  for (const auto& [rank, count] : ends) {
    if (count > most) {
      most = count;
      ranks = {};
    }
    if (count == most && most > 1) {
      ranks.insert(rank);
    }
  }
  return ranks.size() == 1 ? ranks : RankSet();
}

}  // namespace rollcall::check
