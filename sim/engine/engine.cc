#include "sim/engine/engine.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "sim/check/judge.h"
#include "sim/check/naming.h"
#include "sim/dist/apply.h"
#include "sim/dist/arguments.h"
#include "sim/dist/error.h"
#include "sim/dist/expects.h"
#include "sim/engine/detail_check.h"
#include "sim/engine/start_order.h"

namespace rollcall::sim {
namespace {

using check::Fate;
using check::GroupMatcher;
using check::RankStatus;
using check::Slot;

// A rank's process dies, as by SIGABRT: no destructor of the user's would run in reality, but ours may.
struct RankCrashed {
  std::string text;
};

// What a group's members see once one of them has given up on it.
constexpr const char* closed_pairs = "Application timeout caused pair closure";
constexpr std::int64_t no_slot = -1;  // the number of a collective on such a group

std::string too_dense(const Op& op, std::int64_t bytes, std::int64_t limit) {
  constexpr std::int64_t mebi = 1024 * 1024;
  return fmt::format(
      "{}: the results differ from element to element and need {} MiB together, more than the {} MiB that "
      "one simulated call may take; use smaller tensors or equal values",
      to_string(op.kind), bytes / mebi, limit / mebi);
}

}  // namespace

Engine::Engine(const Options& options, const Program& program)
    : options_(options),
      program_(program),
      rules_(make_backend_rules(options.backend)),
      admission_(*rules_),
      watches_issues_(options.timeline || options.debug == DebugLevel::detail),
      has_own_order_(rules_->has_own_order()),
      cost_(make_cost_model(options)),
      compute_times_(options.slow, options.jitter, options.world_size, options.seed),
      steps_left_(options.limits.ops) {
  make_groups();
  make_devices();
  incidents_ = std::make_unique<check::IncidentLog>(groups_, scopes_);
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
  broken_.push_back(false);
  messengers_.emplace_back();
  channels_.emplace_back();
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
    context.steps_left = &steps_left_;
  }
}

Report Engine::run() {
  scheduler_->run([this](Rank rank) { run_rank(rank); }, [this] { at_quiescence(); });
  conclude();
  decorators_.clear();  // they may still ask what has completed
  return report();
}

void Engine::run_rank(Rank rank) {
  using State = RankStatus::State;
  try {
    program_(rank);
    drain(rank);
    end_rank(rank, State::finished, nullptr, {});
  } catch (const RankAborted&) {
    // Woken only so that destructors run: its state is the one it was stopped in.
  } catch (const StepLimitReached&) {
    stop("ops", options_.limits.ops);
  } catch (const RankCrashed& crash) {
    end_rank(rank, State::crashed, "SIGABRT", crash.text);
  } catch (const ProcessKilled& death) {
    end_rank(rank, State::crashed, death.signal, {});
  } catch (const Error& error) {
    end_rank(rank, State::raised, error.type(), error.what());
  } catch (const std::exception& error) {
    end_rank(rank, State::raised, "std::exception", error.what());
  } catch (...) {
    end_rank(rank, State::raised, "exception", "of a type that is not a std::exception");
  }
}

void Engine::end_rank(Rank rank, RankStatus::State state, const char* type, const std::string& message) {
  if (aborting_) {
    return;  // the story is over; only destructors run
  }
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.state = state;
  if (queues_launches_ && state != RankStatus::State::finished) {
    devices_[static_cast<std::size_t>(rank)].drop_unstarted();
  }
  if (type != nullptr) {
    const auto [entry, is_new] = exception_ids_.try_emplace(std::string(type) + ": " + message,
                                                            static_cast<std::int32_t>(exceptions_.size()));
    if (is_new) {
      exceptions_.push_back({type, message});
    }
    status.exception = entry->second;
  }
}

// ---- What ranks call ----

