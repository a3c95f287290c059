#include "sim/match/message_matcher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace rollcall::check::message_matcher_test {
namespace {

using Discipline = MessageMatcher::Discipline;
using Phase = Message::Phase;
using Pairs = std::vector<std::pair<MessageId, MessageId>>;

Op message(OpKind kind, Rank rank, Rank peer, std::int32_t tag) {
  Op op;
  op.kind = kind;
  op.rank = rank;
  op.root = peer;
  op.tag = tag;
  return op;
}

Op send_op(Rank from, Rank to, std::int32_t tag = 0) { return message(OpKind::send, from, to, tag); }
Op recv_op(Rank at, Rank from, std::int32_t tag = 0) { return message(OpKind::recv, at, from, tag); }
Op recv_any(Rank at, std::int32_t tag = 0) { return recv_op(at, -1, tag); }

MessageId post(MessageMatcher& matcher, const Op& op, Time now = 0) {
  const MessageId id = matcher.plan(op);
  matcher.post(id, now);
  return id;
}

// The pairs matched since the last call.
Pairs take(MessageMatcher& matcher) { return std::exchange(matcher.matched(), {}); }

}  // namespace

TEST_CASE("a send waits for its receive, and a receive for its send", "[messages]") {
  for (const Discipline discipline : {Discipline::tagged, Discipline::ordered}) {
    MessageMatcher matcher(discipline, 2);
    const MessageId send = post(matcher, send_op(0, 1));
    CHECK(matcher.at(send).phase == Phase::pending);
    const MessageId receive = post(matcher, recv_op(1, 0));
    CHECK(matcher.at(send).phase == Phase::matched);
    CHECK(matcher.at(send).partner == receive);
    CHECK(matcher.at(receive).partner == send);
    const MessageId early = post(matcher, recv_op(0, 1));
    const MessageId late = post(matcher, send_op(1, 0));
    CHECK(take(matcher) == Pairs{{send, receive}, {late, early}});
  }
}

TEST_CASE("a send never meets a send, nor a receive a receive", "[messages]") {
  for (const Discipline discipline : {Discipline::tagged, Discipline::ordered}) {
    MessageMatcher matcher(discipline, 2);
    post(matcher, send_op(0, 1));
    post(matcher, send_op(1, 0));
    CHECK(take(matcher).empty());
    CHECK(matcher.pending().size() == 2);
    MessageMatcher other(discipline, 2);
    post(other, recv_op(0, 1));
    post(other, recv_op(1, 0));
    CHECK(take(other).empty());
  }
}

TEST_CASE("messages of other ranks do not come between", "[messages]") {
  for (const Discipline discipline : {Discipline::tagged, Discipline::ordered}) {
    MessageMatcher matcher(discipline, 3);
    post(matcher, send_op(0, 2));
    const MessageId send = post(matcher, send_op(0, 1));
    const MessageId receive = post(matcher, recv_op(1, 0));
    CHECK(take(matcher) == Pairs{{send, receive}});
  }
}

TEST_CASE("equal tags match first in, first out", "[messages]") {
  for (const Discipline discipline : {Discipline::tagged, Discipline::ordered}) {
    MessageMatcher matcher(discipline, 2);
    const MessageId first = post(matcher, send_op(0, 1, 5));
    const MessageId second = post(matcher, send_op(0, 1, 5));
    const MessageId receives_first = post(matcher, recv_op(1, 0, 5));
    const MessageId receives_second = post(matcher, recv_op(1, 0, 5));
    CHECK(take(matcher) == Pairs{{first, receives_first}, {second, receives_second}});
  }
}

TEST_CASE("tagged: a receive takes its tag, whatever was sent before", "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 2);
  const MessageId one = post(matcher, send_op(0, 1, 1));
  const MessageId two = post(matcher, send_op(0, 1, 2));
  const MessageId receives_two = post(matcher, recv_op(1, 0, 2));
  CHECK(take(matcher) == Pairs{{two, receives_two}});
  post(matcher, recv_op(1, 0, 3));
  CHECK(take(matcher).empty());
  const MessageId receives_one = post(matcher, recv_op(1, 0, 1));
  CHECK(take(matcher) == Pairs{{one, receives_one}});
}

TEST_CASE("tagged: a rank's sends do not hold up its receives", "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 2);
  post(matcher, send_op(0, 1));
  const MessageId receive = post(matcher, recv_op(0, 1));
  const MessageId send = post(matcher, send_op(1, 0));
  CHECK(take(matcher) == Pairs{{send, receive}});
}

TEST_CASE("ordered: tags are not looked at", "[messages]") {
  MessageMatcher matcher(Discipline::ordered, 2);
  const MessageId send = post(matcher, send_op(0, 1, 1));
  const MessageId receive = post(matcher, recv_op(1, 0, 2));
  CHECK(take(matcher) == Pairs{{send, receive}});
}

