#include "real/evidence/evidence_builder.h"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "sim/c10d/backend_traits.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::real {
namespace {

using check::Channel;
using check::Message;
using check::MessageMatcher;
using check::RankStatus;
using check::Slot;

bool agree(const Op& send, const Op& receive) {
  return send.numel == receive.numel && send.dtype == receive.dtype;
}

bool is_from_anyone(const Op& op) { return op.kind == OpKind::recv && op.root < 0; }

// All records by time, rank and number; so those of one rank are in the order in which it wrote them.
std::vector<std::tuple<Time, Rank, std::size_t>> in_order(const RunLog& log) {
  std::vector<std::tuple<Time, Rank, std::size_t>> order;
  for (std::size_t rank = 0; rank < log.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < log.ranks[rank].records.size(); ++i) {
      order.emplace_back(log.ranks[rank].records[i].at, static_cast<Rank>(rank), i);
    }
  }
  std::ranges::sort(order);
  return order;
}

}  // namespace

EvidenceBuilder::EvidenceBuilder(const Options& options, const std::vector<GroupMembers>& groups,
                                 const RunLog& log, Extent extent)
    : options_(options), log_(log), extent_(extent) {
  for (const GroupMembers& group : groups) {
    add_group(group, options_.timeout);
  }
  status_.resize(log.ranks.size());
  notes_.store_waits.resize(log.ranks.size());
  states_.resize(log.ranks.size());
  for (RankState& state : states_) {
    for (const GroupMembers& group : groups_) {
      state.groups.push_back(group.id);
    }
  }
  for (std::size_t rank = 0; rank < log.ranks.size(); ++rank) {
    choose_calls(static_cast<Rank>(rank));
  }
  for (const auto& [at, rank, index] : in_order(log)) {
    if (!state_of(rank).is_over) {
      replay(rank, index);
    }
  }
  for (std::size_t rank = 0; rank < log.ranks.size(); ++rank) {
    if (log.ranks[rank].death) {
      record_death(static_cast<Rank>(rank), *log.ranks[rank].death);
    }
  }
  for (RankState& state : states_) {  // unanswered receives from any source
    for (Call& call : state.calls) {
      if (call.message != check::no_message && is_from_anyone(call.op) && !call.done) {
        messages_of(call.op.group).post(call.message, log.end);
      }
    }
  }
  find_lost_messages();
  find_store_waits();
  note_absent_ranks();
  apply_deadline();
  end_unwatched_spans();
  for (const Span& span : spans_) {
    timeline_.add(span);
  }
  evidence_ = notes_.evidence(options_.backend, status_, options_.check_leaks);
  evidence_.torch = &traits_of(options_.torch);
  evidence_.new_group_waits_for_all =
      evidence_.torch->new_group_waits_for_all ||
      (options_.eager_communicators && traits_of(options_.backend).queues_calls);
}

EvidenceBuilder::Queue EvidenceBuilder::queue_of(const Op& op) {
  return {op.group, check::channel_of(op.kind), is_point_to_point(op.kind)};
}

EvidenceBuilder::Place EvidenceBuilder::place_of(const Call& call) {
  return {call.op.group, check::channel_of(call.op.kind), call.seq, call.message};
}

void EvidenceBuilder::add_group(GroupMembers members, Duration timeout, bool is_connected) {
  timeouts_.push_back(timeout);
  groups_.push_back(std::move(members));
  matchers_.emplace_back();
  messengers_.emplace_back();
  group_evidence_.push_back({.members = &groups_.back(),
                             .connects_late = traits_of(options_.backend).connects_at_first_use &&
                                              !options_.eager_communicators && !is_connected});
  group_evidence_.back().matcher = &matcher_of(groups_.back().id, Channel::collectives);
  has_called_.emplace_back(groups_.back().ranks.size());
}

