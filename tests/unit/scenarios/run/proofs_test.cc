// What a run and a search may not call certain: programs whose outcome depends on something that is easily overlooked.
// Each was once called "ok", exhaustively, or blamed on the wrong rank. Real ranks (torch 1.13, Gloo) fail in the first
// three.

#include <algorithm>
#include <string>

#include "scenarios/format/scenario.h"
#include "scenarios/run/explore_scenario.h"
#include "scenarios/run/runner.h"
#include "tests/catch.h"

namespace rollcall::scenario::proofs_test {
namespace {

Scenario job(const std::string& backend, const std::string& programs) {
  const std::size_t ranks = static_cast<std::size_t>(std::ranges::count(programs, '@'));
  std::string text = R"({"version": 1, "world_size": )" + std::to_string(ranks) + R"(, "backend": ")" +
                     backend + R"(", "programs": {)";
  std::size_t rank = 0;
  for (const char c : programs) {
    text += c == '@' ? (rank == 0 ? "" : ", ") + ('"' + std::to_string(rank) + R"(": )") : std::string(1, c);
    rank += c == '@' ? 1 : 0;
  }
  return parse_scenario(text + "}}", "test.json");
}

std::string outcome(const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  const std::string kind(to_string(kind_of(report.verdict)));
  return finding == nullptr ? kind : kind + " " + to_string(finding->culprits);
}

}  // namespace

TEST_CASE("a handle dropped before the receiver has come is found by a search, too",
          "[scenarios][explore][fiber]") {
  const Scenario dropped = job("gloo", R"(
    @[{"isend": {"tensor": "b", "numel": 1, "dst": 2, "tag": 1}, "as": "w"},
      {"recv": {"tensor": "x", "numel": 1}}, {"drop": "w"}, {"compute": "5ms"}]
    @[{"send": {"tensor": "s", "numel": 1, "dst": 0}}]
    @[{"compute": "1ms"}, {"recv": {"tensor": "g", "numel": 1, "tag": 1, "src": 0}}])");
  CHECK(outcome(run(dropped)) == "drop_before_wait 0");
  CHECK(outcome(explore(dropped, {})) == "drop_before_wait 0");
}

TEST_CASE("a search does not call certain what its clock decided: a handle dropped in time",
          "[scenarios][explore][fiber]") {
  const Scenario in_time = job("gloo", R"(
    @[{"isend": {"tensor": "s", "numel": 1, "dst": 1}, "as": "w"}, {"compute": "2ms"}, {"drop": "w"}]
    @[{"compute": "1ms"}, {"recv": {"tensor": "y", "numel": 1, "src": 0}}])");
  CHECK(outcome(run(in_time)) == "ok");
  CHECK_FALSE(run(in_time).exhaustive);
  CHECK_FALSE(explore(in_time, {}).exhaustive);
}

TEST_CASE("a handle that nobody waited for goes with its process", "[scenarios][explore][fiber]") {
  const Scenario send = job("gloo", R"(
    @[{"isend": {"tensor": "s", "numel": 1, "dst": 1}, "as": "kept"}]
    @[{"compute": "5ms"}, {"recv": {"tensor": "y", "numel": 1, "src": 0}}])");
  CHECK(outcome(run(send)) == "drop_before_wait 0");
  const Scenario receive = job("gloo", R"(
    @[{"irecv": {"tensor": "s", "numel": 1, "src": 1}, "as": "kept"}]
    @[{"compute": "5ms"}, {"send": {"tensor": "y", "numel": 1, "dst": 0}}])");
  CHECK(outcome(run(receive)) == "drop_before_wait 0");
  const Scenario in_time = job("gloo", R"(
    @[{"isend": {"tensor": "s", "numel": 1, "dst": 1}, "as": "kept"}, {"barrier": {}}]
    @[{"recv": {"tensor": "y", "numel": 1, "src": 0}}, {"barrier": {}}])");
  CHECK(outcome(run(in_time)) == "ok");
}

