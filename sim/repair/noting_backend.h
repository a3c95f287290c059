#pragma once

// NotingBackend: notes its rank's calls, and completes them immediately. The rank runs without the others: groups are
// made for it alone, and what it would have received is what it passed in.

#include <deque>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "sim/c10d/backend.h"
#include "sim/c10d/observer.h"
#include "sim/match/outlook.h"

namespace rollcall::check {

class NotingBackend final : public Backend {
 public:
  // `engine` provides what exists (groups, devices) and runs nothing; it and `programs` are borrowed. Calls are written
  // to the calling rank's entry of `programs`.
  NotingBackend(Backend& engine, std::map<Rank, RankProgram>& programs)
      : engine_(engine), programs_(programs) {}

  const BackendTraits& traits() const override { return engine_.traits(); }
  Work issue(const Op& op) override;
  std::vector<Work> issue_batch(std::span<const Op> ops) override;
  void wait(const Work&) override {}
  void wait_for(const Work&, Duration) override {}
  void wait_any(std::span<const Work>) override {}
  bool is_completed(const Work&) override { return true; }
  Rank source_of(const Work&) override { return 0; }
  Time now() const override { return now_; }
  void compute(Duration duration) override { now_ += duration; }
  ProcessGroup manage(GroupCall call) override;
  void monitored_barrier(const Op&, const MonitoredBarrierLimits&) override {}
  StoreReply store(const StoreCall& call) override;
  Streams* streams() override { return nullptr; }
  Observer& observer() override { return nobody_; }
  ProcessGroup find_group(std::string_view name) override;

 private:
  void note(const Op& op);
  std::uint32_t index_of(const GroupMembers& group);
  RankProgram& program();

  Backend& engine_;
  Observer nobody_;  // what is noted happens in the run itself
  std::map<Rank, RankProgram>& programs_;
  std::map<std::pair<GroupId, int>, std::int64_t> next_;       // by channel: calls so far
  std::deque<GroupMembers> made_;                              // never moves: handles point into it
  std::map<GroupId, const GroupMembers*> members_;             // of all but the world
  std::map<GroupId, std::int64_t> made_by_;                    // which call made it
  std::map<std::pair<Rank, GroupId>, std::uint32_t> indexes_;  // into RankProgram::groups
  Time now_ = 0;
};

}  // namespace rollcall::check
