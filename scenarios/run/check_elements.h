#pragma once

// The statement `check`: all elements of a tensor must have one value.

#include "scenarios/program/program.h"
#include "scenarios/run/rank_frame.h"
#include "sim/base/error.h"
#include "sim/c10d/observer.h"

namespace rollcall::scenario {

// A failed check: for the program, an exception like any other; for the verdict, a wrong result.
class CheckFailure : public Error {
 public:
  explicit CheckFailure(Observation observation);

  const Observation& observation() const { return observation_; }

 private:
  Observation observation_;
};

// Throws CheckFailure unless all elements equal the check's value, and NotImplementedError for a meta tensor.
void check_elements(RankFrame& frame, const Tensor& tensor, const action::Check& check, Site site);

}  // namespace rollcall::scenario
