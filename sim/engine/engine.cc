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

// What the run may issue: a ticket has room for so many calls of one rank.
std::int64_t ops_max(const Options& options) { return std::min(options.limits.ops, Work::seq_max); }

}  // namespace

Engine::Engine(const Options& options, const Program& program)
    : options_(options),
      program_(program),
      rules_(make_backend_rules(options.backend)),
      admission_(Admission::to(rules_->traits().name)),
      watches_issues_(options.timeline || options.debug == DebugLevel::detail),
      has_own_order_(rules_->has_own_order()),
      queues_launches_(rules_->traits().queues_calls),
      cost_(make_cost_model(options)),
      compute_times_(options.slow, options.jitter, options.world_size, options.seed, options.decisions),
      orders_calls_(options.decisions != nullptr && options.decisions->orders_calls()),
      steps_(ops_max(options), [this] { look(); }) {
  make_groups();
  make_devices();
  plan_crashes();
  notes_ = std::make_unique<check::RunNotes>(groups_, scopes_);
  if (options.timeline) {
    recorder_.emplace(scopes_);
  }
  make_ranks();
  scheduler_ = std::make_unique<RankScheduler>(contexts_, start_order(options.world_size, options.seed));
}

Engine::~Engine() = default;

void Engine::make_groups() {
  std::vector<Rank> everyone(static_cast<std::size_t>(options_.world_size));
  for (Rank rank = 0; rank < options_.world_size; ++rank) {
    everyone[static_cast<std::size_t>(rank)] = rank;
  }
  add_group("world", std::move(everyone), 0);
  for (const Group& group : options_.groups) {
    std::vector<Rank> ranks = group.ranks;
    std::sort(ranks.begin(), ranks.end());
    add_group(group.name, std::move(ranks), group.timeout);
  }
}

// Everything that is kept by GroupId grows here.
GroupId Engine::add_group(const std::string& name, RankList ranks, Duration timeout) {
  const auto id = static_cast<GroupId>(members_.size());
  members_.push_back({id, name, std::move(ranks)});
  matchers_.push_back(std::make_unique<GroupMatcher>(members_.back().size()));
  groups_.push_back({&members_.back(), matchers_.back().get()});
  group_ids_[name].push_back(id);
  group_timeouts_.push_back(timeout);
  lazy_.push_back(queues_launches_ && !options_.eager_communicators);
  broken_.push_back(false);
  messengers_.emplace_back();
  channels_.emplace_back();
  if (queues_launches_) {
    launches_.push_back(std::make_unique<LaunchTable>(id, members_.back().size()));
  }
  if (timeout > 0) {
    deadlines_.resize(static_cast<std::size_t>(options_.world_size));
  }
  return id;
}