// The hot path: every call of every rank. What is rare is kept out of line, so that the frame stays small
// and the lines a rank touches few.
Work Engine::issue(const Op& op) {
  if (aborting_ || (any_broken_ && broken_[op.group])) [[unlikely]] {
    return issue_nowhere(op);
  }
  ++ops_;
  GroupMatcher& matcher = *matchers_[op.group];
  const bool is_odd = op.malformed || !admission_.admits(op) ||
                      (admission_.one_gpu_per_rank() && !matcher.uses(op.rank, op.device));
  if (is_odd) [[unlikely]] {
    check_device(op);
  }
  if (queues_launches_) [[unlikely]] {
    return launch(op);
  }
  if (is_point_to_point(op.kind)) [[unlikely]] {
    return post(op);
  }
  Slot& slot = matcher.arrive(op);
  if (slot.phase == Slot::Phase::full) {
    full_.push_back({op.group, slot.seq});
  }
  if (op.async_op || slot.differs || watches_issues_ || is_odd) [[unlikely]] {
    issued(op, slot);
  }
  return Work(*this, op.group, op.rank, slot.seq);  // built in place: a copy would stall on its own stores
}

// Ends a call of a rank whose story is over. In a destructor that communicates while its rank unwinds
// already, the call does nothing: a second exception would end the process.
void Engine::end_call() {
  if (std::uncaught_exceptions() == 0) {
    throw RankAborted{};
  }
}

// A rank that never waits could fill any memory with calls that nobody else has come to.
void Engine::check_pending(GroupId group) {
  constexpr std::int64_t base_cost = 32;  // what a slot takes besides its members, in members
  const GroupMatcher& matcher = *matchers_[group];
  const std::int64_t pending = matcher.end() - matcher.first_live();
  if (pending * (matcher.size() + base_cost) > options_.limits.pending_arrivals) [[unlikely]] {
    stop("pending_calls", pending);
    throw RankAborted{};
  }
}

// A call of a rank whose story is over, or on a group whose connections are closed: it meets nobody. A
// collective finds that out in the thread that runs it, so its rank hears of it when it waits.
Work Engine::issue_nowhere(const Op& op) {
  if (aborting_) {
    end_call();
    return {};
  }
  note_late_call(op, next_number(op));
  if (queues_launches_) {  // its communicator was ended by the watchdog, or with its group
    throw Error("torch.distributed.DistBackendError",
                fmt::format("NCCL communicator was aborted on rank {}.", op.rank));
  }
  if (is_point_to_point(op.kind)) {
    throw RuntimeError(closed_pairs);
  }
  return Work(*this, op.group, op.rank, no_slot);
}

// True when the running rank's story is over, and it must not be stopped because it unwinds already.
bool Engine::refuses_calls() const {
  if (aborting_) {
    end_call();
  }
  return aborting_;
}

// What only some calls, or only some runs, have to do after a call was matched.
void Engine::issued(const Op& op, Slot& slot) {
  const bool raises = !admission_.admits(op);
  slot.raises = slot.raises || raises;
  if (slot.differs) {
    incidents_->suspect(now_, op.group, slot.seq);
  }
  if (op.async_op) {
    check_pending(op.group);
  }
  if (op.async_op || raises) {
    retain(op, slot);  // the caller may drop its tensors before the others have come
  }
  if (recorder_) {
    recorder_->arrived(slot, op.rank, matchers_[op.group]->size(), now_);
  }
  if (options_.debug == DebugLevel::detail && op.async_op) {
    wait(Work(*this, op.group, op.rank,
              slot.seq));  // DETAIL compares with the others first, and the host blocks in that
  }
}

// The number that a call of the running rank takes.
std::int64_t Engine::next_number(const Op& op) {
  return queues_launches_ ? running_device().calls_of(op.group) : matchers_[op.group]->calls_of(op.rank);
}

