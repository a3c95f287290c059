#include "sim/wording/on_backend.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/c10d/backend_traits.h"
#include "sim/c10d/op_table.h"
#include "sim/torch/torch_traits.h"
#include "sim/wording/phrasing.h"
#include "sim/wording/wording_host.h"

namespace rollcall::check {
namespace {

// Every real backend pairs calls by number alone; DETAIL compares some of what they carry.
struct MismatchTexts {
  FindingKind kind;
  std::string_view BackendTexts::*own;  // what each backend shows; null: all of them show the same
  std::string_view of_any;
  bool detail_raises;
};

constexpr MismatchTexts mismatch_texts[] = {
    {FindingKind::op_mismatch, &BackendTexts::op_mismatch, "", true},
    {FindingKind::group_args_mismatch, &BackendTexts::group_args_mismatch, "", false},
    {FindingKind::numel_mismatch, &BackendTexts::size_mismatch, "", true},
    {FindingKind::split_mismatch, &BackendTexts::size_mismatch, "", true},
    {FindingKind::dtype_mismatch, nullptr,
     "dtypes are not compared: with equal byte counts the call completes and the bits are misread", true},
    {FindingKind::reduce_op_mismatch, nullptr,
     "reduce ops are not compared, not even under TORCH_DISTRIBUTED_DEBUG=DETAIL: the call completes, and "
     "parts of the tensor are reduced one way, parts the other",
     false},
    {FindingKind::root_mismatch, nullptr,
     "roots are not compared, not even under TORCH_DISTRIBUTED_DEBUG=DETAIL: every rank that thinks it is "
     "the root waits for receivers that never come",
     false},
};

std::string filled(std::string_view text, const BackendTexts& texts, const std::string& op) {
  return fmt::format(fmt::runtime(text), fmt::arg("op", op), fmt::arg("hang", texts.hang));
}

// True if the calls use one Gloo function: messages of different functions never meet.
bool meet_on_gloo(std::span<const OpVariant> calls) {
  const GlooFunction first = rollcall::row_of(calls.front().op.kind).gloo;
  return first != GlooFunction::none && std::ranges::all_of(calls, [&](const OpVariant& call) {
           return rollcall::row_of(call.op.kind).gloo == first;
         });
}

}  // namespace

bool wait_for_communicator(const Evidence& evidence, const Place& place) {
  const RankStatus& status = evidence.status_of(place.waiting.first());
  if (!status.waits() || status.channel != Channel::collectives || status.in_message()) {
    return false;
  }
  const GroupEvidence& group = evidence.groups[status.group];
  return status.seq == 0 && group.connects_late && group.calls(Channel::first_use) == nullptr;
}

std::string hang_on_backend(const Evidence& evidence, const Place& place) {
  const std::string& op = place.call.op;
  if (op == to_string(OpKind::monitored_barrier)) {
    return "rank 0 of the group raises \"[Rank 0]: Rank ... failed to pass monitoredBarrier in ... ms\" when "
           "its timeout is over; the others only \"Please check rank 0 logs for faulty rank\"";
  }
  if (is_host_call(op)) {
    return host_hang_on_backend(evidence, op);
  }
  if (wait_for_communicator(evidence, place)) {
    return communicator_hang_on_backend();
  }
  const BackendTexts& texts = traits_of(evidence.backend).texts;
  return filled(texts.hang, texts, op) + "; the log does not say which rank is missing";
}

std::string crash_on_backend(std::string_view backend, const std::string& op) {
  const BackendTexts& texts = traits_of(backend).texts;
  return filled(texts.crash, texts, op);
}

std::string mismatch_on_backend(const Evidence& evidence, FindingKind kind,
                                std::span<const OpVariant> calls) {
  const BackendTraits& backend = traits_of(evidence.backend);
  if (kind == FindingKind::group_args_mismatch && backend.exchanges_addresses) {
    return std::string(evidence.torch->gloo_group_args_mismatch);
  }
  const bool meet = kind == FindingKind::op_mismatch && backend.exchanges_addresses && meet_on_gloo(calls);
  const MismatchTexts& row = row_of(mismatch_texts, meet ? FindingKind::numel_mismatch : kind);
  std::string text(meet ? "Gloo has one algorithm for these operations, so their messages meet; " : "");
  text += row.own != nullptr ? backend.texts.*row.own : row.of_any;
  return row.detail_raises ? text + "; TORCH_DISTRIBUTED_DEBUG=DETAIL would raise instead" : text;
}

std::string hook_mismatch_on_backend() {
  return "nothing compares main_hook with the iteration: equal byte counts complete silently with wrong "
         "values, everything else hangs or aborts, often later than here";
}

}  // namespace rollcall::check
