#include "sim/report/diagnosis.h"

namespace rollcall {

bool is_alarm(const Diagnosis& diagnosis) {
  return diagnosis.finding.kind != FindingKind::no_fault && !diagnosis.may_be_healthy;
}

}  // namespace rollcall
