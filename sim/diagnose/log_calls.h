#pragma once

// What the judges of logs say of the calls in them.

#include <algorithm>
#include <map>
#include <string>

#include "sim/diagnose/log_fact.h"
#include "sim/report/diagnosis.h"

namespace rollcall::check {

// "ALLREDUCE of [2] Float #7".
std::string call_text(const LogFact& fact);

// Where the ranks of a stack are: "stack.2.txt:5: rank 2 is in all_reduce at train.py:31".
std::string stack_line(const LogFact& stack, const RankSet& ranks);

// Makes it the call that the diagnosis is about.
void set_call(const LogFact& fact, const RankSet& missing, Diagnosis& diagnosis);

// Advice about ranks that did not make a call.
std::string look_at(const RankSet& missing);

// `theirs` and `usual`: the calls of one of the `odd` ranks and of one of the others.
Diagnosis disagreement(const RankSet& odd, Confidence confidence, const LogFact& theirs,
                       const LogFact& usual);

// Ranks whose calls differ.
struct Sides {
  RankSet odd;  // all but the largest side; on a tie all
  bool tie = false;
  Rank usual = -1;  // one of the largest side
  Rank other = -1;  // one of another side
};

// `calls`: the ranks that made each; two or more.
template <typename Call>
Sides sides_of(const std::map<Call, RankSet>& calls) {
  const auto usual = std::ranges::max_element(calls, {}, [](const auto& side) { return side.second.size(); });
  Sides sides;
  for (auto side = calls.begin(); side != calls.end(); ++side) {
    if (side != usual) {
      sides.tie = sides.tie || side->second.size() == usual->second.size();
      sides.other = sides.odd.empty() ? side->second.first() : sides.other;
      sides.odd.insert(side->second);
    }
  }
  sides.odd.insert(sides.tie ? usual->second : RankSet());
  sides.usual = usual->second.first();
  return sides;
}

}  // namespace rollcall::check
