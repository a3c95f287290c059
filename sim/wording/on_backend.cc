#include "sim/wording/on_backend.h"

#include <fmt/format.h>

#include "sim/wording/wording_host.h"

namespace rollcall::check {
namespace {

// Every real backend pairs calls by number alone; DETAIL compares some of what they carry.
constexpr const char* detail_raises = "; TORCH_DISTRIBUTED_DEBUG=DETAIL would raise instead";

constexpr const char* nccl_hang =
    "every waiting rank hangs until its watchdog ends it (after 10 min by default): \"Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=...)\"";

}  // namespace

std::string hang_on_backend(std::string_view backend, const std::string& op) {
  if (op == to_string(OpKind::monitored_barrier)) {
    return "rank 0 of the group raises \"[Rank 0]: Rank ... failed to pass monitoredBarrier in ... ms\" when "
           "its "
           "timeout is over; the others only \"Please check rank 0 logs for faulty rank\"";
  }
  if (is_host_call(op)) {
    return host_hang_on_backend(backend, op);
  }
  if (backend == "gloo") {
    return fmt::format(
        "every waiting rank blocks in {} until the group's timeout (30 min by default) and raises \"Timed "
        "out waiting ... for recv operation to complete\", or \"Connection closed by peer\" once a missing "
        "rank's process is gone; nothing says who is missing",
        op);
  }
  return fmt::format("{}; nothing says who is missing", nccl_hang);
}

std::string crash_on_backend(std::string_view backend, const std::string& op) {
  if (backend == "gloo") {
    return fmt::format(
        "every waiting rank raises \"Connection closed by peer\" once the process is gone; while it lingers "
        "they block in {} until the group's timeout (30 min by default)",
        op);
  }
  return fmt::format("torchrun ends the other ranks when it sees the exit; without it, {}", nccl_hang);
}

std::string mismatch_on_backend(std::string_view backend, const std::string& kind) {
  const bool gloo = backend == "gloo";
  if (kind == "group_args_mismatch") {
    return gloo ? "ranks look for each other's addresses under one name: \"Wait timeout\" where one never "
                  "comes, "
                  "\"enforce fail at ./gloo/transport/tcp/address.cc\" where lists differ in length"
                : "nothing is compared: new_group returns everywhere, and the first collective on the group "
                  "hangs";
  }
  if (kind == "op_mismatch") {
    return fmt::format("{}{}",
                       gloo ? "different operations never exchange data: every rank involved hangs until the "
                              "group's timeout"
                            : "operations are not compared: every rank involved usually hangs until its "
                              "watchdog's timeout",
                       detail_raises);
  }
  if (kind == "numel_mismatch" || kind == "split_mismatch") {
    return fmt::format("{}{}",
                       gloo ? "sizes are not compared: a rank that receives more than it expects aborts "
                              "(gloo::EnforceNotMet), one that receives less hangs or ends with garbage"
                            : "sizes are not compared: usually a hang, with small tensors silent garbage",
                       detail_raises);
  }
  if (kind == "dtype_mismatch") {
    return fmt::format(
        "dtypes are not compared: with equal byte counts the call completes and the bits are misread{}",
        detail_raises);
  }
  if (kind == "reduce_op_mismatch") {
    return "reduce ops are not compared, not even under TORCH_DISTRIBUTED_DEBUG=DETAIL: the call completes, "
           "and parts of the tensor are reduced one way, parts the other";
  }
  return "roots are not compared, not even under TORCH_DISTRIBUTED_DEBUG=DETAIL: every rank that thinks it "
         "is "
         "the root waits for receivers that never come";
}

std::string hook_mismatch_on_backend() {
  return "nothing compares main_hook with the iteration: equal byte counts complete silently with wrong "
         "values, everything else hangs or aborts, often later than here";
}

}  // namespace rollcall::check
