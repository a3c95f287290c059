// The engine's part about calls whose order matters, if Decisions decides it: requests to the store, messages that
// arrive at ranks that receive from any source, and receives of those ranks that name their source. They wait until
// nothing else can move, so that all calls that could be first are there, and go ahead one at a time. Everything else
// that happens meanwhile is independent of them, so delaying them changes nothing.

#include <algorithm>
#include <tuple>

#include "sim/engine/engine.h"

namespace rollcall::sim {
namespace {

using check::MessageId;
using check::MessageMatcher;
using check::RankStatus;

// FNV-1a, over the bytes of numbers and texts.
class Mix {
 public:
  Mix& add(std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) {
      step(static_cast<unsigned char>(number >> (8 * byte)));
    }
    return *this;
  }
  Mix& add(std::string_view text) {
    std::ranges::for_each(text, [this](char c) { step(static_cast<unsigned char>(c)); });
    return *this;
  }
  std::uint64_t value() const { return state_; }

 private:
  void step(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001b3; }

  std::uint64_t state_ = 0xcbf29ce484222325;
};

std::uint64_t as_bits(std::int64_t number) { return static_cast<std::uint64_t>(number); }

Contender::Access access_of(const StoreCall& call) {
  using Kind = StoreCall::Kind;
  switch (call.kind) {
    case Kind::get:
    case Kind::wait:
    case Kind::check:
    case Kind::num_keys:
      return Contender::Access::read;
    case Kind::add:
      return call.is_blind ? Contender::Access::count : Contender::Access::write;
    case Kind::set:
    case Kind::compare_set:
    case Kind::delete_key:
      return Contender::Access::write;
  }
  return Contender::Access::write;
}

// The objects of contenders: where one sender's messages arrive, and where all messages of a tag arrive that a receive
// from any source could take.
std::uint64_t connection(GroupId group, Rank source, Rank receiver, std::int32_t tag) {
  return Mix().add(group).add(as_bits(source)).add(as_bits(receiver)).add(as_bits(tag)).value();
}

std::uint64_t mailbox_of(GroupId group, Rank receiver, std::int32_t tag) {
  return Mix().add(group).add(as_bits(receiver)).add(as_bits(tag)).value();
}

}  // namespace

// True if a call went ahead, or the run is over.
bool Engine::order_calls() {
  if ((store_.requests().empty() && postings_.empty() && !messages_.is_watching()) || others_may_come()) {
    return false;
  }
  gather_contenders();
  const auto ready = static_cast<std::size_t>(
      std::ranges::count_if(contests_, [](const Contest& contest) { return contest.contender.ready; }));
  const std::size_t way = verdict_ ? 0 : decide_order(ready);
  if (way == Decisions::cut) {
    stop(FindingKind::ops, 0);  // any limit: the report of a run that a search abandons is not shown
    abort_waiting();
    return true;
  }
  if (ready > 0) {
    let_go_ahead(way);
  }
  return ready > 0;
}

std::size_t Engine::decide_order(std::size_t ready) {
  if (contests_.empty()) {
    return 0;
  }
  std::vector<Contender> contenders;
  std::ranges::transform(contests_, std::back_inserter(contenders), &Contest::contender);
  const bool is_asked =
      ready > 0 && run_.events.empty() && run_.learner != nullptr && run_.learner->wants_state();
  const std::string held = is_asked ? state() : std::string();
  return run_.options.decisions->decide(
      {.kind = Decision::Kind::order, .rank = -1, .ways = ready, .contenders = contenders, .state = held});
}

// The run's state at a decision, apart from what its ranks have learned, which determines their calls: how far messages
// have come, and the contents of the store. Nothing is scheduled; the time cannot matter, or else the search is told.
std::string Engine::state() const {
  expects(run_.events.empty(), "what is scheduled is not part of a state");
  Encoder state;
  check::LiveNotices notices;
  for (const check::GroupEvidence& group : run_.groups) {
    if (group.messages != nullptr) {
      group.messages->gather_notices(notices);
    }
  }
  state(ops_);
  for (const RankStatus& status : run_.status) {
    state(status.state, status.group, status.channel, status.seq, status.in_message());
  }
  for (GroupId group = 0; group < run_.members.size(); ++group) {
    state(run_.members[group].name);
    state(run_.members[group].ranks);
    if (const auto& last = run_.matchers[group]->last_done()) {
      state(last->seq, last->op.kind, last->op.dtype, last->op.reduce, last->op.root, last->op.numel,
            last->op.scope, last->op.site.line, last->op.site.column);
    }
    if (const MessageMatcher* messages = run_.groups[group].messages) {
      messages->write_state(state, notices);
    }
  }
  for (const Posting& posting : postings_) {
    state(posting.rank);
  }
  state(store_.values());
  if (const Causes* causes = messages_.causes()) {
    causes->write_state(state, notices);
  }
  return std::move(state.bytes);
}

// True if the rank's calls so far are over for all members, left nothing behind, and are not in a report yet.
bool Engine::can_forget() {
  if (run_.learner == nullptr || aborting_ || verdict_ || !run_.notes->incidents.empty()) {
    return false;
  }
  const Rank rank = run_.scheduler->running();
  for (GroupId group = 0; group < run_.members.size(); ++group) {
    const Rank member = run_.members[group].rank_of(rank);
    if (member < 0) {
      continue;
    }
    const check::GroupMatcher& matcher = *run_.matchers[group];
    for (std::int64_t seq = matcher.first_live(); seq < matcher.end(); ++seq) {
      const check::Slot& slot = *matcher.find(seq);
      if (slot.phase != check::Slot::Phase::done && slot.has(member)) {
        return false;
      }
    }
    if (run_.groups[group].messages != nullptr && run_.groups[group].messages->has_open(member)) {
      return false;
    }
  }
  return true;
}