void Engine::check_device(const Op& op) {
  const GroupMatcher& matcher = *matchers_[op.group];
  const Rank rank = scheduler_->running();
  check::DeviceIncident incident;
  incident.at = now_;
  incident.seq = next_number(op);
  incident.ranks = {rank};
  incident.op = op;
  if (const std::optional<Error> error = argument_error(rules_->name(), op, matcher.size())) {
    raise(*error);
  }
  if (!admission_.admits(op)) {
    if (rules_->raises_late(op)) {
      return;
    }
    if (rules_->needs_cuda() && op.device.type != DeviceType::cuda) {
      incidents_->device(incident);
    }
    raise(rules_->refusal(op));
  }
  const std::optional<Device> before = matcher.device_of(op.rank);
  if (before == op.device) [[likely]] {
    return;
  }
  if (before) {
    incident.kind = check::DeviceIncident::Kind::stray_device;
    incident.expected = *before;
    incidents_->device(incident);
    throw Error(
        "torch.distributed.DistBackendError",
        fmt::format("Attempt to perform collective on tensor not on device passed to init_process_group: {} "
                    "instead of {}",
                    to_string(op.device), to_string(*before)));
  }
  // The default mapping gives every rank a GPU of its own: whoever uses another rank's is the odd one.
  const bool is_own = options_.devices.empty() && op.device == device_of_rank(options_, rank);
  const Rank user =
      is_own ? intruder_on_gpu(op.group, op.device, rank) : user_of_gpu(op.group, op.device, rank);
  if (user != rank) {
    incident.kind = check::DeviceIncident::Kind::duplicate_gpu;
    incident.ranks = {is_own ? user : rank};
    incident.other = is_own ? rank : user;
    incidents_->device(incident);
    throw Error(
        "torch.distributed.DistBackendError",
        fmt::format("NCCL error: invalid usage. Duplicate GPU detected : rank {} and rank {} both on {}",
                    rank, user, to_string(op.device)));
  }
}

// Who works with a GPU in a group: whoever came first, and of those that came in one instant the lowest rank.
// That is known only when the instant is over, so the ranks that ask sleep until then.
Rank Engine::user_of_gpu(GroupId group, Device device, Rank rank) {
  GpuUser& user = gpu_users_[{group, {host_of_rank(options_, rank), device}}];
  if (!user.settled) {
    user.rank = user.rank < 0 ? rank : std::min(user.rank, rank);
    events_.add(now_, {.kind = Event::Kind::wake, .rank = rank});
    scheduler_->park();
    if (aborting_) [[unlikely]] {
      throw RankAborted{};
    }
    user.settled = true;
    const Rank owner = owner_of_gpu(group, device, rank);
    user.rank = owner >= 0 ? owner : user.rank;
  }
  return user.rank;
}

// Who works with a rank's own GPU since an earlier instant; usually nobody else.
Rank Engine::intruder_on_gpu(GroupId group, Device device, Rank rank) const {
  const auto found = gpu_users_.find({group, {host_of_rank(options_, rank), device}});
  return found != gpu_users_.end() && found->second.settled ? found->second.rank : rank;
}

// The rank on this host whose own GPU it is by the default mapping, if it works with it in the group; or -1.
Rank Engine::owner_of_gpu(GroupId group, Device device, Rank rank) const {
  if (!options_.devices.empty()) {
    return -1;
  }
  for (Rank member = 0; member < members_[group].size(); ++member) {
    const Rank owner = members_[group].ranks[static_cast<std::size_t>(member)];
    const bool is_owner = host_of_rank(options_, owner) == host_of_rank(options_, rank) &&
                          device_of_rank(options_, owner) == device;
    if (is_owner && matchers_[group]->device_of(member) == device) {
      return owner;
    }
  }
  return -1;
}

