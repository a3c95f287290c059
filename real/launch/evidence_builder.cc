#include "real/launch/evidence_builder.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <tuple>

#include <fmt/format.h>

#include "sim/dist/expects.h"

namespace rollcall::real {
namespace {

using check::Message;
using check::MessageMatcher;
using check::RankStatus;
using check::Slot;

constexpr std::int64_t no_seq = -1;

// "SIGKILL".
std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

bool agree(const Op& send, const Op& receive) {
  return send.numel == receive.numel && send.dtype == receive.dtype;
}

bool is_from_anyone(const Op& op) { return op.kind == OpKind::recv && op.root < 0; }

// All records in the order of time; of one rank, in the order in which it wrote them.
std::vector<std::pair<Rank, std::size_t>> in_order(const RunLog& log) {
  std::vector<std::tuple<Time, Rank, std::size_t>> order;
  for (std::size_t rank = 0; rank < log.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < log.ranks[rank].records.size(); ++i) {
      order.emplace_back(log.ranks[rank].records[i].at, static_cast<Rank>(rank), i);
    }
  }
  std::ranges::sort(order);
  std::vector<std::pair<Rank, std::size_t>> records;
  for (const auto& [at, rank, i] : order) {
    records.emplace_back(rank, i);
  }
  return records;
}

}  // namespace

EvidenceBuilder::EvidenceBuilder(const Options& options, const std::vector<GroupMembers>& groups,
                                 const RunLog& log, Telling telling)
    : options_(options), groups_(groups), log_(log), telling_(telling) {
  for (const GroupMembers& group : groups_) {
    matchers_.push_back(std::make_unique<check::GroupMatcher>(group.size()));
    messengers_.emplace_back();
    evidence_.push_back({&group, matchers_.back().get()});
    completions_.emplace_back();
  }
  incidents_ = std::make_unique<check::IncidentLog>(evidence_, scopes_);
  status_.resize(log.ranks.size());
  states_.resize(log.ranks.size());
  for (std::size_t rank = 0; rank < log.ranks.size(); ++rank) {
    choose_calls(static_cast<Rank>(rank));
  }
  for (const auto& [rank, index] : in_order(log)) {
    if (!state_of(rank).told) {
      tell(rank, index);
    }
  }
  for (std::size_t rank = 0; rank < log.ranks.size(); ++rank) {
    if (log.ranks[rank].death) {
      bury(static_cast<Rank>(rank), *log.ranks[rank].death);
    }
  }
  for (RankState& state : states_) {  // receives from anyone that nobody has answered
    for (Call& call : state.calls) {
      if (call.message != check::no_message && is_from_anyone(call.op) && !call.done) {
        messages_of(call.op.group).post(call.message, log.end);
      }
    }
  }
  apply_deadline();
  for (const Span& span : spans_) {
    timeline_.add(span);
  }
}

// Which calls count: not those that the backend refused, and perhaps not those a dead rank was in.
void EvidenceBuilder::choose_calls(Rank rank) {
  const RankLog& log = log_.ranks[static_cast<std::size_t>(rank)];
  RankState& state = state_of(rank);
  std::vector<std::pair<GroupId, bool>> queues;  // of each call: its group, and whether it is a message
  std::map<std::pair<GroupId, bool>, std::int64_t> last_completed;
  for (const Record& record : log.records) {
    if (record.kind == Record::Kind::issue) {
      queues.emplace_back(record.op.op.group, is_point_to_point(record.op.op.kind));
      state.left_out.push_back(false);
    } else if (record.kind == Record::Kind::refuse) {
      const bool noticed = record.lost_peer && telling_.until_noticed;
      state.left_out[static_cast<std::size_t>(record.call)] = !noticed;
    } else if (record.kind == Record::Kind::complete) {
      std::int64_t& last =
          last_completed.try_emplace(queues[static_cast<std::size_t>(record.call)], -1).first->second;
      last = std::max(last, record.call);
    }
  }
  if (!log.death || !telling_.without_last_calls_of_dead) {
    return;
  }
  for (std::size_t call = 0; call < queues.size(); ++call) {
    const auto last = last_completed.find(queues[call]);
    const bool follows = last != last_completed.end() && static_cast<std::int64_t>(call) < last->second;
    const bool is_last = last != last_completed.end() && static_cast<std::int64_t>(call) == last->second;
    state.left_out[call] = state.left_out[call] || !(follows || is_last);
  }
}

