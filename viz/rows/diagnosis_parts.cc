#include "viz/rows/diagnosis_parts.h"

#include <fmt/format.h>

#include "viz/rows/phrases.h"

namespace rollcall::viz {

std::string confidence_phrase(const Diagnosis& diagnosis) {
  if (diagnosis.finding.kind == FindingKind::no_fault) {
    return {};
  }
  std::string text(to_string(diagnosis.confidence));
  if (!diagnosis.alternatives.empty()) {
    text += fmt::format("; what was read would also fit {}",
                        fmt::join(words_of(diagnosis.alternatives), " and "));
  }
  return text;
}

std::string group_phrase(const Diagnosis& diagnosis) {
  if (!diagnosis.finding.at || diagnosis.group_ranks.empty()) {
    return {};
  }
  return fmt::format("{} (name {}), {}", diagnosis.finding.at->call.group, diagnosis.group_name,
                     ranks_phrase(diagnosis.group_ranks));
}

std::string records_phrase(const Diagnosis& diagnosis) {
  const auto readers = diagnosis.world_size - static_cast<std::int64_t>(diagnosis.without_dump.size());
  std::string text =
      fmt::format("{} of {}", count_phrase(diagnosis.records, "record"), count_phrase(readers, "rank"));
  if (!diagnosis.without_dump.empty()) {
    text += fmt::format("; no dump from {}", ranks_phrase(diagnosis.without_dump));
  }
  return text;
}

}  // namespace rollcall::viz
