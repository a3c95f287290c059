#pragma once

// What to do about an error that a rank raised.

#include <string>
#include <string_view>

namespace rollcall::check {

// `text`: as Python prints it, "torch.OutOfMemoryError: CUDA out of memory. Tried ...". Knows errors of torch, CUDA and
// the operating system that end many jobs; for others, the advice is to fix them.
std::string advice_on_error(std::string_view text);
// On how a process ended, in a launcher's words: "exit code -9 (SIGKILL)".
std::string advice_on_end(std::string_view text);
// On a job that was ended from outside: "torchrun received SIGHUP", "Slurm: CANCELLED DUE TO TIME LIMIT".
std::string advice_on_stopped_job(std::string_view text);
// On a warning of NCCL.
std::string advice_on_nccl_failure(std::string_view text);

}  // namespace rollcall::check
