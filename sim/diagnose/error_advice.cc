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

constexpr std::string_view a_link_failed =
    "check whether the peer that is named was still there; if it was, look at the network between these two: "
    "the state "
    "of both ports (ibstat, ethtool), their counters, and the routes and MTU of RoCE";

// The words are those of NCCL's transport/net_ib, torch/csrc/distributed/c10d/reducer.cpp, c10's allocators,
// torch/utils/data/dataloader.py, traces/logs/python_errors.cc ("from a DataLoader worker"), CUDA's cudaGetErrorString,
// and the C library's strerror.
constexpr std::array<ErrorAdvice, 14> rows = {{
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
    {"completion from peer", a_link_failed},
    {"Got async event", a_link_failed},
    {"network error", a_link_failed},
    {"ECC error", "take this GPU out of the job: its memory is damaged"},
    {"DataLoader worker (pid", a_worker_is_gone},
    {"from a DataLoader worker", a_worker_is_gone},
    {"No space left on device", "free space on the disk of this rank, or write elsewhere"},
    {"Too many open files",
     "raise the limit of open files (ulimit -n), or close files; workers that share tensors need "
     "torch.multiprocessing.set_sharing_strategy('file_system')"},
}};

constexpr std::string_view a_kill =
    "look for a kill for lack of memory in the kernel's log (dmesg), and for a limit of the container or of "
    "Slurm; the "
    "errors of the other ranks follow from it";
constexpr std::string_view a_bad_access =
    "look at the rank's core dump, or run it with python -X faulthandler; the errors of the other ranks "
    "follow from it";

// The words are those of torchrun, Python's signal module, the shell and Slurm.
constexpr std::array<ErrorAdvice, 9> rows_of_ends = {{
    {"SIGKILL", a_kill},
    {"exit code -9 ", a_kill},
    {"(Killed)", a_kill},
    {"Out Of Memory", a_kill},
    {"SIGSEGV", a_bad_access},
    {"exit code -11 ", a_bad_access},
    {"Segmentation fault", a_bad_access},
    {"SIGBUS",
     "see whether /dev/shm is full (docker run --shm-size): then a process that uses it gets a bus error"},
    {"SIGABRT", "read what the rank printed last: an assertion, or an exception of C++, ended it"},
}};

// The words are those of Python's signal module and of Slurm's slurmstepd.
constexpr std::array<ErrorAdvice, 5> rows_of_stops = {{
    {"SIGHUP",
     "the terminal, or the connection to it, was closed: start the job with sbatch, tmux or setsid, so that "
     "it does not end with them"},
    {"SIGINT", "somebody pressed Ctrl-C, or a script sent this signal"},
    {"TIME LIMIT",
     "ask for more time (--time), or save a checkpoint before it is over (--signal=B:USR1@300) and requeue"},
    {"PREEMPTION",
     "another job needed the machines: save checkpoints, and let Slurm requeue the job (--requeue)"},
    {"NODE FAILURE", "a machine failed: sinfo -R says why; leave it out (--exclude)"},
}};

template <typename Rows>
std::string advice_in(const Rows& rows, std::string_view text, std::string_view otherwise) {
  const auto row = std::ranges::find_if(
      rows, [text](const ErrorAdvice& known) { return text.find(known.words) != std::string_view::npos; });
  return std::string(row == rows.end() ? otherwise : row->advice);
}

}  // namespace

std::string advice_on_error(std::string_view text) {
  return advice_in(rows, text, "fix that error first; the errors of the other ranks follow from it");
}

std::string advice_on_end(std::string_view text) {
  return advice_in(
      rows_of_ends, text,
      "read what the rank printed last, and the kernel's log for a kill; the errors of the other ranks "
      "follow from it");
}

std::string advice_on_stopped_job(std::string_view text) {
  return advice_in(
      rows_of_stops, text,
      "ask what ended it: the scheduler (sacct -j JOB, kubectl describe pod), the kernel's log, or whoever "
      "ran scancel or kill");
}

std::string advice_on_nccl_failure(std::string_view text) {
  return advice_in(rows, text, "look at the process that the line names, and at the peer that it speaks of");
}

}  // namespace rollcall::check