// Decides which calls count: not those that the backend refused, and perhaps not those that a dead rank was in.
void EvidenceBuilder::choose_calls(Rank rank) {
  const RankLog& log = log_.ranks[static_cast<std::size_t>(rank)];
  RankState& state = state_of(rank);
  std::vector<Queue> queues;  // of each call
  std::map<Queue, std::int64_t> last_completed;
  for (const Record& record : log.records) {
    if (record.kind == Record::Kind::issue) {
      queues.push_back(queue_of(record.op.op));
      state.left_out.push_back(false);
    } else if (record.kind == Record::Kind::refuse) {
      const bool noticed = record.lost_peer && extent_.until_noticed;
      state.left_out[static_cast<std::size_t>(record.call)] = !noticed;
    } else if (record.kind == Record::Kind::complete) {
      std::int64_t& last =
          last_completed.try_emplace(queues[static_cast<std::size_t>(record.call)], -1).first->second;
      last = std::max(last, record.call);
    }
  }
  if (!log.death || !extent_.without_last_calls_of_dead) {
    return;
  }
  for (std::size_t call = 0; call < queues.size(); ++call) {
    const auto last = last_completed.find(queues[call]);
    const bool follows = last != last_completed.end() && static_cast<std::int64_t>(call) < last->second;
    const bool is_last = last != last_completed.end() && static_cast<std::int64_t>(call) == last->second;
    state.left_out[call] = state.left_out[call] || !(follows || is_last);
  }
}

void EvidenceBuilder::replay(Rank rank, std::size_t index) {
  const Record& record = log_.ranks[static_cast<std::size_t>(rank)].records[index];
  using Kind = Record::Kind;
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.inputs = std::max(status.inputs, record.inputs);
  if (status.state == RankStatus::State::waiting) {
    status.state = RankStatus::State::running;  // otherwise it could not have written this record
  }
  if (state_of(rank).batch != none) {
    if (record.kind == Kind::wait) {
      return wait_to_connect(rank, state_of(rank).unconnected.front());
    }
    if (record.kind == Kind::issue) {
      return;  // of the same batch
    }
    if (record.kind == Kind::connect) {
      return connect(rank);
    }
    if (record.kind != Kind::complete) {     // of an earlier call
      state_of(rank).unconnected.resize(1);  // its batch has failed
      connect(rank);
    }
  }
  switch (record.kind) {
    case Kind::issue:
      return issue(rank, index);
    case Kind::wait:
      return wait(rank, record);
    case Kind::complete:
      return complete(rank, record);
    case Kind::refuse:
    case Kind::fail:
      return fail(rank, record);
    case Kind::finish:
      return notes_.end(status, RankStatus::State::finished, {}, {});
    case Kind::raise:
      return notes_.end(status, RankStatus::State::raised, record.type, record.text);
    case Kind::limit:
      notes_.limit = check::LimitIncident{FindingKind::ops, record.value};
      return;
    case Kind::observe:
      return observe(rank, record);
    case Kind::drop:
      state_of(rank).dropped.emplace_back(record.call, record.at);
      return;
    case Kind::die:
      state_of(rank).last_output = record.text;
      return;
    case Kind::begin:
    case Kind::connect:
    case Kind::gone:
    case Kind::result:
    case Kind::print:
    case Kind::warn:
      return;
  }
}

// The records of a batch, or of a single call.
std::vector<std::size_t> EvidenceBuilder::records_of_call(Rank rank, std::size_t index) const {
  const std::vector<Record>& records = log_.ranks[static_cast<std::size_t>(rank)].records;
  std::vector<std::size_t> found{index};
  if (records[index].value != no_batch) {
    for (std::size_t i = index + 1; i < records.size() && records[i].kind == Record::Kind::issue &&
                                    records[i].value == records[index].value;
         ++i) {
      found.push_back(i);
    }
  }
  return found;
}

