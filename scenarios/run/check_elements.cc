// The interpreter, the part about `check`.

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "scenarios/run/tensor_text.h"

namespace rollcall::scenario {
namespace {

[[noreturn]] void fail(RankFrame& frame, const Tensor& tensor, const Tensor& wanted, double surplus,
                       const action::Check& check, Site site) {
  Observation observation{.kind = Observation::Kind::check_failed};
  observation.tensor = frame.program().strings[check.name];
  observation.got = tensor_text(tensor);
  observation.want = tensor_text(wanted);
  observation.surplus = surplus;
  observation.contributions = frame.contributions_to(observation.tensor);
  observation.site = site;
  throw CheckFailure(observation);
}

}  // namespace

CheckFailure::CheckFailure(Observation observation)
    : Error("CheckFailed",
            fmt::format("{} is {}, expected {}", observation.tensor, observation.got, observation.want)),
      observation_(std::move(observation)) {}

void check_elements(RankFrame& frame, const Tensor& tensor, const action::Check& check, Site site) {
  if (tensor.is_meta()) {
    throw NotImplementedError("check: a meta tensor has no values");
  }
  const Storage& storage = *tensor.settle().storage();
  const Tensor wanted = Tensor::zeros({1}, storage.dtype);
  frame.set_elements(wanted, check.value);
  const std::int64_t count =
      storage.form == Storage::Form::uniform ? std::min<std::int64_t>(storage.numel, 1) : storage.numel;
  for (std::int64_t i = 0; i < count; ++i) {
    // Compared as numbers if the type has more than one bit pattern for a value: 0.0 equals -0.0.
    const bool equal = is_floating(storage.dtype) ? decode(storage.at(i), storage.dtype) == wanted.item()
                                                  : storage.at(i) == wanted.storage()->value;
    if (!equal) {
      fail(frame, tensor, wanted, decode(storage.at(i), storage.dtype) - wanted.item(), check, site);
    }
  }
}

}  // namespace rollcall::scenario
