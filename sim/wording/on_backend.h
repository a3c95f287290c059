#pragma once

// What the real job would show: the text a user sees in the log and searches for. Facts: PyTorch's
// ProcessGroupNCCL.cpp and ProcessGroupGloo.cpp for timeouts and checks, NCCL's collectives.cc for what
// is never compared, torch/distributed/elastic/agent for what torchrun does.

#include <span>
#include <string>
#include <string_view>

#include "sim/match/evidence.h"
#include "sim/report/finding_kinds.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// True if the ranks wait in their first call on a group, whose communicator is not there.
bool wait_for_communicator(const Evidence& evidence, const Place& place);
std::string hang_on_backend(const Evidence& evidence, const Place& place);
// The same where the missing rank's process is gone. `backend`: torch's name.
std::string crash_on_backend(std::string_view backend, const std::string& op);
// `calls`: those that do not fit together.
std::string mismatch_on_backend(const Evidence& evidence, FindingKind kind, std::span<const OpVariant> calls);
std::string hook_mismatch_on_backend();

}  // namespace rollcall::check