void Engine::holds(std::string_view state) {
  const Rank rank = run_.scheduler->running();
  Encoder all;
  all(std::string(state));
  for (GroupId group = 0; group < run_.members.size(); ++group) {
    const Rank member = run_.members[group].rank_of(rank);
    if (member >= 0) {
      all(run_.matchers[group]->calls_of(member));
      all(run_.groups[group].messages != nullptr ? run_.groups[group].messages->messages_of(member) : 0);
    }
  }
  all(store_.requests_of(rank), contexts_[static_cast<std::size_t>(rank)].inputs_taken);
  handles_.write_state(all, rank);
  run_.learner->holds(rank, all.bytes);
}

// Every rank has ended. Calls that are still in flight change nothing anymore, but they could have preceded those that
// went ahead.
void Engine::tell_of_latecomers() {
  gather_contenders();
  for (Contest& contest : contests_) {
    contest.contender.ready = false;
  }
  decide_order(0);
}

// True if an event is still scheduled, and waiting for it makes no rank give up or die.
bool Engine::others_may_come() {
  if (run_.events.empty()) {
    return false;
  }
  const bool in_time =
      run_.events.next_time() <= std::min(deaths_.next(), deadlines_.first(false).value_or(never));
  if (in_time) {
    run_.options.decisions->held_back();
  } else {
    run_.options.decisions->ordered_by_clock();
  }
  return in_time;
}

void Engine::gather_contenders() {
  contests_.clear();
  gather_requests();
  gather_postings();
  for (GroupId group = 0; group < run_.members.size(); ++group) {
    if (messages_.is_watching(group)) {
      gather_arrivals(group);
    }
  }
  std::ranges::sort(contests_, {}, [](const Contest& contest) {
    const Contender& call = contest.contender;
    return std::tuple(!call.ready, call.since, call.rank, call.source, call.group, call.id);
  });
}

void Engine::gather_requests() {
  for (const auto& [rank, request] : store_.requests()) {
    const StoreCall& call = request->call;
    Contest contest;
    contest.contender = {.id = Mix().add(as_bits(rank)).add(request->number).value(),
                         .rank = rank,
                         .ready = store_.is_servable(rank, call),
                         .since = request->since,
                         .access = access_of(call)};
    for (const std::string& key : call.keys) {
      contest.contender.objects.push_back(Mix().add(key).value());
    }
    contests_.push_back(std::move(contest));
  }
}

void Engine::gather_postings() {
  for (const Posting& posting : postings_) {
    const Rank member = run_.members[posting.group].rank_of(posting.rank);
    contests_.push_back(
        {.contender = {.id = Mix()
                                 .add(posting.group)
                                 .add(as_bits(posting.rank))
                                 .add(as_bits(posting.seq))
                                 .add("posting")
                                 .value(),
                       .kind = Contender::Kind::posting,
                       .rank = posting.rank,
                       .ready = true,
                       .since = posting.since,
                       .objects = {connection(posting.group, posting.source, member, posting.tag)}}});
  }
}

void Engine::gather_arrivals(GroupId group) {
  for (const MessageMatcher::Arrival& arrival : messages_.of(group).arrivals()) {
    const Rank receiver = run_.members[group].ranks[static_cast<std::size_t>(arrival.receiver)];
    Contest contest{
        .contender = {.id = Mix().add(group).add(as_bits(arrival.source)).add(as_bits(arrival.seq)).value(),
                      .kind = Contender::Kind::arrival,
                      .rank = receiver,
                      .source = arrival.source,
                      .group = group,
                      .ready = arrival.ready,
                      .since = arrival.since,
                      .objects = {connection(group, arrival.source, arrival.receiver, arrival.tag)}},
        .receiver = arrival.receiver};
    const std::uint64_t mailbox = mailbox_of(group, arrival.receiver, arrival.tag);
    if (run_.options.decisions->is_open_to_anyone(mailbox)) {
      contest.contender.objects.push_back(mailbox);
    }
    contests_.push_back(std::move(contest));
  }
}

void Engine::let_go_ahead(std::size_t way) {
  const Contest& contest = contests_[way];
  const Contender& call = contest.contender;
  switch (call.kind) {
    case Contender::Kind::store:
      return store_.serve_one(call.rank);
    case Contender::Kind::posting:
      std::erase_if(postings_, [&call](const Posting& posting) { return posting.rank == call.rank; });
      return wake(call.rank);
    case Contender::Kind::arrival:
      return messages_.let_arrive(call.group, call.source, contest.receiver);
  }
}

// Holds back a receive that is about to be posted, if its place among arriving messages matters.
void Engine::await_turn(const Op& op, MessageId id) {
  if (op.kind == OpKind::recv && op.root < 0) {
    const Rank rank = run_.members[op.group].ranks[static_cast<std::size_t>(op.rank)];
    run_.options.decisions->received_from_anyone(rank, mailbox_of(op.group, op.rank, op.tag));
  }
  if (!messages_.of(op.group).races_with_arrivals(op)) {
    return;
  }
  const Rank rank = run_.scheduler->running();
  const std::int64_t seq = messages_.of(op.group).at(id).seq;
  postings_.push_back({rank, op.group, op.root, op.tag, seq, run_.now});
  run_.status_of(rank).wait_in(op.group, op.rank, seq, id);
  run_.scheduler->park();
  if (aborting_ || !interruptions_.empty()) [[unlikely]] {
    take_interruption();
  }
  die_if_due(rank);
}

}  // namespace rollcall::sim