TEST_CASE("ordered: what is first in line holds up the rest", "[messages]") {
  MessageMatcher matcher(Discipline::ordered, 2);
  const MessageId blocked = post(matcher, send_op(0, 1));
  const MessageId behind = post(matcher, recv_op(0, 1));
  const MessageId send = post(matcher, send_op(1, 0));
  CHECK(take(matcher).empty());  // both sides are in their sends
  CHECK(matcher.pending() == std::vector<MessageId>{blocked, behind, send});
}

TEST_CASE("ordered: once the head is through, the next is", "[messages]") {
  MessageMatcher matcher(Discipline::ordered, 2);
  const MessageId send = post(matcher, send_op(0, 1));
  const MessageId reply_wanted = post(matcher, recv_op(0, 1));
  const MessageId receive = post(matcher, recv_op(1, 0));
  const MessageId reply = post(matcher, send_op(1, 0));
  CHECK(take(matcher) == Pairs{{send, receive}, {reply, reply_wanted}});
}

TEST_CASE("ordered: the members of a batch are first in line together", "[messages]") {
  MessageMatcher matcher(Discipline::ordered, 2);
  std::vector<MessageId> sends;
  std::vector<MessageId> receives;
  for (const Rank rank : {0, 1}) {
    matcher.begin_batch();
    sends.push_back(post(matcher, send_op(rank, 1 - rank)));
    receives.push_back(post(matcher, recv_op(rank, 1 - rank)));
    matcher.end_batch();
  }
  Pairs pairs = take(matcher);
  std::sort(pairs.begin(), pairs.end());
  CHECK(pairs == Pairs{{sends[0], receives[1]}, {sends[1], receives[0]}});
}

TEST_CASE("ordered: a batch meets messages that are no batch", "[messages]") {
  MessageMatcher matcher(Discipline::ordered, 2);
  matcher.begin_batch();
  const MessageId send = post(matcher, send_op(0, 1));
  const MessageId receive = post(matcher, recv_op(0, 1));
  matcher.end_batch();
  const MessageId reply = post(matcher, send_op(1, 0));
  CHECK(take(matcher) == Pairs{{reply, receive}});
  const MessageId last = post(matcher, recv_op(1, 0));
  CHECK(take(matcher) == Pairs{{send, last}});
}

TEST_CASE("ordered: what follows a batch waits for all of it", "[messages]") {
  MessageMatcher matcher(Discipline::ordered, 2);
  matcher.begin_batch();
  const MessageId batched = post(matcher, send_op(0, 1));
  matcher.end_batch();
  const MessageId after = post(matcher, recv_op(0, 1));
  const MessageId send = post(matcher, send_op(1, 0));
  CHECK(take(matcher).empty());
  CHECK(matcher.pending() == std::vector<MessageId>{batched, after, send});
}

TEST_CASE("a receive from anyone takes the lowest rank that sends, once asked to", "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 4);
  const MessageId receive = post(matcher, recv_any(0));
  const MessageId from_three = post(matcher, send_op(3, 0));
  const MessageId from_two = post(matcher, send_op(2, 0));
  CHECK(take(matcher).empty());  // the order of arrival does not decide
  matcher.settle_arrivals();
  CHECK(take(matcher) == Pairs{{from_two, receive}});
  const MessageId next = post(matcher, recv_any(0));
  matcher.settle_arrivals();
  CHECK(take(matcher) == Pairs{{from_three, next}});
}

TEST_CASE("a receive from anyone waits for its tag, and for messages to its rank", "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 3);
  const MessageId receive = post(matcher, recv_any(0, 7));
  post(matcher, send_op(1, 0, 6));
  post(matcher, send_op(1, 2, 7));
  matcher.settle_arrivals();
  CHECK(take(matcher).empty());
  const MessageId send = post(matcher, send_op(2, 0, 7));
  matcher.settle_arrivals();
  CHECK(take(matcher) == Pairs{{send, receive}});
}

TEST_CASE("receives from anyone are served by rank and number, not in the order they were posted",
          "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 3);
  const MessageId at_one = post(matcher, recv_any(1));
  const MessageId first = post(matcher, recv_any(0));
  const MessageId second = post(matcher, recv_any(0));
  const MessageId send = post(matcher, send_op(2, 0));
  const MessageId other = post(matcher, send_op(2, 1));
  matcher.settle_arrivals();
  CHECK(take(matcher) == Pairs{{send, first}, {other, at_one}});
  CHECK(matcher.pending() == std::vector<MessageId>{second});
}

