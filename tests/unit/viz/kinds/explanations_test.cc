#include "viz/kinds/explanations.h"

#include <algorithm>
#include <set>

#include "sim/report/finding_kinds.h"
#include "sim/report/verdict.h"
#include "tests/catch.h"

namespace rollcall::viz::explanations_test {
namespace {

// True for an explanation of a kind of finding, of a verdict or of a recording.
bool is_kind(const Explanation& explanation) {
  return explanation.word != "ok" && parse_finding_kind(explanation.word).has_value();
}

}  // namespace

TEST_CASE("every verdict has its section") {
  const Verdict verdicts[] = {Completed{}, Deadlock{},     Mismatch{},   DeviceMismatch{}, WrongResult{},
                              Race{},      ResourceLeak{}, RankFailed{}, LimitReached{}};
  for (const Verdict& verdict : verdicts) {
    const Explanation* explanation = find_explanation(verdict_word(verdict));
    REQUIRE(explanation != nullptr);
    CHECK(explanation->verdicts.empty());
  }
}

TEST_CASE("every kind of finding has its section, and every section its word") {
  std::set<std::string_view> words;
  for (const Explanation& explanation : explanations()) {
    CAPTURE(explanation.word);
    CHECK(words.insert(explanation.word).second);
  }
  for (const FindingRow& row : finding_rows()) {
    CAPTURE(row.word);
    REQUIRE(find_explanation(row.word) != nullptr);
    CHECK((row.kind == FindingKind::ok || find_explanation(row.word)->verdicts == row.verdicts));
  }
}

TEST_CASE("explanations are complete") {
  for (const Explanation& explanation : explanations()) {
    CAPTURE(explanation.word);
    CHECK_FALSE(explanation.title.empty());
    CHECK(explanation.meaning.back() == '.');
    CHECK(explanation.cause.back() == '.');
    CHECK(explanation.advice.back() == '.');
    CHECK(explanation.example.empty() != is_kind(explanation));
    if (is_kind(explanation)) {
      CHECK(explanation.on_gloo.back() == '.');
      CHECK(explanation.on_nccl.back() == '.');
    }
  }
}

TEST_CASE("a kind belongs to verdicts that exist") {
  for (const Explanation& explanation : explanations()) {
    std::string_view rest = explanation.verdicts;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(','));
      CAPTURE(explanation.word, word);
      REQUIRE(find_explanation(word) != nullptr);
      CHECK(find_explanation(word)->verdicts.empty());
      rest.remove_prefix(std::min(rest.size(), word.size() + 2));
    }
  }
}

TEST_CASE("an explanation is a page, the overview a line for each word") {
  const std::string page = explanation_text(*find_explanation("order_crossing"), false);
  CHECK_THAT(page,
             StartsWith(
                 "order_crossing: ranks make the same calls in different orders\n   |\n   |  Ranks wait"));
  CHECK_THAT(page, Contains("   = verdict: deadlock\n"));
  CHECK_THAT(page, Contains("   = example: "));
  CHECK_THAT(page, Contains("   = help: "));
  const std::string overview = explanations_overview(false);
  CHECK(static_cast<std::size_t>(std::count(overview.begin(), overview.end(), '\n')) ==
        explanations().size());
  CHECK_THAT(overview, Contains("\n  missing_participant   a rank never"));
}

TEST_CASE("an older word is explained by the newer one") {
  REQUIRE(find_explanation("store_circle") != nullptr);
  CHECK(find_explanation("store_circle")->word == "store_cycle");
}

TEST_CASE("an unknown word has no explanation") { CHECK(find_explanation("dedlock") == nullptr); }

}  // namespace rollcall::viz::explanations_test
