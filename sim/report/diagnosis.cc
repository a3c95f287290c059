#include "sim/report/diagnosis.h"

namespace rollcall {

std::string_view to_string(Diagnosis::Confidence confidence) {
  switch (confidence) {
    case Diagnosis::Confidence::high:
      return "high";
    case Diagnosis::Confidence::medium:
      return "medium";
    case Diagnosis::Confidence::low:
      return "low";
  }
  return "low";
}

bool is_alarm(const Diagnosis& diagnosis) {
  return diagnosis.finding.kind != FindingKind::no_fault && !diagnosis.may_be_healthy;
}

}  // namespace rollcall