// An asynchronous caller may drop its tensors before the call completes.
void Engine::retain(const Op& op, Slot& slot) const {
  if (op.tensors.input != nullptr) {
    slot.retained.push_back(Tensor::share(*op.tensors.input));
  }
  if (op.tensors.output != nullptr) {
    slot.retained.push_back(Tensor::share(*op.tensors.output));
  }
  const auto keep = [&slot](const TensorList*& list) {
    if (list != nullptr) {
      slot.retained_lists.push_back(std::make_unique<TensorList>(*list));
      list = slot.retained_lists.back().get();
    }
  };
  if (!slot.ops.empty()) {
    OpTensors& tensors = slot.ops[static_cast<std::size_t>(op.rank)].tensors;
    keep(tensors.inputs);
    keep(tensors.outputs);
    if (tensors.splits != nullptr) {
      slot.retained_splits.push_back(std::make_unique<SplitSizes>(*tensors.splits));
      tensors.splits = slot.retained_splits.back().get();
    }
  }
}

// The frames below a parked rank are what its next turn touches first: everything rare lives elsewhere.
void Engine::wait(const Work& work) {
  if (aborting_ || queues_launches_ || work.is_point_to_point()) [[unlikely]] {
    return wait_otherwise(work);
  }
  Slot* slot = matchers_[work.group()]->find(work.seq());
  if (slot == nullptr || slot->phase == Slot::Phase::done) {
    if (work.seq() == no_slot) [[unlikely]] {
      interrupt_closed();
    }
    return;
  }
  if (slot->phase == Slot::Phase::irregular || slot->raises) [[unlikely]] {
    if (has_its_fate(work, *slot)) {
      return;
    }
  }
  block(work, *slot);
}

// A wait that is not for a collective on a backend whose calls block.
void Engine::wait_otherwise(const Work& work) {
  if (aborting_) {
    end_call();
  } else if (queues_launches_) {
    wait_on_device(work);
  } else {
    wait_message(work);
  }
}

// True when the call completed for the waiting member of an irregular slot. Throws when it failed or raises,
// and false says that it hangs.
bool Engine::has_its_fate(const Work& work, const Slot& slot) const {
  if (slot.phase == Slot::Phase::irregular) {
    const auto member = static_cast<std::size_t>(work.rank());
    switch (slot.fates[member]) {
      case Fate::completes:
        return true;
      case Fate::fails:
      case Fate::crashes:
        interrupt({slot.fates[member] == Fate::crashes, slot.failures[member]});
      case Fate::hangs:
        break;
    }
  }
  if (slot.raises && raises_late(work, slot)) {
    interrupt({false, rules_->refusal(matchers_[work.group()]->op_of(slot, work.rank())).what()});
  }
  return false;
}

void Engine::interrupt_closed() { interrupt({false, closed_pairs}); }

// True when the backend cannot run this call and says so without waiting for the others. DETAIL does wait
// for them first.
bool Engine::raises_late(const Work& work, const Slot& slot) const {
  return options_.debug != DebugLevel::detail &&
         rules_->raises_late(matchers_[work.group()]->op_of(slot, work.rank()));
}

void Engine::block(const Work& work, Slot& slot) {
  const Rank rank = scheduler_->running();
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.state = RankStatus::State::waiting;
  status.group = work.group();
  status.group_rank = work.rank();
  status.seq = work.seq();
  status.message = check::no_message;
  slot.waiters.push_back(rank);
  suspend_rank(slot.tensors[static_cast<std::size_t>(work.rank())]);
}

// Parks the running rank, whose status says what it waits for. Returns when that has completed; throws when
// it ended otherwise.
void Engine::suspend_rank(const void* hint) {
  if (!deadlines_.empty()) [[unlikely]] {
    set_deadline(scheduler_->running());
  }
  scheduler_->park(hint);
  if (aborting_ || !interruptions_.empty()) [[unlikely]] {
    take_interruption();
  }
}

