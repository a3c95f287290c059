#pragma once

// Two runs of one program on one page: simulated and real, or before and after a fix. First what is the same and
// what is not, then both verdicts, where the ranks' calls diverge, and both timelines.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

struct ComparedRun {
  std::string name;                // "simulated", "before"
  const Report* report = nullptr;  // null for a second run of which only the facts are known
  std::string absence{};
};

// One thing that was compared.
struct ComparedFact {
  enum class Judgement : std::uint8_t { same, differs, open };

  std::string about;  // "verdict"
  std::string first;
  std::string second;
  Judgement judgement = Judgement::same;
  std::string because;  // differs: the first place; open: the reason
};

struct Comparison {
  ComparedRun first;
  ComparedRun second;
  std::vector<ComparedFact> facts;
};

// A write error shows in the stream's state.
void html_comparison(const Comparison& comparison, std::ostream& out);

}  // namespace rollcall::viz
