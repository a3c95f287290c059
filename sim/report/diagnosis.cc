#include "sim/report/diagnosis.h"

#include <utility>

namespace rollcall {

Diagnosis diagnosis_of(FindingKind kind, Confidence confidence, RankSet culprits) {
  Diagnosis diagnosis;
  diagnosis.finding.kind = kind;
  diagnosis.confidence = confidence;
  diagnosis.finding.culprits = std::move(culprits);
  return diagnosis;
}

bool is_alarm(const Diagnosis& diagnosis) {
  return diagnosis.finding.kind != FindingKind::no_fault && !diagnosis.may_be_healthy;
}

}  // namespace rollcall
