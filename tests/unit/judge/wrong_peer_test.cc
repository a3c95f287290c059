#include "sim/judge/complete_parts.h"
#include "tests/catch.h"

namespace rollcall::check::wrong_peer_test {
namespace {

struct Message {
  OpKind kind;
  Rank peer;
  std::int32_t tag = 0;
};
Message send(Rank to, std::int32_t tag = 0) { return {OpKind::send, to, tag}; }
Message recv(Rank from, std::int32_t tag = 0) { return {OpKind::recv, from, tag}; }

// Judges ranks with these programs, whose first stuck call is known.
Finding judged(const std::vector<std::vector<Message>>& programs, Rank waiting, const Message& stuck,
               const std::string& label = "") {
  std::vector<RankProgram> all;
  for (const std::vector<Message>& program : programs) {
    all.push_back({static_cast<Rank>(all.size()), {}});
    for (const Message& message : program) {
      ProgramCall call{.kind = message.kind, .group = "world"};
      call.peer = message.peer;
      call.tag = message.tag;
      all.back().calls.push_back(call);
    }
  }
  Deadlock deadlock;
  Call call;
  call.op = to_string(stuck.kind);
  call.group = "world";
  call.peer = stuck.peer;
  call.label = label;
  deadlock.finding.kind = FindingKind::unmatched_send;
  deadlock.finding.at = Place{call, {waiting}, {stuck.peer}};
  Verdict verdict = deadlock;
  CHECK(has_stuck_messages(verdict));
  find_wrong_peer(verdict, all);
  return *finding_of(verdict);
}

}  // namespace

TEST_CASE("who sends to a rank that does not ask, while another waits, has the wrong peer", "[wrong-peer]") {
  const Finding finding = judged({{send(1)}, {recv(0), send(3)}, {recv(1), send(3)}, {recv(2)}}, 1, send(3));
  CHECK(finding.kind == FindingKind::wrong_peer);
  CHECK(finding.culprits == RankSet{1});
  CHECK_FALSE(finding.tie);
}

TEST_CASE("who waits for a rank that does not send, while another does, has the wrong peer", "[wrong-peer]") {
  const Finding finding = judged({{send(1)}, {recv(2)}, {}}, 1, recv(2));
  CHECK(finding.kind == FindingKind::wrong_peer);
  CHECK(finding.culprits == RankSet{1});
}

TEST_CASE("messages of a pipeline's schedules are torch's: their stage is blamed, and no send of the user",
          "[wrong-peer]") {
  const std::string label = "pipeline.messages (train.py:18)";
  const std::vector<Message> first(4, send(1));
  std::vector<Message> second(8, recv(0));
  second.insert(second.end(), 8, send(2));
  const std::vector<Message> third(4, recv(1));
  const Finding finding = judged({first, second, third}, 1, recv(0), label);
  CHECK(finding.kind == FindingKind::unmatched_send);
  CHECK(finding.culprits == RankSet{1});
  CHECK_THAT(finding.advice, Contains("n_microbatches"));

  // Programs that end where their ranks got stuck do not say which stage is uneven.
  const Finding cut = judged({{recv(1)}, {send(2), recv(2)}, {recv(1), recv(1)}}, 0, recv(1), label);
  CHECK(cut.culprits.empty());

  // Of two stages, either one may be wrong.
  const Finding either = judged({first, {recv(0)}}, 0, send(1), label);
  CHECK(either.culprits.empty());
  CHECK_THAT(either.cause, Contains("run the same schedule"));
}

TEST_CASE("tags that differ are a tie between both ends", "[wrong-peer]") {
  const Finding finding = judged({{send(1, 7)}, {recv(0, 8)}}, 0, send(1, 7));
  CHECK(finding.culprits == RankSet{0, 1});
  CHECK(finding.tie);
}

TEST_CASE("a message without any counterpart has no wrong peer", "[wrong-peer]") {
  CHECK(judged({{send(1)}, {}}, 0, send(1)).kind == FindingKind::unmatched_send);
  CHECK(judged({{send(1), recv(1)}, {send(0), recv(0)}}, 0, send(1)).kind == FindingKind::unmatched_send);
}

TEST_CASE("a wrong peer elsewhere does not explain a message that is stuck for itself", "[wrong-peer]") {
  CHECK(judged({{send(1)}, {}, {send(4)}, {recv(2)}, {}}, 0, send(1)).kind == FindingKind::unmatched_send);
}

TEST_CASE("where a rank receives from anyone, peers cannot be told to be wrong", "[wrong-peer]") {
  CHECK(judged({{send(1)}, {recv(2), recv(-1)}, {}}, 1, recv(2)).kind == FindingKind::unmatched_send);
}

}  // namespace rollcall::check::wrong_peer_test
