#pragma once

// The tensors that a scenario has expectations about, which are kept longer than their ranks.

#include <cstddef>
#include <string>
#include <vector>

#include "sim/report/report.h"
#include "sim/tensor/tensor.h"

namespace rollcall::scenario {

class RankFrame;

class WatchedTensors {
 public:
  // Keeps those of a rank whose program has ended, or was ended.
  void keep(const RankFrame& frame);
  // Their contents, by rank. Call it after the run: only then is nothing written any more.
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
