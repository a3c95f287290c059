#include "sim/engine/engine.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "sim/base/error.h"
#include "sim/engine/start_order.h"

namespace rollcall::sim {
namespace {

using check::GroupMatcher;
using check::RankStatus;
using check::Slot;

// How many calls the run may issue: the sequence number in a Work has a maximum.
std::int64_t ops_max(const Options& options) { return std::min(options.limits.ops, Work::seq_max); }

}  // namespace

Engine::Engine(const Options& options, const Program& program)
    : program_(program),
      run_(options),
      admission_(Admission::to(run_.rules->traits().name, options.torch)),
      watches_issues_(options.timeline || options.debug == DebugLevel::detail),
      has_own_order_(run_.rules->has_own_order()),
      cost_(make_cost_model(options)),
      compute_times_(options.slow, options.jitter, options.world_size, options.seed, options.decisions),
      store_(run_),
      group_calls_(run_),
      messages_(run_, *cost_),
      deadlines_(run_),
      deaths_(options),
      steps_(ops_max(options), [this] { look(); }) {
  if (cost_->contends()) {
    contention_.emplace(options.world_size, cost::multiprocessors(options.cluster->compute_capability));
  }
  make_groups();
  make_devices();
  run_.notes = std::make_unique<check::RunNotes>(run_.groups, scopes_);
  if (options.timeline) {
    run_.recorder.emplace(scopes_);
  }
  make_ranks();
  run_.scheduler = std::make_unique<RankScheduler>(contexts_, start_order(options.world_size, options.seed),
                                                   static_cast<std::size_t>(options.stack_bytes));
}

Engine::~Engine() = default;

void Engine::make_groups() {
  add_group("world", RankSet::range(0, run_.options.world_size - 1).to_vector(), 0);
  for (const Group& group : run_.options.groups) {
    std::vector<Rank> ranks = group.ranks;
    std::sort(ranks.begin(), ranks.end());
    add_group(group.name, std::move(ranks), group.timeout);
  }
}

// Everything that is kept by GroupId grows here.
GroupId Engine::add_group(const std::string& name, RankList ranks, Duration timeout, bool is_connected) {
  const auto id = static_cast<GroupId>(run_.members.size());
  run_.members.push_back({id, name, std::move(ranks)});
  run_.matchers.push_back(std::make_unique<GroupMatcher>(run_.members.back().size()));
  const bool connects_late = run_.queues_calls && !run_.options.eager_communicators && !is_connected;
  run_.groups.push_back({.members = &run_.members.back(),
                         .matcher = run_.matchers.back().get(),
                         .connects_late = connects_late});
  group_ids_[name].push_back(id);
  deadlines_.add_group(timeout);
  absent_.push_back(connects_late ? run_.members.back().size() : 0);
  broken_.push_back(false);
  group_calls_.add_group();
  messages_.add_group(connects_late);
  if (run_.queues_calls) {
    launches_.push_back(std::make_unique<LaunchTable>(id, run_.members.back().size()));
  }
  return id;
}

void Engine::make_ranks() {
  const std::size_t ranks = run_.ranks();
  contexts_.resize(ranks);
  run_.status.resize(ranks);
  ended_at_.resize(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    RankContext& context = contexts_[rank];
    context.backend = this;
    if (run_.options.decorate) {
      decorators_.push_back(run_.options.decorate(*this));
      context.backend = decorators_.back().get();
    }
    context.scopes = &scopes_;
    context.files = &files_;
    context.torch = run_.torch;
    context.rank = static_cast<Rank>(rank);
    context.world = ProcessGroup(run_.members.front(), context.rank);
    context.device = device_of_rank(run_.options, context.rank);
    context.gpus = run_.options.ranks_per_host;
    context.is_device_bound = run_.queues_calls && run_.options.eager_communicators;
    context.steps = &steps_;
  }
}

Report Engine::run() {
  const auto move_on = [this] {
    try {
      at_quiescence();
    } catch (const std::bad_alloc& error) {
      run_out_of_memory(error);
    }
  };
  run_.scheduler->run([this](Rank rank) { run_rank(rank); }, move_on);
  if (is_inconclusive_) {
    throw std::bad_alloc();
  }
  withdraw_calls_of_dead();
  if (run_.orders_calls && !aborting_) {
    tell_of_latecomers();
  }
  conclude();
  decorators_.clear();  // they may still ask what has completed
  return report();
}

void Engine::run_rank(Rank rank) {
  try {
    run_program(rank);
  } catch (const std::bad_alloc& error) {  // not the program's fault, and not for it to catch
    run_.status_of(rank).state = RankStatus::State::running;  // wherever it was about to park
    run_out_of_memory(error);
  }
}

void Engine::run_program(Rank rank) {
  using State = RankStatus::State;
  try {
    die_if_due(rank);
    program_(rank);
    drain(rank);
    end_rank(rank, State::finished, nullptr, {});
    return;
  } catch (const RankAborted&) {
    // Woken only so that destructors run: its state stays the one in which it was stopped.
  } catch (const StepLimitReached&) {
    stop(FindingKind::ops, ops_max(run_.options));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const ProcessKilled& death) {
    end_rank(rank, State::crashed, death.signal, death.text);
  } catch (const Error& error) {
    if (error.site() && !aborting_) {
      run_.notes->raised_at.emplace(rank, error.site());
    }
    end_rank(rank, State::raised, error.type(), error.what());
  } catch (const std::exception& error) {
    end_rank(rank, State::raised, "std::exception", error.what());
  } catch (...) {
    end_rank(rank, State::raised, "exception", "of a type that is not a std::exception");
  }
  run_.scheduler->give_back_stack();  // unwinding takes a page that nothing before it has touched
}

void Engine::end_rank(Rank rank, RankStatus::State state, const char* type, const std::string& message) {
  if (aborting_) {
    return;  // the verdict is settled; only destructors run
  }
  RankStatus& status = run_.status_of(rank);
  run_.notes->end(status, state, type != nullptr ? type : "", message);
  ++ended_;
  ended_at_[static_cast<std::size_t>(rank)] = run_.now;
  if (state == RankStatus::State::crashed) {
    died_.push_back(rank);
  }
}

// ---- The loop ----

void Engine::at_quiescence() {
  if (aborting_) {
    abort_waiting();
    return;
  }
  withdraw_calls_of_dead();
  schedule_full_slots();
  messages_.schedule();
  if (run_.orders_calls &&
      messages_.hand_out([this](GroupId group, check::MessageId receive, check::Fate fate) {
        finish_message(group, receive, fate);
      })) {
    return;
  }
  if (attend_to_hosts() || (run_.orders_calls && order_calls())) {
    return;
  }
  if (contention_) [[unlikely]] {
    settle_contention();
  }
  if (run_.events.empty()) {
    if (resume_aside()) [[unlikely]] {
      return;
    }
    const std::optional<Time> own_deadline = deadlines_.first(true);
    if (own_deadline && crash_before(*own_deadline)) {
      return;
    }
    if (!own_deadline || !expire_timeouts()) {
      at_deadlock();
    }
    return;
  }
  std::optional<Time> deadline = deadlines_.first(false);
  if (deadline && *deadline < run_.events.next_time() && lift_deadlines_of_messages()) {
    deadline = deadlines_.first(false);
  }
  if (crash_before(std::min(deadline.value_or(run_.events.next_time()), run_.events.next_time()))) {
    return;
  }
  if (deadline && *deadline < run_.events.next_time()) {
    expire_timeouts();  // nothing is stuck, but a rank has waited too long
    return;
  }
  if (run_.events.next_time() > run_.options.limits.simulated_time) {
    run_.now = run_.options.limits.simulated_time;
    stop(FindingKind::simulated_time, run_.options.limits.simulated_time);
    abort_waiting();
    return;
  }
  pass_next_events();
  resume_aside();
}

void Engine::pass_next_events() {
  run_.now = run_.events.next_time();
  while (!run_.events.empty() && run_.events.next_time() == run_.now) {
    process(run_.events.pop());
  }
}

// Ranks that compute until something happens go on. True if there was one.
bool Engine::resume_aside() {
  if (aside_.empty()) [[likely]] {
    return false;
  }
  for (const Rank rank : aside_) {
    run_.scheduler->make_ready(rank);
  }
  aside_.clear();
  return true;
}

void Engine::settle_contention() {
  for (const auto& [key, end] : contention_->settle(run_.now)) {
    const RunEvent event{static_cast<RunEvent::Kind>(key.kind), key.group, key.rank, key.seq};
    run_.events.remove(event);
    run_.events.add(end, event);
  }
}

void Engine::schedule_full_slots() {
  std::sort(full_.begin(), full_.end());  // not the order of arrival: schedules must not be visible
  for (const SlotKey& key : full_) {
    const Slot& slot = *run_.matchers[key.group]->find(key.seq);
    const Op first = run_.matchers[key.group]->op_of(slot, 0);  // calls may differ in size
    run_.notes->incidents.inspect_full(run_.now, key.group, slot);
    const GroupMembers& members = run_.members[key.group];
    const RunEvent end{.kind = RunEvent::Kind::complete, .group = key.group, .seq = key.seq};
    const Duration alone = cost_->of(first, members);
    if (contention_) [[unlikely]] {
      contention_->start(end.key(), run_.now, alone, cost_->demand_of(first, members));
    }
    run_.events.add(run_.now + alone, end);
    if (!deadlines_.none()) [[unlikely]] {
      lift_deadlines(key.group, slot);
    }
  }
  full_.clear();
}

// Records work that shared the GPU: how long it took is known only now.
void Engine::record_work(const RunEvent& event, const cost::Contention::Past& past) {
  const std::string remark = slowed_text(run_.now - past.start, past.alone, past.because);
  if (event.kind == RunEvent::Kind::kernel) {
    const Stream stream{static_cast<std::uint8_t>(event.seq)};
    const Kernel& kernel = devices_[static_cast<std::size_t>(event.rank)].running_kernel(stream);
    run_.recorder->ran(event.rank, stream, kernel, past.start, run_.now, remark);
  } else {
    run_.recorder->computed(event.rank, past.start, run_.now, remark);
  }
}

void Engine::process(const RunEvent& event) {
  std::optional<cost::Contention::Past> past;
  if (contention_) [[unlikely]] {
    past = contention_->finish(event.key());
    if (past && run_.recorder && event.kind != RunEvent::Kind::complete) {
      record_work(event, *past);
    }
  }
  switch (event.kind) {
    case RunEvent::Kind::complete:
      complete(event.group, *run_.matchers[event.group]->find(event.seq), past);
      run_.matchers[event.group]->retire();
      return;
    case RunEvent::Kind::deliver:
      messages_.arrive(event.seq, [this](GroupId group, check::MessageId send, check::MessageId receive) {
        deliver(group, send, receive);
      });
      return;
    case RunEvent::Kind::wake:
      run_.scheduler->make_ready(event.rank);
      return;
    case RunEvent::Kind::kernel:
      finish_kernel(event.rank, {static_cast<std::uint8_t>(event.seq)});
      return;
  }
}

// ---- Calls of ranks besides communication ----

void Engine::compute(Duration duration) {
  if (aborting_) [[unlikely]] {
    return end_call();
  }
  if (duration <= 0) {
    return;
  }
  const Rank rank = run_.scheduler->running();
  if (duration == until_next_event) [[unlikely]] {
    aside_.push_back(rank);
  } else {
    start_computing(rank, duration);
  }
  run_.scheduler->park();
  // Work on the host's own threads can end the process; a GPU's error is found only by a wait.
  if (aborting_ || (!run_.queues_calls && !interruptions_.empty())) [[unlikely]] {
    take_interruption();
  }
  die_if_due(rank);
}

void Engine::start_computing(Rank rank, Duration duration) {
  const Duration alone = compute_times_.next(rank, duration);
  const RunEvent wake{.kind = RunEvent::Kind::wake, .rank = rank};
  const Time end = std::min(run_.now + alone, deaths_.of(rank));
  if (contention_) [[unlikely]] {
    contention_->start_work(wake.key(), run_.now, alone, deaths_.of(rank));
  } else if (run_.recorder) {
    run_.recorder->computed(rank, run_.now, end);
  }
  run_.events.add(end, wake);
}

ProcessGroup Engine::find_group(std::string_view name) {
  const auto found = group_ids_.find(std::string(name));
  if (found == group_ids_.end()) {
    return {};
  }
  // Of several groups with one name, the latest that the rank belongs to.
  const std::vector<GroupId>& ids = found->second;
  const Rank self = run_.scheduler->running();
  const auto own =
      std::find_if(ids.rbegin(), ids.rend(), [&](GroupId id) { return run_.members[id].rank_of(self) >= 0; });
  const GroupMembers& group = run_.members[own == ids.rend() ? ids.back() : *own];
  return {group, group.rank_of(self)};
}

void Engine::print(std::string_view text) { write_line(false, text); }

void Engine::warn(std::string_view text) { write_line(true, text); }

void Engine::begin_step(std::int64_t number) {
  if (run_.recorder && !aborting_) {
    run_.recorder->step(run_.scheduler->running(), run_.now, number);
  }
}

void Engine::observe(const Observation& observation) {
  if (!aborting_) {
    run_.notes->incidents.observe(run_.now, run_.scheduler->running(), observation);
  }
}

void Engine::joined() {
  if (!aborting_) {
    const Rank rank = run_.scheduler->running();
    joins_.joined(rank, run_.now, run_.options.world_size);
    if (run_.queues_calls) {
      joins_.await_device(rank);
    }
  }
}

void Engine::everyone_joined(const ProcessGroup& group, std::int64_t steps, std::int64_t shadow_calls) {
  if (!aborting_) {
    joins_.left(run_.scheduler->running(), group.id(), steps, shadow_calls, run_.now);
  }
}

void Engine::write_line(bool warning, std::string_view text) {
  if (aborting_) {
    return end_call();  // a rank that hung forever prints nothing more
  }
  if (static_cast<std::int64_t>(output_.size()) >= run_.options.limits.output_lines) [[unlikely]] {
    stop(FindingKind::output_lines, run_.options.limits.output_lines);
    throw RankAborted{};
  }
  output_.push_back({run_.scheduler->running(), run_.now, warning, std::string(text)});
}

}  // namespace rollcall::sim