void EvidenceBuilder::tell(Rank rank, std::size_t index) {
  const Record& record = log_.ranks[static_cast<std::size_t>(rank)].records[index];
  using Kind = Record::Kind;
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.inputs = std::max(status.inputs, record.inputs);
  if (status.state == RankStatus::State::waiting) {
    status.state = RankStatus::State::running;  // or it could not have written this
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
      return end(rank, RankStatus::State::finished, {}, {});
    case Kind::raise:
      return end(rank, RankStatus::State::raised, record.type, record.text);
    case Kind::limit:
      limit_ = check::LimitIncident{record.type, record.value};
      return;
    case Kind::observe:
      return observe(rank, record);
    case Kind::die:
      state_of(rank).dying_words = record.text;
      return;
    case Kind::begin:
    case Kind::gone:
    case Kind::print:
    case Kind::warn:
      return;
  }
}

// The calls of a batch are told together.
void EvidenceBuilder::issue(Rank rank, std::size_t index) {
  const std::vector<Record>& records = log_.ranks[static_cast<std::size_t>(rank)].records;
  const Record& first = records[index];
  if (first.call < static_cast<std::int64_t>(state_of(rank).calls.size())) {
    return;
  }
  const auto in_batch = [&](const Record& record) {
    return record.kind == Record::Kind::issue && record.value == first.value;
  };
  const bool is_batch = first.value != no_batch;
  if (is_batch) {
    messages_of(first.op.op.group).begin_batch();
  }
  for (std::size_t i = index; i == index || (is_batch && i < records.size() && in_batch(records[i])); ++i) {
    take_call(rank, records[i]);
  }
  if (is_batch) {
    messages_of(first.op.op.group).end_batch();
  }
}

void EvidenceBuilder::take_call(Rank rank, const Record& record) {
  Call& call = state_of(rank).calls.emplace_back();
  call.op = restore(record.op);
  const Op& op = call.op;
  if (state_of(rank).left_out[static_cast<std::size_t>(record.call)]) {
    return;
  }
  ++calls_;
  if (is_point_to_point(op.kind)) {
    call.message = messages_of(op.group).plan(op);
    call.seq = messages_of(op.group).at(call.message).seq;
    if (!is_from_anyone(op)) {
      post(call, record.at);
    }
  } else {
    const Slot& slot = matchers_[op.group]->arrive(op);
    call.seq = slot.seq;
    if (slot.differs) {
      incidents_->suspect(record.at, op.group, slot.seq);
    }
    if (slot.phase == Slot::Phase::full) {
      incidents_->inspect_full(record.at, op.group, slot);
    }
  }
  open_span(rank, call, record.at);
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
      incidents_->message(at, send, receive);
      send.phase = receive.phase = Message::Phase::stuck;
    }
  }
  messages.matched().clear();
}

void EvidenceBuilder::observe(Rank rank, const Record& record) {
  Observation observation = *record.observation;
  observation.op = restore(record.op);
  observation.site.file = record.text.empty() ? nullptr : files_.insert(record.text).first->c_str();
  incidents_->observe(record.at, rank, observation);
}

void EvidenceBuilder::wait(Rank rank, const Record& record) {
  const Call& call = state_of(rank).calls[static_cast<std::size_t>(record.call)];
  if (call.seq == no_seq) {
    return;
  }
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.state = RankStatus::State::waiting;
  status.group = call.op.group;
  status.group_rank = call.op.rank;
  status.seq = call.seq;
  status.message = call.message;
}