// Throws if the running rank was woken for another reason than that its wait is over.
void Engine::take_interruption() {
  if (aborting_) {
    return end_call();
  }
  const auto found = interruptions_.find(scheduler_->running());
  if (found != interruptions_.end()) {
    const Interruption interruption = std::move(found->second);
    interruptions_.erase(found);
    interrupt(interruption);
  }
}

void Engine::interrupt(const Interruption& interruption) {
  if (interruption.crash) {
    throw RankCrashed{interruption.text};
  }
  throw RuntimeError(interruption.text);
}

bool Engine::is_completed(const Work& work) {
  if (queues_launches_) {
    return has_finished_on_device(work);
  }
  if (work.is_point_to_point()) {
    const check::MessageMatcher& messages = messages_of(work.group());
    return !messages.is_current(work.message(), work.rank(), work.seq()) ||
           messages.at(work.message()).phase == check::Message::Phase::done;
  }
  const Slot* slot = matchers_[work.group()]->find(work.seq());
  if (slot == nullptr) {
    return true;
  }
  return slot->phase == Slot::Phase::done || (slot->raises && raises_late(work, *slot)) ||
         (slot->phase == Slot::Phase::irregular &&
          slot->fates[static_cast<std::size_t>(work.rank())] == Fate::completes);
}

// The rank is blocked in the first of them, as far as reports go; whichever completes first wakes it.
void Engine::wait_any(std::span<const Work> works) {
  if (aborting_) [[unlikely]] {
    return end_call();
  }
  if (std::ranges::any_of(works, [this](const Work& work) { return is_completed(work); })) {
    return;
  }
  if (queues_launches_) {
    wait_on_host({.kind = HostWait::Kind::any, .works = works});
    return;
  }
  for (const Work& other : works.subspan(1)) {
    enlist(other);
  }
  try {
    wait(works.front());
  } catch (...) {
    std::ranges::for_each(works.subspan(1), [this](const Work& other) { delist(other); });
    throw;
  }
  std::ranges::for_each(works, [this](const Work& work) { delist(work); });
}

// Lets `work` wake the running rank, which is about to block in another call.
void Engine::enlist(const Work& work) {
  if (work.is_point_to_point()) {
    messages_of(work.group()).at(work.message()).waiting = true;
  } else if (Slot* slot = matchers_[work.group()]->find(work.seq())) {
    slot->waiters.push_back(scheduler_->running());
  }
}

void Engine::delist(const Work& work) {
  if (aborting_) {
    return;
  }
  if (!work.is_point_to_point()) {
    if (Slot* slot = matchers_[work.group()]->find(work.seq())) {
      std::erase(slot->waiters, scheduler_->running());
    }
    return;
  }
  check::MessageMatcher& messages = messages_of(work.group());
  if (messages.is_current(work.message(), work.rank(), work.seq())) {
    messages.at(work.message()).waiting = false;
  }
}