// The calls of a batch are replayed together.
void EvidenceBuilder::issue(Rank rank, std::size_t index) {
  const std::vector<Record>& records = log_.ranks[static_cast<std::size_t>(rank)].records;
  const Record& first = records[index];
  RankState& state = state_of(rank);
  if (first.call < static_cast<std::int64_t>(state.calls.size())) {
    return;
  }
  const std::vector<std::size_t> calls = records_of_call(rank, index);
  const bool is_batch = first.value != no_batch;
  if (is_batch && state.batch == none) {
    await_communicators(rank, calls);
    if (!state.unconnected.empty()) {
      state.batch = index;
      return;
    }
  }
  const GroupId group = restore(rank, first.op).group;
  if (is_batch) {
    messages_of(group).begin_batch();
  }
  for (const std::size_t i : calls) {
    take_call(rank, records[i]);
  }
  if (is_batch) {
    messages_of(group).end_batch();
  }
}

void EvidenceBuilder::take_call(Rank rank, const Record& record) {
  Call& call = state_of(rank).calls.emplace_back();
  call.op = restore(rank, record.op);
  const Op& op = call.op;
  call.store = record.op.store;
  call.limit = record.op.limit;
  if (op.kind == OpKind::destroy_process_group) {
    notes_.destroy(op.group, rank);
  }
  // A group ends for each member separately. A member that passed another list of ranks has another group.
  const bool is_apart = op.kind == OpKind::destroy_process_group || op.group >= groups_.size() ||
                        groups_[op.group].rank_of(rank) != op.rank;
  if (state_of(rank).left_out[static_cast<std::size_t>(record.call)] || is_apart) {
    return;
  }
  ++calls_;
  if (!record.op.ranks.empty()) {
    call.op.numel = notes_.number_of(record.op.ranks, groups_[op.group]);
  }
  if (is_point_to_point(op.kind)) {
    call.message = messages_of(op.group).plan(op);
    call.seq = messages_of(op.group).at(call.message).seq;
    if (!is_from_anyone(op)) {
      post(call, record.at);
    }
    notes_.note_late_call(record.at, op, call.seq);
  } else if (call.store) {
    call.seq = rank;
  } else {
    tell_batches(op);
    arrive(call, record.at);
    notes_.note_late_call(record.at, op, call.seq);
    if (op.kind == OpKind::new_group || op.kind == OpKind::split_group) {
      make_groups(rank, call, record.op.group_name);
    }
  }
  open_span(rank, call, record.at);
}

void EvidenceBuilder::arrive(Call& call, Time at) {
  const Channel channel = check::channel_of(call.op.kind);
  const Slot& slot = matcher_of(call.op.group, channel).arrive(call.op);
  call.seq = slot.seq;
  if (slot.differs) {
    notes_.incidents.suspect(at, call.op.group, slot.seq, channel);
  }
  if (slot.phase == Slot::Phase::full) {
    notes_.incidents.inspect_full(at, call.op.group, slot);
  }
}

void EvidenceBuilder::post(Call& call, Time at) {
  messages_of(call.op.group).post(call.message, at);
  inspect_messages(call.op.group, at);
}

void EvidenceBuilder::inspect_messages(GroupId group, Time at) {
  MessageMatcher& messages = messages_of(group);
  for (const auto& [send_id, receive_id] : messages.matched()) {
    Message& send = messages.at(send_id);
    Message& receive = messages.at(receive_id);
    if (!agree(send.op, receive.op)) {
      notes_.incidents.message(at, send, receive);
      send.phase = receive.phase = Message::Phase::stuck;
    }
  }
  messages.matched().clear();
}

void EvidenceBuilder::observe(Rank rank, const Record& record) {
  Observation observation = *record.observation;
  observation.op = restore(rank, record.op);
  observation.site.file = record.text.empty() ? nullptr : files_.insert(record.text).first->c_str();
  notes_.incidents.observe(record.at, rank, observation);
}

