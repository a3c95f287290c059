#pragma once

// The vocabulary of reports: what every verdict and every kind means, where it usually comes from and
// what to do about it. `rollcall explain` prints it, with the examples of kind_examples.h.

#include <span>
#include <string>
#include <string_view>

namespace rollcall::viz {

struct Explanation {
  std::string_view word;
  std::string_view verdicts;  // for a kind: the verdicts it occurs with, "deadlock, mismatch"; else empty
  std::string_view title;     // a few words
  std::string_view meaning;   // the other three are short paragraphs
  std::string_view cause;
  std::string_view advice;
};

// Verdicts first, each followed by its kinds.
std::span<const Explanation> explanations();

// Null when there is no such word.
const Explanation* find_explanation(std::string_view word);

// The paragraphs of one word, or a line for each word. Complete lines.
std::string explanation_text(const Explanation& explanation, bool color);
std::string explanations_overview(bool color);

}  // namespace rollcall::viz