void EvidenceBuilder::complete(Rank rank, const Record& record) {
  status_[static_cast<std::size_t>(rank)].state = RankStatus::State::running;
  Call& call = state_of(rank).calls[static_cast<std::size_t>(record.call)];
  if (call.seq == no_seq) {
    return;
  }
  call.done = true;
  if (options_.timeline) {
    spans_[call.span].end = record.at;
  }
  const GroupId group = call.op.group;
  if (call.message != check::no_message) {
    MessageMatcher& messages = messages_of(group);
    if (is_from_anyone(call.op)) {
      messages.at(call.message).op.root = record.source;
      post(call, record.at);
    }
    if (messages.at(call.message).phase == Message::Phase::matched) {
      messages.at(call.message).phase = Message::Phase::done;
    }
    return;
  }
  if (++completions_[group][call.seq] == groups_[group].size()) {
    matchers_[group]->find(call.seq)->phase = Slot::Phase::done;
    matchers_[group]->retire();
    completions_[group].erase(call.seq);
  }
}

// The rank got an error instead of a result.
void EvidenceBuilder::fail(Rank rank, const Record& record) {
  const Call& call = state_of(rank).calls[static_cast<std::size_t>(record.call)];
  give_up(rank, call);
  if (record.lost_peer && telling_.until_noticed) {
    wait(rank, record);
    state_of(rank).told = true;
    return;
  }
  status_[static_cast<std::size_t>(rank)].state = RankStatus::State::running;
}

void EvidenceBuilder::give_up(Rank, const Call& call) {
  if (call.seq == no_seq) {
    return;
  }
  if (call.message == check::no_message) {
    broken_.emplace(call.op.group, call.seq);
  } else if (const auto partner = messages_of(call.op.group).at(call.message).partner;
             partner != check::no_message) {
    broken_messages_.emplace(call.op.group, partner);
  }
}

void EvidenceBuilder::end(Rank rank, RankStatus::State state, const std::string& type,
                          const std::string& text) {
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.state = state;
  if (!type.empty()) {
    const auto same = [&](const check::Exception& e) { return e.type == type && e.message == text; };
    const auto found = std::ranges::find_if(exceptions_, same);
    status.exception = static_cast<std::int32_t>(found - exceptions_.begin());
    if (found == exceptions_.end()) {
      exceptions_.push_back({type, text});
    }
  }
}

void EvidenceBuilder::bury(Rank rank, const Death& death) {
  RankState& state = state_of(rank);
  std::string text = !state.dying_words.empty() ? state.dying_words : death.text;
  if (const std::string call = open_call_of(rank); text.empty() && !call.empty()) {
    text = "while it was in " + call;
  }
  for (const Call& call : state.calls) {
    if (!call.done) {
      give_up(rank, call);
    }
  }
  end(rank, RankStatus::State::crashed,
      death.signal != 0 ? signal_name(death.signal) : fmt::format("exit code {}", death.exit_code), text);
}

// "all_reduce #3 on world": what the log's last words are about, also where the telling leaves it out.
std::string EvidenceBuilder::open_call_of(Rank rank) const {
  std::map<std::pair<GroupId, bool>, std::int64_t> next;
  const RankState& state = states_[static_cast<std::size_t>(rank)];
  std::string phrase;
  for (const Call& call : state.calls) {
    std::int64_t& seq = next[{call.op.group, is_point_to_point(call.op.kind)}];
    if (!call.done) {
      phrase = fmt::format("{} #{} on {}", to_string(call.op.kind), seq, groups_[call.op.group].name);
      break;
    }
    ++seq;
  }
  return phrase;
}

EvidenceBuilder::Outlook EvidenceBuilder::outlook(const RankStatus& status) const {
  if (status.in_message()) {
    if (broken_messages_.contains({status.group, status.message})) {
      return Outlook::doubtful;
    }
    switch (messengers_[status.group]->at(status.message).phase) {
      case Message::Phase::matched:
        return Outlook::good;
      case Message::Phase::stuck:
        return Outlook::doubtful;
      case Message::Phase::planned:
      case Message::Phase::pending:
      case Message::Phase::done:
      case Message::Phase::failed:
        return Outlook::hopeless;
    }
  }
  const Slot* slot = matchers_[status.group]->find(status.seq);
  expects(slot != nullptr, "a rank waits in a slot that is alive");
  const bool is_broken = broken_.contains({status.group, status.seq});
  if (slot->arrived < matchers_[status.group]->size() && !is_broken) {
    return Outlook::hopeless;
  }
  return slot->differs || is_broken ? Outlook::doubtful : Outlook::good;
}

