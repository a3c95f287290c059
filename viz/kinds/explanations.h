#pragma once

// The vocabulary of reports: what every verdict and every kind means, what it looks like, where it usually comes from
// and what to do about it. docs/findings.md says it; the program carries that page.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall::viz {

struct Explanation {
  std::string word;
  std::string_view
      verdicts{};       // for a kind of runs: the verdicts it occurs with, "deadlock, mismatch"; else empty
  std::string title;    // a few words
  std::string meaning;  // this one, cause and advice are short paragraphs
  std::string cause;
  std::string advice;
  // Of kinds only:
  std::string example;  // the smallest program that has it, as lines; or what recordings show
  std::string on_gloo;  // what the real backends make of it
  std::string on_nccl;
  std::string reports;  // "owner/repository#number, ..."; empty: none with a known cause is public
};

// Each verdict is followed by its kinds; those of recordings come last.
std::span<const Explanation> explanations();

// By its word, or the one that older reports have. Null when there is no such word.
const Explanation* find_explanation(std::string_view word);

// The paragraphs of one word, or a line for each word. Complete lines.
std::string explanation_text(const Explanation& explanation, bool color);
std::string explanations_overview(bool color);

}  // namespace rollcall::viz