void Engine::make_ranks() {
  const auto ranks = static_cast<std::size_t>(options_.world_size);
  contexts_.resize(ranks);
  status_.resize(ranks);
  if (options_.timeout > 0) {
    deadlines_.resize(ranks);
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    RankContext& context = contexts_[rank];
    context.backend = this;
    if (options_.decorate) {
      decorators_.push_back(options_.decorate(*this));
      context.backend = decorators_.back().get();
    }
    context.scopes = &scopes_;
    context.rank = static_cast<Rank>(rank);
    context.world = ProcessGroup(members_.front(), context.rank);
    context.device = device_of_rank(options_, context.rank);
    context.gpus = options_.ranks_per_host;
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
  scheduler_->run([this](Rank rank) { run_rank(rank); }, move_on);
  if (is_inconclusive_) {
    throw std::bad_alloc();
  }
  conclude();
  decorators_.clear();  // they may still ask what has completed
  return report();
}

void Engine::run_rank(Rank rank) {
  try {
    run_program(rank);
  } catch (const std::bad_alloc& error) {  // no fault of the program's, and nothing that it can catch
    status_[static_cast<std::size_t>(rank)].state =
        RankStatus::State::running;  // wherever it was about to park
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
    // Woken only so that destructors run: its state is the one it was stopped in.
  } catch (const StepLimitReached&) {
    stop(FindingKind::ops, ops_max(options_));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const RankCrashed& crash) {
    end_rank(rank, State::crashed, crash.signal, crash.text);
  } catch (const ProcessKilled& death) {
    end_rank(rank, State::crashed, death.signal, {});
  } catch (const Error& error) {
    if (error.site() && !aborting_) {
      notes_->raised_at.emplace(rank, error.site());
    }
    end_rank(rank, State::raised, error.type(), error.what());
  } catch (const std::exception& error) {
    end_rank(rank, State::raised, "std::exception", error.what());
  } catch (...) {
    end_rank(rank, State::raised, "exception", "of a type that is not a std::exception");
  }
  scheduler_->give_back_stack();  // unwinding takes a page that nothing before it has touched
}

void Engine::end_rank(Rank rank, RankStatus::State state, const char* type, const std::string& message) {
  if (aborting_) {
    return;  // the story is over; only destructors run
  }
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  notes_->end(status, state, type != nullptr ? type : "", message);
  ++ended_;
  if (queues_launches_ && state != RankStatus::State::finished) {
    devices_[static_cast<std::size_t>(rank)].drop_unstarted();
  }
  if (state == RankStatus::State::crashed) {
    withdraw_calls(rank);
  }
}

// ---- The loop ----

void Engine::at_quiescence() {
  if (aborting_) {
    abort_waiting();
    return;
  }
  schedule_full_slots();
  schedule_messages();
  if (attend_to_hosts() || (orders_calls_ && order_calls())) {
    return;
  }
  if (events_.empty()) {
    const std::optional<Time> own_deadline = next_deadline(true);
    if (own_deadline && crash_before(*own_deadline)) {
      return;
    }
    if (!own_deadline || !expire_timeouts()) {
      at_deadlock();
    }
    return;
  }
  const std::optional<Time> deadline = next_deadline(false);
  if (crash_before(std::min(deadline.value_or(events_.next_time()), events_.next_time()))) {
    return;
  }
  if (deadline && *deadline < events_.next_time()) {
    expire_timeouts();  // nothing is stuck, but somebody has waited too long
    return;
  }
  now_ = events_.next_time();
  if (now_ > options_.limits.simulated_time) {
    now_ = options_.limits.simulated_time;
    stop(FindingKind::simulated_time, options_.limits.simulated_time);
    abort_waiting();
    return;
  }
  while (!events_.empty() && events_.next_time() == now_) {
    process(events_.pop());
  }
}

// Calls about groups and on the store. True when that made some rank ready at once.
bool Engine::attend_to_hosts() {
  const std::size_t told = interruptions_.size();
  open_channels();
  if (creations_moved_) {
    advance_creations();
  }
  if (!orders_calls_) {
    serve_store();
  }
  return interruptions_.size() > told;
}

void Engine::schedule_full_slots() {
  std::sort(full_.begin(), full_.end());  // not the order of arrival: schedules must not be visible
  for (const SlotKey& key : full_) {
    const Slot& slot = *matchers_[key.group]->find(key.seq);
    const Op first = matchers_[key.group]->op_of(slot, 0);  // calls may differ in size
    notes_->incidents.inspect_full(now_, key.group, slot);
    events_.add(now_ + cost_->of(first, members_[key.group]),
                {.kind = Event::Kind::complete, .group = key.group, .seq = key.seq});
  }
  full_.clear();
}

void Engine::process(const Event& event) {
  switch (event.kind) {
    case Event::Kind::complete:
      complete(event.group, *matchers_[event.group]->find(event.seq));
      matchers_[event.group]->retire();
      return;
    case Event::Kind::deliver: {
      const auto index = static_cast<std::size_t>(event.seq);
      for (const auto& [send, receive] : deliveries_[index].pairs) {
        deliver(deliveries_[index].group, send, receive);
      }
      deliveries_[index].pairs.clear();
      free_deliveries_.push_back(index);
      return;
    }
    case Event::Kind::wake:
      scheduler_->make_ready(event.rank);
      return;
    case Event::Kind::kernel:
      finish_kernel(event.rank, {static_cast<std::uint8_t>(event.seq)});
      return;
  }
}

// ---- What ranks ask for besides communication ----

void Engine::compute(Duration duration) {
  if (aborting_) [[unlikely]] {
    return end_call();
  }
  if (duration <= 0) {
    return;
  }
  const Rank rank = scheduler_->running();
  const Time end = end_of_compute(rank, compute_times_.next(rank, duration));
  if (recorder_) {
    recorder_->computed(rank, now_, end);
  }
  events_.add(end, {.kind = Event::Kind::wake, .rank = rank});
  scheduler_->park();
  if (aborting_) [[unlikely]] {
    end_call();
  }
  die_if_due(rank);
}

ProcessGroup Engine::find_group(std::string_view name) {
  const auto found = group_ids_.find(std::string(name));
  if (found == group_ids_.end()) {
    return {};
  }
  // Of several that were given one name, the latest of the rank's own.
  const std::vector<GroupId>& ids = found->second;
  const Rank self = scheduler_->running();
  const auto own =
      std::find_if(ids.rbegin(), ids.rend(), [&](GroupId id) { return members_[id].rank_of(self) >= 0; });
  const GroupMembers& group = members_[own == ids.rend() ? ids.back() : *own];
  return {group, group.rank_of(self)};
}

void Engine::print(std::string_view text) { write_line(false, text); }

void Engine::warn(std::string_view text) { write_line(true, text); }

void Engine::begin_step(std::int64_t number) {
  if (recorder_ && !aborting_) {
    recorder_->step(scheduler_->running(), now_, number);
  }
}

void Engine::observe(const Observation& observation) {
  if (!aborting_) {
    notes_->incidents.observe(now_, scheduler_->running(), observation);
  }
}

void Engine::joined() {
  if (!aborting_) {
    const Rank rank = scheduler_->running();
    joins_.joined(rank, now_, options_.world_size);
    if (queues_launches_) {
      joins_.await_device(rank);
    }
  }
}

void Engine::everyone_joined(const ProcessGroup& group, std::int64_t steps, std::int64_t shadow_calls) {
  if (!aborting_) {
    joins_.left(scheduler_->running(), group.id(), steps, shadow_calls, now_);
  }
}

void Engine::write_line(bool warning, std::string_view text) {
  if (aborting_) {
    return end_call();  // a rank that hung for ever says nothing more
  }
  if (static_cast<std::int64_t>(output_.size()) >= options_.limits.output_lines) [[unlikely]] {
    stop(FindingKind::output_lines, options_.limits.output_lines);
    throw RankAborted{};
  }
  output_.push_back({scheduler_->running(), now_, warning, std::string(text)});
}

}  // namespace rollcall::sim