// A run that its deadline ended proves nothing while somebody could still have moved.
void EvidenceBuilder::apply_deadline() {
  const auto could_move = [this](const RankStatus& status) {
    return status.state == RankStatus::State::running ||
           (status.state == RankStatus::State::waiting && outlook(status) == Outlook::good);
  };
  if (log_.timed_out && !limit_ && std::ranges::any_of(status_, could_move)) {
    limit_ = check::LimitIncident{"deadline", options_.deadline / millisecond};
  }
}

check::Evidence EvidenceBuilder::evidence() const {
  check::Evidence evidence;
  evidence.backend = options_.backend;
  evidence.groups = evidence_;
  evidence.ranks = status_;
  evidence.exceptions = exceptions_;
  evidence.scopes = &scopes_;
  evidence.limit = limit_;
  incidents_->add_to(evidence);
  return evidence;
}

MessageMatcher& EvidenceBuilder::messages_of(GroupId group) {
  std::unique_ptr<MessageMatcher>& messages = messengers_[group];
  if (messages == nullptr) {
    const auto discipline =
        options_.backend == "nccl" ? MessageMatcher::Discipline::ordered : MessageMatcher::Discipline::tagged;
    messages = std::make_unique<MessageMatcher>(discipline, groups_[group].size());
    evidence_[group].messages = messages.get();
  }
  return *messages;
}

// ---- From the log's values back to an Op ----

ScopeId EvidenceBuilder::restore_scope(const LoggedOp& logged) {
  ScopeId scope = no_scope;
  for (std::size_t i = 0; i < logged.names.size(); ++i) {
    scope = logged.pairings[i].empty() ? scopes_.enter(scope, logged.names[i])
                                       : scopes_.enter_paired(scope, logged.names[i], logged.pairings[i]);
  }
  return scope;
}

Storage* EvidenceBuilder::stand_in(const std::optional<Shape>& shape, const Op& op) {
  return shape ? tensors_.emplace_back(Tensor::meta(*shape, op.dtype, op.device)).storage() : nullptr;
}

const TensorList* EvidenceBuilder::stand_ins(const std::optional<std::vector<Shape>>& shapes, const Op& op) {
  if (!shapes) {
    return nullptr;
  }
  TensorList& list = lists_.emplace_back();
  for (const Shape& shape : *shapes) {
    list.push_back(Tensor::meta(shape, op.dtype, op.device));
  }
  return &list;
}

Op EvidenceBuilder::restore(const LoggedOp& logged) {
  Op op = logged.op;
  op.scope = restore_scope(logged);
  op.site.file = logged.file.empty() ? nullptr : files_.insert(logged.file).first->c_str();
  op.tensors.input = stand_in(logged.input, op);
  op.tensors.output = stand_in(logged.output, op);
  op.tensors.inputs = stand_ins(logged.inputs, op);
  op.tensors.outputs = stand_ins(logged.outputs, op);
  op.tensors.splits = logged.splits ? &splits_.emplace_back(*logged.splits) : nullptr;
  return op;
}

void EvidenceBuilder::open_span(Rank rank, Call& call, Time at) {
  if (!options_.timeline) {
    return;
  }
  const Op& op = call.op;
  Span span;
  span.start = at;
  span.seq = call.seq;
  span.numel = op.numel;
  span.rank = rank;
  span.async_op = op.async_op;
  span.dtype = op.dtype;
  span.kind = is_point_to_point(op.kind) ? Span::Kind::message : Span::Kind::collective;
  const GroupMembers& group = groups_[op.group];
  const bool has_peer = is_point_to_point(op.kind) && op.root >= 0 && op.root < group.size();
  span.peer = has_peer ? group.ranks[static_cast<std::size_t>(op.root)] : -1;
  span.name = timeline_.intern(to_string(op.kind));
  span.group = timeline_.intern(group.name);
  span.label = timeline_.intern(scopes_.path(op.scope));
  span.site = timeline_.intern(to_string(op.site));
  call.span = spans_.size();
  spans_.push_back(span);
}

}  // namespace rollcall::real