// Gloo does not say whether a message had gone when its handle was dropped. It had not if its other end has not got it.
void EvidenceBuilder::find_lost_messages() {
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    for (const auto& [number, at] : states_[rank].dropped) {
      const Call& call = states_[rank].calls[static_cast<std::size_t>(number)];
      if (call.message == check::no_message) {
        continue;
      }
      const MessageMatcher& messages = messages_of(call.op.group);
      const Message& message = messages.at(call.message);
      const bool has_come = message.phase == Message::Phase::done ||
                            (message.partner != check::no_message &&
                             messages.at(message.partner).phase == Message::Phase::done);
      if (!has_come) {
        notes_.incidents.observe(
            at, static_cast<Rank>(rank),
            {.kind = Observation::Kind::dropped, .op = call.op, .seq = call.seq, .site = call.op.site});
      }
    }
  }
}

void EvidenceBuilder::wait(Rank rank, const Record& record) {
  const Call& call = state_of(rank).calls[static_cast<std::size_t>(record.call)];
  if (call.seq == no_seq) {
    return;
  }
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.wait_in(call.op.group, call.op.rank, call.seq, call.message);
  status.channel = check::channel_of(call.op.kind);
  if (call.store) {
    notes_.store_waits[static_cast<std::size_t>(rank)] = {call.op, call.store->keys};
  }
  if (gives_up_in_time(call)) {
    ending_.insert(place_of(call));
  }
}

void EvidenceBuilder::complete(Rank rank, const Record& record) {
  status_[static_cast<std::size_t>(rank)].state = RankStatus::State::running;
  Call& call = state_of(rank).calls[static_cast<std::size_t>(record.call)];
  if (call.seq == no_seq) {
    return;
  }
  call.done = true;
  if (call.store) {
    return complete_store_call(rank, call, record);
  }
  if (options_.timeline && check::channel_of(call.op.kind) == Channel::collectives) {
    Span& span = spans_[call.span];
    span.start = record.ran_to >= 0 ? record.ran_from : span.start;
    span.end = record.ran_to >= 0 ? record.ran_to : record.at;
  }
  if (call.message != check::no_message) {
    return complete_message(call, record);
  }
  complete_slot(call);
}

void EvidenceBuilder::complete_message(Call& call, const Record& record) {
  MessageMatcher& messages = messages_of(call.op.group);
  if (is_from_anyone(call.op)) {
    messages.at(call.message).op.root = record.source;
    post(call, record.at);
  }
  if (messages.at(call.message).phase == Message::Phase::matched) {
    messages.at(call.message).phase = Message::Phase::done;
  }
}

void EvidenceBuilder::complete_slot(const Call& call) {
  const auto count = completions_.try_emplace(place_of(call), 0).first;
  check::GroupMatcher& matcher = matcher_of(call.op.group, check::channel_of(call.op.kind));
  Slot& slot = *matcher.find(call.seq);
  if (++count->second == groups_[call.op.group].size()) {
    slot.phase = Slot::Phase::done;
    matcher.retire();
    completions_.erase(count);
  } else if (slot.phase == Slot::Phase::collecting) {  // completed before the others arrived, or without them
    slot.let_through(call.op.rank);
  }
}

check::GroupMatcher& EvidenceBuilder::matcher_of(GroupId group, Channel channel) {
  const auto index = static_cast<std::size_t>(channel);
  std::unique_ptr<check::GroupMatcher>& matcher = matchers_[group][index];
  if (matcher == nullptr) {
    matcher = std::make_unique<check::GroupMatcher>(groups_[group].size());
    if (channel != Channel::collectives) {
      group_evidence_[group].others[index] = matcher.get();
    }
  }
  return *matcher;
}

MessageMatcher& EvidenceBuilder::messages_of(GroupId group) {
  std::unique_ptr<MessageMatcher>& messages = messengers_[group];
  if (messages == nullptr) {
    const auto discipline = group_evidence_[group].connects_late
                                ? MessageMatcher::Discipline::apart
                                : MessageMatcher::usual_on(traits_of(options_.backend));
    messages = std::make_unique<MessageMatcher>(discipline, groups_[group].size());
    group_evidence_[group].messages = messages.get();
  }
  return *messages;
}

}  // namespace rollcall::real
