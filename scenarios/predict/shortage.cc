#include "scenarios/predict/shortage.h"

#include <fmt/core.h>

#include "sim/report/finding_kinds.h"
#include "viz/rows/phrases.h"

namespace rollcall::predict {

std::string_view shortage_verdict() { return verdicts_of(FindingKind::gpu_memory); }

std::string shortage_line(std::string_view who, std::int64_t needed, const cost::Gpu& gpu) {
  return fmt::format("error[{}]: {} needs {}, and {} has {}: {} are missing\n", shortage_verdict(), who,
                     viz::bytes_phrase(needed), gpu.name, viz::bytes_phrase(gpu.memory_bytes),
                     viz::bytes_phrase(needed - gpu.memory_bytes));
}

}  // namespace rollcall::predict
