#include "sim/diagnose/log_calls.h"

#include <fmt/core.h>

#include "sim/base/ascii.h"
#include "sim/diagnose/log_ranks.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

std::string stack_line(const LogFact& stack, const RankSet& ranks) {
  return fmt::format("{}: {} in {}{}", stack.place(), with_verb(ranks, "is", "are"),
                     stack.op.empty() ? stack.text : stack.op, stack.site.empty() ? "" : " at " + stack.site);
}

std::string call_text(const LogFact& fact) {
  std::string text = fact.op;
  if (!fact.shape.empty()) {
    text += fmt::format(" of {}{}{}", fact.shape, fact.dtype.empty() ? "" : " ", fact.dtype);
  }
  return fact.seq >= 0 ? fmt::format("{} #{}", text, fact.seq) : text;
}

void set_call(const LogFact& fact, const RankSet& missing, Diagnosis& diagnosis) {
  Place place;
  place.call.op = lower(fact.op);
  place.call.group = fact.group;
  place.call.seq = fact.seq;
  place.call.site = fact.site;
  place.missing = missing;
  diagnosis.group_name = fact.group;
  diagnosis.finding.at = std::move(place);
}

std::string look_at(const RankSet& missing) {
  const char* whose = is_plural(missing) ? "their" : "its";
  return fmt::format("check what {} did instead: {} log, or {} stack (py-spy dump)", ranks_phrase(missing),
                     whose, whose);
}

Diagnosis disagreement(const RankSet& odd, Confidence confidence, const LogFact& theirs,
                       const LogFact& usual) {
  const FindingKind kind = theirs.op != usual.op         ? FindingKind::op_type_mismatch
                           : theirs.shape != usual.shape ? FindingKind::size_mismatch
                                                         : FindingKind::dtype_mismatch;
  Diagnosis diagnosis = diagnosis_of(kind, confidence, odd);
  set_call(usual, {}, diagnosis);
  diagnosis.finding.headline =
      confidence == Confidence::low
          ? fmt::format("{} make different calls", ranks_phrase(odd))
          : fmt::format("{} and the other ranks make different calls", ranks_phrase(odd));
  diagnosis.finding.cause = fmt::format("{} has {}, {} has {}", ranks_phrase(theirs.ranks), call_text(theirs),
                                        ranks_phrase(usual.ranks), call_text(usual));
  diagnosis.finding.advice = "compare what the ranks do there: branches on the rank, local sizes and dtypes";
  diagnosis.evidence.push_back(fmt::format("{}: ranks were stopped before calls that differ", usual.place()));
  return diagnosis;
}

}  // namespace rollcall::check
