#include "sim/engine/rehearsal.h"

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "sim/c10d/forwarding_backend.h"
#include "sim/c10d/rank_context.h"
#include "sim/judge/open_ends.h"
#include "sim/repair/editing_backend.h"
#include "sim/repair/noting_backend.h"

namespace rollcall::sim {
namespace {

constexpr std::int64_t steps_max = 200'000;        // of all ranks, or this many
constexpr std::int64_t steps_of_rank_max = 5'000;  // of each, if that is more

class StepWriter final : public ForwardingBackend {
 public:
  StepWriter(Backend& inner, check::StepLog& log) : ForwardingBackend(inner), log_(log) {}

  Work issue(const Op& op) override {
    const Work work = inner().issue(op);
    const auto own = log_.ranks.find(this_rank().rank);
    if (own != log_.ranks.end() && !is_point_to_point(op.kind)) {
      own->second.push_back(check::step_of(op, *this_rank().scopes, work.seq()));
    }
    return work;
  }
  ProcessGroup find_group(std::string_view name) override { return known(inner().find_group(name)); }
  ProcessGroup manage(GroupCall call) override { return known(inner().manage(std::move(call))); }

 private:
  ProcessGroup known(const ProcessGroup& group) {
    if (group && group.is_member()) {
      log_.groups[group.id()] = group.name();
    }
    return group;
  }

  check::StepLog& log_;
};

}  // namespace

Rehearsal::Rehearsal(const Options& options, Program program)
    : options_(options), program_(std::move(program)) {
  options_.timeline = false;
  options_.decisions = nullptr;
  options_.decorate = {};
  options_.on_settled = {};
  options_.watch.progress = {};
}

std::vector<check::RankProgram> Rehearsal::programs(const std::vector<Rank>& ranks) const {
  std::map<Rank, check::RankProgram> noted;
  Options options = options_;
  options.timeout = 0;
  options.limits.ops =
      std::min(options.limits.ops, std::max(steps_max, steps_of_rank_max * options.world_size));
  options.decorate = [&](Backend& engine) { return std::make_unique<check::NotingBackend>(engine, noted); };
  const Report report = run_once(options, [&](Rank rank) {
    if (std::ranges::binary_search(ranks, rank)) {
      program_(rank);
    }
  });
  const bool was_cut = std::holds_alternative<LimitReached>(report.verdict);
  std::vector<check::RankProgram> programs;
  for (auto& [rank, program] : noted) {
    program.rank = rank;
    program.is_endless = was_cut;
    program.is_whole = !was_cut && !options_.open_ends.contains(rank);
    programs.push_back(std::move(program));
  }
  return programs;
}

std::optional<FindingKind> Rehearsal::outcome_of(const check::CallEdits& edits) const {
  std::vector<check::EditingBackend*> backends;  // by rank
  Options options = options_;
  options.decorate = [&](Backend& inner) {
    const auto rank = static_cast<Rank>(backends.size());
    auto backend = std::make_unique<check::EditingBackend>(inner, edits, rank);
    backends.push_back(backend.get());
    return backend;
  };
  RankSet open = options_.open_ends;
  const Report report = run_once(options, [&](Rank rank) {
    check::EditingBackend& own = *backends[static_cast<std::size_t>(rank)];
    try {
      program_(rank);
    } catch (const std::bad_alloc&) {
      throw;  // not the program's
    } catch (const std::exception&) {
      // A recorded rank that a call ended would have gone on after the right one.
      const bool was_ended = !options_.open_ends.empty() && own.ends_at_edit();
      if (was_ended) {
        open.insert(RankSet{rank});
      } else if (!own.goes_on()) {
        throw;
      }
    }
    own.finish();
  });
  return check::may_go_on(report, open) ? FindingKind::ok : kind_of(report.verdict);
}

check::StepLog Rehearsal::steps(const std::vector<Rank>& ranks) const {
  check::StepLog log;
  for (const Rank rank : ranks) {
    log.ranks[rank];
  }
  Options options = options_;
  options.decorate = [&](Backend& inner) { return std::make_unique<StepWriter>(inner, log); };
  run_once(options, program_);
  return log;
}

}  // namespace rollcall::sim