void Engine::compute(Duration duration) {
  if (aborting_) [[unlikely]] {
    return end_call();
  }
  if (duration <= 0) {
    return;
  }
  const Rank rank = scheduler_->running();
  const Duration taken = compute_times_.next(rank, duration);
  if (recorder_) {
    recorder_->computed(rank, now_, now_ + taken);
  }
  events_.add(now_ + taken, {.kind = Event::Kind::wake, .rank = rank});
  scheduler_->park();
  if (aborting_) [[unlikely]] {
    end_call();
  }
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

void Engine::observe(const Observation& observation) {
  if (!aborting_) {
    incidents_->observe(now_, scheduler_->running(), observation);
  }
}

void Engine::write_line(bool warning, std::string_view text) {
  if (aborting_) {
    return end_call();  // a rank that hung for ever says nothing more
  }
  if (static_cast<std::int64_t>(output_.size()) >= options_.limits.output_lines) [[unlikely]] {
    stop("output_lines", options_.limits.output_lines);
    throw RankAborted{};
  }
  output_.push_back({scheduler_->running(), now_, warning, std::string(text)});
}

// ---- The loop ----

void Engine::at_quiescence() {
  if (aborting_) {
    abort_waiting();
    return;
  }
  schedule_full_slots();
  schedule_messages();
  if (attend_to_hosts()) {
    return;
  }
  if (events_.empty()) {
    if (!next_deadline(true) || !expire_timeouts()) {
      at_deadlock();
    }
    return;
  }
  const std::optional<Time> deadline = next_deadline(false);
  if (deadline && *deadline < events_.next_time()) {
    expire_timeouts();  // nothing is stuck, but somebody has waited too long
    return;
  }
  now_ = events_.next_time();
  if (now_ > options_.limits.simulated_time) {
    now_ = options_.limits.simulated_time;
    stop("simulated_time", options_.limits.simulated_time);
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
  serve_store();
  return interruptions_.size() > told;
}

void Engine::schedule_full_slots() {
  std::sort(full_.begin(), full_.end());  // not the order of arrival: schedules must not be visible
  for (const SlotKey& key : full_) {
    const Slot& slot = *matchers_[key.group]->find(key.seq);
    const Op first = matchers_[key.group]->op_of(slot, 0);  // calls may differ in size
    incidents_->inspect_full(now_, key.group, slot);
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

void Engine::complete(GroupId group, Slot& slot) {
  if (slot.differs || slot.raises) [[unlikely]] {
    settle(group, slot);
    return;
  }
  const Op& op = slot.reference;
  if (has_own_order_ && has_reduce_op(op.kind) && rules_->complete(op, slot)) {
    // with the bits of the backend's own order of additions
  } else if (slot.uniform && has_uniform_form(op.kind)) {
    apply_uniform(op, slot.values, slot.tensors);
  } else if (has_tensor(op.kind)) {
    std::vector<OpTensors> tensors;
    for (Rank member = 0; member < members_[group].size(); ++member) {
      tensors.push_back(matchers_[group]->op_of(slot, member).tensors);
    }
    if (const std::int64_t bytes = dense_bytes(op, tensors); bytes > options_.limits.dense_bytes) {
      slot.fates.assign(tensors.size(), Fate::fails);
      slot.failures.assign(tensors.size(), too_dense(op, bytes, options_.limits.dense_bytes));
      deal_fates(group, slot);
      return;
    }
    apply_op(op, tensors);
  }
  slot.phase = Slot::Phase::done;
  if (recorder_) [[unlikely]] {
    recorder_->finished(groups_[group], slot, now_);
  }
  if (queues_launches_) [[unlikely]] {
    finish_on_devices(group, slot);
    return;
  }
  for (const Rank rank : slot.waiters) {
    wake(rank);
  }
  slot.waiters.clear();
}

// A full slot whose calls disagree, or cannot be run: everyone fares as on the real backend.
void Engine::settle(GroupId group, Slot& slot) {
  GroupMatcher& matcher = *matchers_[group];
  const std::vector<std::string> refused =
      options_.debug == DebugLevel::detail ? detail_mismatch(matcher, slot) : std::vector<std::string>();
  if (refused.empty()) {
    rules_->settle(matcher, slot);
  } else {
    slot.fates.assign(refused.size(), Fate::fails);
    slot.failures = refused;
  }
  deal_fates(group, slot);
}

// Every member goes on, stays or ends as its fate says.
void Engine::deal_fates(GroupId group, Slot& slot) {
  const bool all_complete =
      std::ranges::all_of(slot.fates, [](Fate fate) { return fate == Fate::completes; });
  slot.phase = all_complete ? Slot::Phase::done : Slot::Phase::irregular;
  if (recorder_) {
    recorder_->finished(groups_[group], slot, now_);
  }
  if (queues_launches_) {
    finish_on_devices(group, slot);
    return;
  }
  std::vector<Rank> staying;
  for (const Rank rank : std::exchange(slot.waiters, {})) {
    const auto member = static_cast<std::size_t>(status_[static_cast<std::size_t>(rank)].group_rank);
    switch (slot.fates[member]) {
      case Fate::completes:
        wake(rank);
        break;
      case Fate::hangs:
        staying.push_back(rank);
        break;
      case Fate::fails:
      case Fate::crashes:
        wake_interrupted(rank, {slot.fates[member] == Fate::crashes, slot.failures[member]});
        break;
    }
  }
  slot.waiters = std::move(staying);
}

void Engine::wake(Rank rank) {
  if (status_[static_cast<std::size_t>(rank)].state != RankStatus::State::waiting) {
    return;  // it waited for any of several calls, and another one was first
  }
  status_[static_cast<std::size_t>(rank)].state = RankStatus::State::running;
  scheduler_->make_ready(rank);
}

// The rank gives up its wait; what it waited for must not wake it again.
void Engine::wake_interrupted(Rank rank, Interruption interruption) {
  const RankStatus& status = status_[static_cast<std::size_t>(rank)];
  const bool in_slot = status.channel == check::Channel::collectives && !status.in_message();
  if (Slot* slot = in_slot ? matchers_[status.group]->find(status.seq) : nullptr) {
    slot->given_up = true;
  }
  leave_channel(rank);
  if (queues_launches_) {
    host_waits_[static_cast<std::size_t>(rank)] = {};
  } else if (status.channel != check::Channel::collectives) {
    // no slot and no message knows of it
  } else if (status.in_message()) {
    check::MessageMatcher& messages = messages_of(status.group);
    if (messages.is_current(status.message, status.group_rank, status.seq)) {
      messages.withdraw(status.message);
    }
  } else if (Slot* slot = matchers_[status.group]->find(status.seq)) {
    std::erase(slot->waiters, rank);
    // The call stays in its slot, and may complete after the rank has dropped its tensors.
    retain(matchers_[status.group]->op_of(*slot, status.group_rank), *slot);
  }
  interruptions_.emplace(rank, std::move(interruption));
  wake(rank);
}

// ---- The end ----

// Nothing is scheduled and ranks are parked: whatever they wait for can never come. The verdict is
// settled here. What follows is only how the real job would notice.
void Engine::at_deadlock() {
  resolve_host_waits();
  if (!verdict_) {
    verdict_ = check::judge(evidence());
  }
  tell_settled();
  if (tell_lost_peers() || expire_timeouts()) {
    return;
  }
  conclude();
  aborting_ = true;
  abort_waiting();
}

void Engine::tell_settled() {
  if (told_settled_ || !options_.settled) {
    return;
  }
  told_settled_ = true;
  std::vector<RankClass::State> states;
  for (const RankStatus& status : status_) {
    states.push_back(check::state_of(status));
  }
  options_.settled(states);
}

// Ranks whose peer's process is gone see its connection close. True when there was one.
bool Engine::tell_lost_peers() {
  const std::string text = rules_->lost_peer_text();
  std::vector<Rank> told;
  const std::vector<bool> torn = text.empty() ? std::vector<bool>() : torn_groups();
  for (std::size_t rank = 0; rank < status_.size() && !text.empty(); ++rank) {
    if (status_[rank].state == RankStatus::State::waiting && has_lost_peer(status_[rank], torn)) {
      told.push_back(static_cast<Rank>(rank));
    }
  }
  for (const Rank rank : told) {
    wake_interrupted(rank, {false, text});
  }
  return !told.empty();
}

// By group: whether some member's process is gone. Asked once for all waiting ranks.
std::vector<bool> Engine::torn_groups() const {
  std::vector<bool> torn;
  for (const GroupMembers& group : members_) {
    torn.push_back(std::ranges::any_of(group.ranks, [this](Rank rank) { return has_left(rank); }));
  }
  return torn;
}

bool Engine::has_left(Rank rank) const {
  const RankStatus::State state = status_[static_cast<std::size_t>(rank)].state;
  const bool ended = state == RankStatus::State::finished || state == RankStatus::State::raised;
  return state == RankStatus::State::crashed || (ended && options_.finished_ranks_exit);
}

// A collective is torn by any member's end, a message by its other end's.
bool Engine::has_lost_peer(const RankStatus& status, const std::vector<bool>& torn) const {
  if (status.channel != check::Channel::collectives) {
    return false;  // the store has other connections
  }
  if (!status.in_message()) {
    return torn[status.group];
  }
  check::Evidence all;
  all.groups = groups_;
  return std::ranges::any_of(check::awaited(all, status), [this](Rank peer) { return has_left(peer); });
}

void Engine::stop(const char* limit, std::int64_t value) {
  if (!aborting_) {
    limit_ = check::LimitIncident{limit, value};
    conclude();
    aborting_ = true;
    steps_left_ = 0;  // ranks that have not run yet, and may never call us, end at their first step
  }
}

// Wakes every parked rank so that it unwinds: each wait throws once `aborting_` is set.
void Engine::abort_waiting() {
  expects(aborting_, "ranks are aborted once the verdict is settled");
  bool anybody = false;
  const auto end = [&](Rank rank) {
    anybody = true;
    scheduler_->make_ready(rank);
  };
  for (std::size_t rank = 0; rank < status_.size(); ++rank) {
    if (status_[rank].state == RankStatus::State::waiting) {
      end(static_cast<Rank>(rank));
    }
  }
  while (!events_.empty()) {
    const Event event = events_.pop();
    if (event.kind == Event::Kind::wake) {
      end(event.rank);
    }
  }
  expects(anybody, "a rank that has not ended is parked somewhere");
}

check::Evidence Engine::evidence() {
  resolve_host_waits();
  for (std::size_t rank = 0; rank < status_.size(); ++rank) {
    status_[rank].inputs = contexts_[rank].inputs_taken;
  }
  check::Evidence evidence;
  evidence.backend = rules_->name();
  evidence.groups = groups_;
  evidence.ranks = status_;
  evidence.exceptions = exceptions_;
  evidence.scopes = &scopes_;
  evidence.limit = limit_;
  evidence.timeout = timeout_incident_;
  evidence.store_waits = store_waits_;
  evidence.rank_lists = rank_lists_;
  leaks_ = leaks();
  evidence.leaks = leaks_;
  incidents_->add_to(evidence);
  return evidence;
}

// Takes the final state down, once; it needs the tensors and frames of ranks that still wait.
void Engine::conclude() {
  if (!classes_.empty()) {
    return;
  }
  tell_settled();
  const check::Evidence all = evidence();
  if (!verdict_) {
    verdict_ = check::judge(all);
  }
  classes_ = check::classify(all);
  if (recorder_) {
    for (const check::GroupEvidence& group : groups_) {
      for (std::int64_t seq = group.matcher->first_live(); seq < group.matcher->end(); ++seq) {
        recorder_->finished(group, *group.matcher->find(seq), Span::open);
      }
      if (group.messages != nullptr) {
        for (const check::MessageId id : group.messages->pending()) {
          recorder_->message(group, group.messages->at(id), Span::open);
        }
      }
    }
  }
}

Report Engine::report() {
  Report report;
  report.seed = options_.seed;
  report.world_size = options_.world_size;
  report.backend = rules_->name();
  report.verdict = std::move(*verdict_);
  report.ranks = std::move(classes_);
  std::ranges::stable_sort(output_, {}, &OutputLine::rank);
  report.output = std::move(output_);
  report.simulated_time = now_;
  report.ops = ops_;
  if (recorder_) {
    report.timeline = recorder_->take();
    for (const GroupMembers& group : members_) {
      report.groups.push_back({group.name, RankSet::of(group.ranks)});
    }
  }
  return report;
}

}  // namespace rollcall::sim