TEST_CASE("a thread that reads what another one sets waits for its turn", "[scenarios][explore][fiber]") {
  const auto threads = [](const std::string& reader) {
    const std::string program =
        R"([{"fill": "t", "value": 5, "dtype": "int64"}, {"fill": "z", "value": 0, "dtype": "int64"},
      {"item": "z", "as": "v"}, {"parallel": [[{"item": "t", "as": "v"}], [)" +
        reader + "]]}]";
    return job("gloo", "@" + program + "@" + program);
  };
  const Scenario branch = threads(R"({"if": "v == 5", "do": [{"all_reduce": {"tensor": "q", "numel": 1}}]})");
  CHECK(kind_of(run(branch).verdict) == FindingKind::missing_participant);
  CHECK(kind_of(explore(branch, {}).verdict) == FindingKind::missing_participant);
  const Scenario loop = threads(R"({"repeat": "v", "do": [{"all_reduce": {"tensor": "q", "numel": 1}}]})");
  CHECK(kind_of(explore(loop, {}).verdict) == FindingKind::missing_participant);
}

TEST_CASE("a run is not a proof where its clock decided which thread goes on first", "[scenarios][fiber]") {
  const Scenario clocked = job("gloo", R"(
    @[{"parallel": [[{"recv": {"tensor": "x", "numel": 1, "src": 1}}, {"print": "a"}],
                    [{"recv": {"tensor": "y", "numel": 1, "src": 2}}, {"print": "b"}]]}]
    @[{"compute": "5ms"}, {"send": {"tensor": "s", "numel": 1, "dst": 0}}]
    @[{"compute": "1ms"}, {"send": {"tensor": "s", "numel": 1, "dst": 0}}])");
  CHECK(outcome(run(clocked)) == "ok");
  CHECK_FALSE(run(clocked).exhaustive);
}

TEST_CASE("messages and collectives of one NCCL group are not proven to pass each other",
          "[scenarios][explore][fiber]") {
  const std::string later = R"({"synchronize": true}])";
  const Scenario crossed = job("nccl", R"(
    @[{"all_reduce": {"tensor": "t", "numel": 1}},
      {"batch_isend_irecv": [{"isend": {"tensor": "a", "numel": 10000000, "dst": 1}}], "as": "x"},
      {"all_reduce": {"tensor": "t", "numel": 1}}, {"wait": "x"}, )" +
                                           later + R"(
    @[{"all_reduce": {"tensor": "t", "numel": 1}}, {"all_reduce": {"tensor": "t", "numel": 1}},
      {"batch_isend_irecv": [{"irecv": {"tensor": "a", "numel": 10000000, "src": 0}}], "as": "x"}, {"wait": "x"}, )" +
                                           later);
  CHECK_FALSE(run(crossed).exhaustive);
  CHECK_FALSE(explore(crossed, {}).exhaustive);
  const Scenario one_by_one = job("nccl", R"(
    @[{"all_reduce": {"tensor": "t", "numel": 1}},
      {"batch_isend_irecv": [{"isend": {"tensor": "a", "numel": 10000000, "dst": 1}}], "as": "x"}, {"wait": "x"},
      {"all_reduce": {"tensor": "t", "numel": 1}}, )" +
                                              later + R"(
    @[{"all_reduce": {"tensor": "t", "numel": 1}},
      {"batch_isend_irecv": [{"irecv": {"tensor": "a", "numel": 10000000, "src": 0}}], "as": "x"}, {"wait": "x"},
      {"all_reduce": {"tensor": "t", "numel": 1}}, )" +
                                              later);
  CHECK(run(one_by_one).exhaustive);
}

TEST_CASE("a rank that deleted a key is to blame for those that wait for it", "[scenarios][store][fiber]") {
  const Report report = run(job("gloo", R"(
    @[{"store_set": "k", "value": "1"}, {"barrier": {}}, {"barrier": {}}]
    @[{"barrier": {}}, {"store_delete": "k"}, {"barrier": {}}]
    @[{"barrier": {}}, {"barrier": {}}, {"store_get": "k"}])"));
  CHECK(outcome(report) == "store_never_served 1");
  CHECK(finding_of(report.verdict)->headline == "rank 1 deleted key k, which rank 2 waits for");
}

TEST_CASE("a rank that comes after another's wait has ended is late, not missing", "[scenarios][fiber]") {
  const Report report = run(job("gloo", R"(
    @[{"all_reduce": {"tensor": "t", "numel": 1, "async_op": true}, "as": "w"}, {"wait": "w", "timeout": "1s"}]
    @[{"compute": "5s"}, {"all_reduce": {"tensor": "t", "numel": 1}}])"));
  CHECK(outcome(report) == "watchdog_timeout 1");
}

// Texts of real stores: torch 1.13.0, 2.6.0 and 2.14.1, TCPStore.
TEST_CASE("a key that does not come in time raises what torch's store raises", "[scenarios][store][fiber]") {
  for (const auto& [torch, error] : {std::pair("1.13", "RuntimeError: Socket Timeout"),
                                     std::pair("2.6",
                                               "torch.distributed.DistStoreError: wait timeout after 1000ms, "
                                               "keys: /k"),
                                     std::pair("2.14",
                                               "torch.distributed.DistStoreError: wait timeout after 1000ms, "
                                               "keys: /k")}) {
    const Report report = run(parse_scenario(
        std::string(R"({"version": 1, "world_size": 2, "backend": "gloo", "torch": ")") + torch + R"(",
      "program": [{"store_get": "k", "timeout": "1s"}]})",
        "test.json"));
    CHECK(report.of(0).exception == error);
  }
}

}  // namespace rollcall::scenario::proofs_test
