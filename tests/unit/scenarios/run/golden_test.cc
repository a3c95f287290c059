#include "scenarios/run/golden.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace rollcall::scenario::golden_test {
namespace {

using Sentences = std::vector<std::string>;

const std::vector<RankCalls> before{{RankSet{0}, {"barrier", "send to rank 1", "barrier"}},
                                    {RankSet::range(1, 3), {"barrier", "recv from rank 0", "barrier"}}};

}  // namespace

TEST_CASE("a golden file is read as it was written", "[scenarios]") {
  CHECK(parse_golden(golden_text(before)) == before);
  CHECK(golden_text({}) == "# rollcall golden 1: the calls of every rank, in order\n");
}

TEST_CASE("a golden file that is none is refused with its line", "[scenarios]") {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      parse_golden(text);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  };
  const std::string head = golden_text({});
  CHECK_THAT(refusal("{}\n"), StartsWith("line 1: expected \"# rollcall golden 1"));
  CHECK(refusal(head + "ranks 0-\n") == "line 2: expected ranks such as 0-3,8");
  CHECK(refusal(head + "ranks x\n") == "line 2: expected ranks such as 0-3,8");
  CHECK(refusal(head + "  barrier\n") == "line 2: expected \"ranks ...\" or an indented call");
}

TEST_CASE("a change to calls is told of the ranks that changed alike", "[scenarios]") {
  CHECK(differences(before, before).empty());
  std::vector<RankCalls> after = before;
  after[1].calls = {"barrier", "barrier"};
  CHECK(differences(before, after) ==
        Sentences{"ranks 1-3 no longer call recv from rank 0, after call 1 (barrier)"});
  after[0].calls = {"all_reduce", "barrier", "send to rank 1", "barrier"};
  CHECK(differences(before, after).front() == "rank 0 now also calls all_reduce, at the beginning");
  after[0].calls = {"barrier", "send to rank 2", "barrier"};
  CHECK(differences(before, after).front() ==
        "rank 0 now calls send to rank 2, instead of send to rank 1, after call 1 (barrier)");
  after[0].calls = {};
  CHECK(differences(before, after).front() ==
        "rank 0 no longer calls 3 calls: barrier; send to rank 1; barrier, at the beginning");
}

TEST_CASE("a world of another size is one difference", "[scenarios]") {
  CHECK(differences(before, {{RankSet{0, 1}, {"barrier"}}}) ==
        Sentences{"the golden file has 4 ranks, but the run has 2"});
}

}  // namespace rollcall::scenario::golden_test