TEST_CASE("matched pairs can be had in an order that no schedule shows", "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 4);
  const MessageId high = post(matcher, send_op(2, 3));
  const MessageId receives_high = post(matcher, recv_op(3, 2));
  const MessageId low = post(matcher, send_op(0, 1));
  const MessageId low_again = post(matcher, send_op(0, 1));
  const MessageId receives_low = post(matcher, recv_op(1, 0));
  const MessageId receives_again = post(matcher, recv_op(1, 0));
  matcher.sort_matched();
  CHECK(take(matcher) == Pairs{{low, receives_low}, {low_again, receives_again}, {high, receives_high}});
}

TEST_CASE("messages are numbered per rank, sends and receives together", "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 2);
  CHECK(matcher.at(post(matcher, send_op(0, 1))).seq == 0);
  CHECK(matcher.at(post(matcher, recv_op(0, 1))).seq == 1);
  CHECK(matcher.at(post(matcher, recv_op(1, 0), 30)).seq == 0);
  CHECK(matcher.at(2).posted == 30);
}

TEST_CASE("a message that is taken back is met by nobody", "[messages]") {
  for (const Discipline discipline : {Discipline::tagged, Discipline::ordered}) {
    MessageMatcher matcher(discipline, 2);
    matcher.withdraw(post(matcher, send_op(0, 1)));
    const MessageId receive = post(matcher, recv_op(1, 0));
    CHECK(take(matcher).empty());
    CHECK(matcher.pending() == std::vector<MessageId>{receive});
    matcher.withdraw(receive);
    CHECK(matcher.pending().empty());
  }
}

TEST_CASE("a message is taken back from the middle of a queue", "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 2);
  const MessageId first = post(matcher, send_op(0, 1));
  const MessageId middle = post(matcher, send_op(0, 1));
  const MessageId last = post(matcher, send_op(0, 1));
  matcher.withdraw(middle);
  const MessageId one = post(matcher, recv_op(1, 0));
  CHECK(one == middle);  // its memory is reused
  const MessageId two = post(matcher, recv_op(1, 0));
  CHECK(take(matcher) == Pairs{{first, one}, {last, two}});
}

TEST_CASE("ordered: a head that is taken back lets the next one through", "[messages]") {
  MessageMatcher matcher(Discipline::ordered, 2);
  const MessageId head = post(matcher, send_op(0, 1));
  post(matcher, recv_op(0, 1));
  matcher.withdraw(head);
  post(matcher, send_op(1, 0));
  CHECK(take(matcher).size() == 1);
}

TEST_CASE("a receive from anyone can be taken back", "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 2);
  matcher.withdraw(post(matcher, recv_any(0)));
  post(matcher, send_op(1, 0));
  matcher.settle_arrivals();
  CHECK(take(matcher).empty());
}

TEST_CASE("ids serve again once forgotten, and old tickets do not fit them", "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 2);
  const MessageId send = post(matcher, send_op(0, 1));
  const MessageId receive = post(matcher, recv_op(1, 0));
  CHECK(matcher.is_current(send, 0, 0));
  CHECK_FALSE(matcher.is_current(send, 1, 0));
  matcher.forget(send);
  CHECK_FALSE(matcher.is_current(send, 0, 0));
  const MessageId again = post(matcher, send_op(0, 1));
  CHECK(again == send);
  CHECK_FALSE(matcher.is_current(again, 0, 0));
  CHECK(matcher.is_current(again, 0, 1));
  CHECK(matcher.is_current(receive, 1, 0));
  CHECK(matcher.at(again).phase == Phase::pending);
  CHECK(matcher.at(again).partner == no_message);
}

TEST_CASE("an asynchronous message keeps its tensor until it is forgotten", "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 2);
  Tensor tensor = Tensor::ones({1});
  Op op = send_op(0, 1);
  op.async_op = true;
  op.tensors.input = tensor.storage();
  const MessageId id = post(matcher, op);
  CHECK(tensor.storage()->references == 2);
  matcher.forget(id);
  CHECK(tensor.storage()->references == 1);
}

TEST_CASE("what is pending is listed by rank and number, with what is stuck", "[messages]") {
  MessageMatcher matcher(Discipline::tagged, 3);
  const MessageId of_two = post(matcher, send_op(2, 1));
  const MessageId of_zero = post(matcher, send_op(0, 1));
  const MessageId stuck = post(matcher, send_op(0, 2));
  const MessageId partner = post(matcher, recv_op(2, 0));
  CHECK(matcher.pending() == std::vector<MessageId>{of_zero, of_two});
  matcher.at(stuck).phase = Phase::stuck;
  matcher.at(partner).phase = Phase::done;
  CHECK(matcher.pending() == std::vector<MessageId>{of_zero, stuck, of_two});
}

}  // namespace rollcall::check::message_matcher_test
