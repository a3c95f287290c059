// What receives from any source take when a decision says when messages arrive.

#include "sim/match/connections.h"

#include <memory>
#include <utility>
#include <vector>

#include "sim/match/message_matcher.h"
#include "tests/catch.h"

namespace rollcall::check::connections_test {
namespace {

using Pairs = std::vector<std::pair<MessageId, MessageId>>;

// Four ranks, of which rank 0 is watched; every rank knows only what it has posted itself.
struct Watched {
  Watched() { matcher.watch(0); }

  MessageId post(OpKind kind, Rank rank, Rank peer, std::int32_t tag = 0) {
    Op op;
    op.kind = kind;
    op.rank = rank;
    op.root = peer;
    op.tag = tag;
    const MessageId id = matcher.plan(op);
    ++now[static_cast<std::size_t>(rank)].seen[static_cast<std::size_t>(rank)];
    matcher.at(id).known = std::make_shared<const Moment>(now[static_cast<std::size_t>(rank)]);
    matcher.post(id, 0);
    return id;
  }
  MessageId send(Rank from, std::int32_t tag = 0) { return post(OpKind::send, from, 0, tag); }
  MessageId receive(Rank from, std::int32_t tag = 0) { return post(OpKind::recv, 0, from, tag); }
  MessageId receive_any(std::int32_t tag = 0) { return receive(-1, tag); }
  Pairs matched() { return std::exchange(matcher.matched(), {}); }
  // Returns the sources whose next message may arrive now.
  std::vector<Rank> ready() const {
    std::vector<Rank> sources;
    for (const MessageMatcher::Arrival& arrival : matcher.arrivals()) {
      if (arrival.ready) {
        sources.push_back(arrival.source);
      }
    }
    return sources;
  }

  MessageMatcher matcher{MessageMatcher::Discipline::tagged, 4};
  std::vector<Moment> now{
      {0, std::vector<std::uint32_t>(4)},
      {1, std::vector<std::uint32_t>(4)},
      {2, std::vector<std::uint32_t>(4)},
      {3, std::vector<std::uint32_t>(4)},
  };
};

}  // namespace

TEST_CASE("a receive that names its source gets what arrives after it was posted", "[messages]") {
  Watched ranks;
  const MessageId any = ranks.receive_any();
  const MessageId named = ranks.receive(2);
  const MessageId send = ranks.send(2);
  CHECK(ranks.matched() == Pairs{{send, named}});
  ranks.matcher.let_arrive(2, 0);
  const MessageId other = ranks.send(1);
  CHECK(ranks.matched().empty());
  ranks.matcher.let_arrive(1, 0);
  CHECK(ranks.matched() == Pairs{{other, any}});
}

TEST_CASE("a receive from anyone gets what arrives before another is posted, and that one waits",
          "[messages]") {
  Watched ranks;
  const MessageId any = ranks.receive_any();
  const MessageId send = ranks.send(2);
  ranks.matcher.let_arrive(2, 0);
  CHECK(ranks.matched() == Pairs{{send, any}});
  const MessageId named = ranks.receive(2);
  ranks.send(1);
  CHECK(ranks.matched().empty());
  CHECK(ranks.matcher.pending().front() == named);
}

TEST_CASE("what nobody asks for does not arrive, unless bytes are behind it", "[messages]") {
  Watched ranks;
  ranks.send(2, 5);
  CHECK(ranks.ready().empty());
  const MessageId later = ranks.send(2, 7);
  const MessageId named = ranks.receive(2, 7);
  CHECK(ranks.matched() == Pairs{{later, named}});
  ranks.matcher.at(named).source = 2;
  CHECK(ranks.matcher.hold_back(ranks.matcher.at(later).seq, named, Fate::completes));
  CHECK(ranks.ready() == std::vector<Rank>{2});
  CHECK(ranks.matcher.arrived().empty());
  ranks.matcher.let_arrive(2, 0);
  REQUIRE(ranks.matcher.arrived().size() == 1);
  CHECK(ranks.matcher.arrived().front().first == named);
}

TEST_CASE("bytes do not wait for what their sender posts afterwards", "[messages]") {
  Watched ranks;
  const MessageId named = ranks.receive(2, 7);
  const MessageId send = ranks.send(2, 7);
  ranks.send(2, 5);
  ranks.matcher.at(named).source = 2;
  CHECK(ranks.matcher.hold_back(ranks.matcher.at(send).seq, named, Fate::completes));
  REQUIRE(ranks.matcher.arrived().size() == 1);
}

TEST_CASE("bytes do wait for what their receiver knew to be sent", "[messages]") {
  Watched ranks;
  const MessageId send = ranks.send(2, 7);
  ranks.send(2, 5);
  ranks.now[0].join(ranks.now[2]);
  const MessageId named = ranks.receive(2, 7);
  ranks.matcher.at(named).source = 2;
  CHECK(ranks.matcher.hold_back(ranks.matcher.at(send).seq, named, Fate::completes));
  CHECK(ranks.matcher.arrived().empty());
}

TEST_CASE("of what has arrived the next receive from anyone takes the first, whoever sent it", "[messages]") {
  Watched ranks;
  ranks.receive_any(5);  // so that notices of both are awaited
  const MessageId late = ranks.send(1);
  const MessageId early = ranks.send(2);
  ranks.matcher.let_arrive(2, 0);
  ranks.matcher.let_arrive(1, 0);
  const MessageId first = ranks.receive_any();
  const MessageId second = ranks.receive_any();
  CHECK(ranks.matched() == Pairs{{early, first}, {late, second}});
}

TEST_CASE("a message that is taken back never arrives", "[messages]") {
  Watched ranks;
  ranks.receive_any();
  ranks.matcher.withdraw(ranks.send(2));
  CHECK(ranks.ready().empty());
}

}  // namespace rollcall::check::connections_test
