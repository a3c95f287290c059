// Differences that one real run cannot decide do not count against the simulator, and nothing else is excused.

#include <algorithm>

#include "scenarios/compare/claims.h"
#include "scenarios/compare/facts.h"
#include "tests/catch.h"

namespace rollcall::compare::excuses_test {
namespace {

Facts facts(std::string verdict, std::vector<RankFact> ranks) {
  return {.scenario = "s",
          .backend = "gloo",
          .verdict = std::move(verdict),
          .kind = {},
          .culprits = "none",
          .place = {},
          .ranks = std::move(ranks)};
}

RankFact rank(std::string state, std::vector<CallFact> calls, std::string error = {}) {
  return {std::move(state), std::move(error), {}, std::move(calls)};
}

CallFact call(std::string outcome, std::uint64_t digest = 0) {
  return {"recv(numel=1)", std::move(outcome), digest};
}

// Returns "" if they agree, otherwise why the claim could not be judged, or "differs".
std::string judged(const std::string& about, const Facts& simulated, const Facts& real) {
  for (const Claim& claim : compare(simulated, real, "gloo")) {
    if (claim.about == about) {
      return claim.judgement == Claim::Judgement::differs ? "differs" : claim.because;
    }
  }
  return "no such claim";
}

}  // namespace

TEST_CASE("of an error text everything is compared but ports, places, times and build folders", "[compare]") {
  CHECK(normalized_error("[../gloo/transport/tcp/pair.cc:598] Read error [127.0.0.1]:34567: Broken pipe") ==
        "[gloo/transport/tcp/pair.cc] Connection closed by peer");
  CHECK(normalized_error("at /gloo/gloo/barrier.cc:7 and gloo/a.h:12") == "at gloo/barrier.cc and gloo/a.h");
  CHECK(normalized_error("gloo/pair.cc and gloo/a.py:3") == "gloo/pair.cc and gloo/a.py:3");
  CHECK(normalized_error("Write error: Connection reset by peer") == "Connection closed by peer");
  CHECK(normalized_error("Timed out waiting 2000ms for 5ms3") == "Timed out waiting ...ms for 5ms3");
  CHECK(normalized_error("Original exception: \nanything\nat all") == "Original exception: \n...");
}

TEST_CASE("a race that did not show says nothing about the prediction of one", "[compare]") {
  const Facts ok = facts("ok", {rank("finished", {})});
  CHECK_THAT(judged("verdict", facts("race", {rank("finished", {})}), ok),
             Contains("a race shows only in some runs"));
  CHECK(judged("verdict", facts("deadlock", {rank("finished", {})}), ok) == "differs");
  CHECK(judged("verdict", ok, facts("race", {rank("finished", {})})) == "differs");
}

TEST_CASE("what NCCL does with calls that do not fit is chance, and what it says of them is not",
          "[compare]") {
  const auto on_gpus = [](std::string verdict, const char* state) {
    Facts result = facts(std::move(verdict), {rank(state, {})});
    result.backend = "nccl";
    return result;
  };
  CHECK_THAT(judged("ranks", on_gpus("mismatch", "waiting in a"), on_gpus("mismatch", "finished")),
             Contains("NCCL does not compare calls"));
  CHECK(judged("verdict", on_gpus("mismatch", "waiting in a"), on_gpus("ok", "finished")) == "differs");
  CHECK(judged("ranks", on_gpus("deadlock", "waiting in a"), on_gpus("deadlock", "finished")) == "differs");
}

TEST_CASE("ranks that share a GPU prove nothing about ranks on one host", "[compare]") {
  Facts simulated = facts("device_mismatch", {rank("raised", {})});
  simulated.kind = FindingKind::duplicate_gpu;
  Facts real = facts("ok", {rank("finished", {})});
  CHECK(judged("verdict", simulated, real) == "differs");
  real.no_times = shared_gpu;
  CHECK_THAT(judged("verdict", simulated, real), Contains("pretend to be on hosts of their own"));
  simulated.kind = FindingKind::stray_device;
  CHECK(judged("verdict", simulated, real) == "differs");
}

TEST_CASE("sends that fit NCCL's buffers are over before their receives", "[compare]") {
  Facts simulated = facts("deadlock", {rank("waiting in send #0", {})});
  simulated.kind = FindingKind::send_send;
  Facts real = facts("ok", {rank("finished", {})});
  CHECK(judged("verdict", simulated, real) == "differs");
  simulated.backend = real.backend = "nccl";
  CHECK_THAT(judged("verdict", simulated, real), Contains("fit NCCL's buffers"));
}

TEST_CASE("what real ranks cannot do is not a difference", "[compare]") {
  const std::string lack = "NotImplementedError: the Gloo that rollcall was built with has no bfloat16";
  const Facts ok = facts("ok", {rank("finished", {})});
  const Facts refused = facts("rank_failed", {rank("raised", {}, lack)});
  CHECK(judged("verdict", ok, refused) ==
        "real ranks cannot do this: the Gloo that rollcall was built with has no bfloat16");
  CHECK(std::ranges::any_of(compare(ok, refused, "gloo"), &Claim::is_lack));
  // Where torch raises this error, both do.
  CHECK_FALSE(std::ranges::any_of(compare(refused, refused, "gloo"), &Claim::is_lack));
  CHECK(judged("verdict", ok, facts("rank_failed", {rank("raised", {}, "ValueError: x")})) == "differs");
}

TEST_CASE("a receive from anyone that took another rank's message excuses what follows", "[compare]") {
  const Facts two = facts("ok", {rank("finished", {call("completed, from 2", 5), call("completed", 1)})});
  const Facts one = facts("ok", {rank("finished", {call("completed, from 1", 6), call("completed", 2)})});
  CHECK_THAT(judged("calls", two, one), Contains("the message that arrives first"));
  CHECK_THAT(judged("results", two, one), Contains("the message that arrives first"));
  const Facts other = facts("ok", {rank("finished", {call("completed, from 2", 5), call("completed", 2)})});
  CHECK(judged("results", two, other) == "differs");
}

TEST_CASE("a rank that would abort may hear of another's end first", "[compare]") {
  const Facts both = facts("mismatch", {rank("crashed", {}), rank("crashed", {})});
  const Facts one = facts("mismatch", {rank("crashed", {}), rank("raised", {})});
  const Facts none = facts("mismatch", {rank("raised", {}), rank("raised", {})});
  CHECK_THAT(judged("ranks", both, one), Contains("how far the others get"));
  CHECK(judged("ranks", one, both) == "differs");
  CHECK(judged("ranks", both, none) == "differs");
}

TEST_CASE("when several ranks time out either error of the transport will do", "[compare]") {
  const std::string waited =
      "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc] Timed out waiting ...ms for recv operation to "
      "complete";
  const auto both = [&](const std::string& second) {
    return facts("deadlock",
                 {rank("raised", {call(waited)}, waited), rank("raised", {call(second)}, second)});
  };
  CHECK_THAT(judged("errors", both(waited), both("RuntimeError: Application timeout caused pair closure")),
             Contains("is a race"));
  CHECK(judged("errors", both(waited), both("ValueError: no")) == "differs");
}

TEST_CASE("real ranks stopped by a limit are somewhere else in their loop", "[compare]") {
  const Facts few = facts("limit_reached", {rank("running", {call("completed")})});
  const Facts many = facts("limit_reached", {rank("running", {call("completed"), call("completed")})});
  CHECK_THAT(judged("calls", few, many), Contains("counts its own steps"));
  CHECK(judged("verdict", few, facts("ok", {rank("finished", {call("completed")})})) == "differs");
}

TEST_CASE("real ranks that the deadline met at work are not judged, and their verdict is", "[compare]") {
  const Facts met = facts("mismatch", {rank("waiting in all_reduce #0 on world", {call("pending")})});
  const Facts late = facts("mismatch", {rank("running", {})});
  CHECK_THAT(judged("ranks", met, late), Contains("use a longer one"));
  CHECK_THAT(judged("calls", met, late), Contains("use a longer one"));
  CHECK(judged("ranks", met, facts("mismatch", {rank("finished", {})})) == "differs");
  CHECK(judged("verdict", met, facts("ok", {rank("running", {})})) == "differs");
}

}  // namespace rollcall::compare::excuses_test
