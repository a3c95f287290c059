#include "viz/kinds/kinds.h"

#include <algorithm>
#include <set>

#include "sim/report/verdict.h"
#include "tests/catch.h"
#include "viz/kinds/kind_examples.h"

namespace rollcall::viz {

TEST_CASE("every verdict word is explained") {
  const Verdict verdicts[] = {Completed{}, Deadlock{},     Mismatch{},   DeviceMismatch{}, WrongResult{},
                              Race{},      ResourceLeak{}, RankFailed{}, LimitReached{}};
  for (const Verdict& verdict : verdicts) {
    const Explanation* explanation = find_explanation(verdict_word(verdict));
    REQUIRE(explanation != nullptr);
    CHECK(explanation->verdicts.empty());
  }
}

TEST_CASE("explanations are complete, and each word has one") {
  std::set<std::string_view> words;
  for (const Explanation& explanation : explanations()) {
    CHECK(words.insert(explanation.word).second);
    CHECK_FALSE(explanation.title.empty());
    CHECK(explanation.meaning.back() == '.');
    CHECK(explanation.cause.back() == '.');
    CHECK(explanation.advice.back() == '.');
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
  CHECK_THAT(
      page,
      StartsWith("order_crossing: ranks make the same calls in different orders\n   |\n   |  Ranks wait"));
  CHECK_THAT(page, Contains("   = verdict: deadlock\n"));
  CHECK_THAT(page, Contains("   = help: "));
  const std::string overview = explanations_overview(false);
  CHECK(static_cast<std::size_t>(std::count(overview.begin(), overview.end(), '\n')) ==
        explanations().size());
  CHECK_THAT(overview, Contains("\n  missing_participant   a rank never"));
}

TEST_CASE("every kind has an example, and what Gloo and NCCL make of it") {
  for (const Explanation& explanation : explanations()) {
    CAPTURE(explanation.word);
    const KindExample* example = find_example(explanation.word);
    const bool is_kind = !explanation.verdicts.empty() || explanation.title.ends_with("(diagnose)");
    CHECK((example != nullptr) == is_kind);
    if (example != nullptr) {
      CHECK_FALSE(example->example.empty());
      CHECK(example->on_gloo.back() == '.');
      CHECK(example->on_nccl.back() == '.');
      CHECK_THAT(explanation_text(explanation, false), Contains("   = example: "));
    }
  }
}

TEST_CASE("an unknown word has no explanation") { CHECK(find_explanation("dedlock") == nullptr); }

}  // namespace rollcall::viz
