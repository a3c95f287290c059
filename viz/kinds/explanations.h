#pragma once

// The vocabulary of reports: what every verdict and every kind means, what it looks like, its usual cause, and how to
// fix it. The text is in docs/findings.md, which is built into the program.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall::viz {

struct Explanation {
  std::string word;
  std::string_view
      verdicts{};       // for a kind found in runs: its verdicts, such as "deadlock, mismatch"; else empty
  std::string title;    // a few words
  std::string meaning;  // this, the cause, and the advice are short paragraphs
  std::string cause;
  std::string advice;
  // For kinds only:
  std::string example;  // the smallest program that has it, as lines; or the evidence in recordings
  std::string on_gloo;  // what the real backends do
  std::string on_nccl;
  std::string reports;  // "owner/repository#number, ..."; empty if no public report has a known cause
};

// Each verdict is followed by its kinds; those of recordings come last.
std::span<const Explanation> explanations();

// Finds an explanation by its word, or by the word that older reports use. Null if there is none.
const Explanation* find_explanation(std::string_view word);

// The paragraphs of one word, or one line per word. Complete lines.
std::string explanation_text(const Explanation& explanation, bool color);
std::string explanations_overview(bool color);

}  // namespace rollcall::viz
