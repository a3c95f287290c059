#include "sim/wording/on_backend.h"

#include <fmt/format.h>

#include "sim/c10d/backend_traits.h"
#include "sim/wording/wording_host.h"

namespace rollcall::check {
namespace {

// Every real backend pairs calls by number alone; DETAIL compares some of what they carry.
constexpr const char* detail_raises = "; TORCH_DISTRIBUTED_DEBUG=DETAIL would raise instead";

std::string filled(std::string_view text, const BackendTexts& texts, const std::string& op) {
  return fmt::format(fmt::runtime(text), fmt::arg("op", op), fmt::arg("hang", texts.hang));
}

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
  const BackendTexts& texts = traits_of(backend).texts;
  return filled(texts.hang, texts, op) + "; nothing says who is missing";
}

std::string crash_on_backend(std::string_view backend, const std::string& op) {
  const BackendTexts& texts = traits_of(backend).texts;
  return filled(texts.crash, texts, op);
}

std::string mismatch_on_backend(std::string_view backend, const std::string& kind) {
  const BackendTexts& texts = traits_of(backend).texts;
  if (kind == "group_args_mismatch") {
    return std::string(texts.group_args_mismatch);
  }
  if (kind == "op_mismatch") {
    return fmt::format("{}{}", texts.op_mismatch, detail_raises);
  }
  if (kind == "numel_mismatch" || kind == "split_mismatch") {
    return fmt::format("{}{}", texts.size_mismatch, detail_raises);
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
