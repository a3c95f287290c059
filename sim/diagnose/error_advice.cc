#include "sim/diagnose/error_advice.h"

#include <algorithm>
#include <array>

namespace rollcall::check {

namespace {

struct ErrorAdvice {
  std::string_view words;  // of the error's text
  std::string_view advice;
};

constexpr std::string_view a_worker_is_gone =
    "find out what ended the process that loads data: the kernel's log shows a kill for lack of memory, a "
    "bus error means that /dev/shm is full (docker run --shm-size), and num_workers=0 shows errors of the "
    "data set";

// The words are those of torch/csrc/distributed/c10d/reducer.cpp, c10's allocators, torch/utils/data/dataloader.py,
// traces/logs/python_errors.cc ("from a DataLoader worker"), CUDA's cudaGetErrorString, and the C library's strerror.
constexpr std::array<ErrorAdvice, 11> rows = {{
    {"CUDA out of memory",
     "give this rank fewer or shorter samples at a time, or free its GPU of what else is there; `rollcall "
     "predict` says how much memory a step needs"},
    {"can't allocate memory",
     "give this rank fewer or shorter samples at a time, or its machine fewer ranks and data workers: the "
     "machine has no memory left"},
    {"Expected to have finished reduction",
     "let every parameter take part in the loss of every rank in every step, or pass "
     "find_unused_parameters=True to DistributedDataParallel"},
    {"Expected to mark a variable ready only once",
     "do not use a parameter twice in one backward pass: pass use_reentrant=False to checkpoint(), or "
     "static_graph=True to DistributedDataParallel"},
    {"device-side assert",
     "look for a label or an index that is out of range on this rank; with CUDA_LAUNCH_BLOCKING=1 the error "
     "is raised where it happens"},
    {"illegal memory access",
     "run the rank with CUDA_LAUNCH_BLOCKING=1, so that the error is raised where it happens, or under "
     "compute-sanitizer"},
    {"ECC error", "take this GPU out of the job: its memory is damaged"},
    {"DataLoader worker (pid", a_worker_is_gone},
    {"from a DataLoader worker", a_worker_is_gone},
    {"No space left on device", "free space on the disk of this rank, or write elsewhere"},
    {"Too many open files",
     "raise the limit of open files (ulimit -n), or close files; workers that share tensors need "
     "torch.multiprocessing.set_sharing_strategy('file_system')"},
}};

}  // namespace

std::string advice_on_error(std::string_view text) {
  const auto row = std::ranges::find_if(
      rows, [text](const ErrorAdvice& known) { return text.find(known.words) != std::string_view::npos; });
  return row == rows.end() ? "fix that error first; the errors of the other ranks follow from it"
                           : std::string(row->advice);
}

}  // namespace rollcall::check
