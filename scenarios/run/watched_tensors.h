#pragma once

// The tensors that a scenario has expectations about, kept beyond their ranks.

#include <cstddef>
#include <string>
#include <vector>

#include "sim/report/report.h"
#include "sim/tensor/tensor.h"

namespace rollcall::scenario {

class RankFrame;

class WatchedTensors {
 public:
  // Keeps those of a rank whose program ends, or is ended.
  void keep(const RankFrame& frame);
  // What they hold, by rank. To be asked when the run is over: only then is nothing written any more.
  std::vector<TensorValue> values() const;

 private:
  struct Kept {
    Rank rank = 0;
    std::string name;
    Tensor tensor;
  };
  std::vector<Kept> kept_;
};

}  // namespace rollcall::scenario
