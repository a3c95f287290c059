// The engine's part about calls whose order matters, where somebody decides it: requests to the store and messages
// for receives from anyone. They wait until nothing else can move, so that all who could be first are there, and
// go ahead one at a time. What else happens meanwhile has nothing to do with any of them, and loses nothing.

#include <algorithm>
#include <limits>
#include <tuple>

#include "sim/engine/engine.h"

namespace rollcall::sim {
namespace {

using check::MessageId;
using check::MessageMatcher;

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

}  // namespace

// True when a call went ahead, or the run is over.
bool Engine::order_calls() {
  if ((store_.requests().empty() && !messages_.anyone_receives()) || others_may_come()) {
    return false;
  }
  gather_contenders();
  const auto ready = static_cast<std::size_t>(
      std::ranges::count_if(contests_, [](const Contest& contest) { return contest.contender.ready; }));
  std::size_t way = 0;
  if (!verdict_ && !contests_.empty()) {
    std::vector<Contender> contenders;
    std::ranges::transform(contests_, std::back_inserter(contenders), &Contest::contender);
    way = run_.options.decisions->decide(
        {.kind = Decision::Kind::order, .rank = -1, .ways = ready, .contenders = contenders});
  }
  if (way == Decisions::cut) {
    stop(FindingKind::ops, 0);  // any limit: nobody sees the report of a run that a search gives up
    abort_waiting();
    return true;
  }
  if (ready > 0) {
    let_go_ahead(way);
  }
  return ready > 0;
}

// Something is still to happen by itself, and to wait for it makes nobody give up or die.
bool Engine::others_may_come() {
  if (run_.events.empty()) {
    return false;
  }
  const bool in_time =
      run_.events.next_time() <= std::min(deaths_.next(), deadlines_.first(false).value_or(never));
  if (!in_time) {
    run_.options.decisions->ordered_by_clock();
  }
  return in_time;
}

void Engine::gather_contenders() {
  contests_.clear();
  gather_requests();
  for (GroupId group = 0; group < run_.members.size(); ++group) {
    if (messages_.anyone_receives(group)) {
      gather_offers(group);
    }
  }
  std::ranges::sort(contests_, {}, [](const Contest& contest) {
    const Contender& call = contest.contender;
    return std::tuple(!call.ready, call.since, call.rank, call.source, call.id);
  });
}

void Engine::gather_requests() {
  for (const auto& [rank, request] : store_.requests()) {
    const StoreCall& call = *request->call;
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

void Engine::gather_offers(GroupId group) {
  const MessageMatcher& messages = messages_.of(group);
  for (const auto& [send, receive] : messages.offers_to_anyone()) {
    const check::Message& offer = messages.at(send);
    const Rank receiver = run_.members[group].ranks[static_cast<std::size_t>(offer.op.root)];
    const bool ready = receive != check::no_message;
    Contest contest{
        .contender = {.id = Mix().add(group).add(as_bits(offer.op.rank)).add(as_bits(offer.seq)).value(),
                      .rank = receiver,
                      .source = offer.op.rank,
                      .ready = ready,
                      .since = ready ? std::max(offer.posted, messages.at(receive).posted) : offer.posted},
        .group = group,
        .send = send,
        .receive = receive};
    contest.contender.objects.push_back(
        Mix().add(group).add(as_bits(offer.op.root)).add(as_bits(offer.op.tag)).value());
    contests_.push_back(std::move(contest));
  }
}

void Engine::let_go_ahead(std::size_t way) {
  const Contest& contest = contests_[way];
  if (contest.contender.source < 0) {
    store_.serve_one(contest.contender.rank);
  } else {
    messages_.accept(contest.group, {contest.send, contest.receive});
  }
}

}  // namespace rollcall::sim
