#pragma once

// RunState: the state that the ranks of one run share, besides the scenario.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/decisions.h"
#include "sim/report/report.h"
#include "sim/tensor/tensor.h"

namespace rollcall::scenario {

class RankFrame;

// What each rank contributed to the reductions that made its named tensors, the latest for each. When a check finds a
// wrong sum, this tells which rank gave which value.
class Contributions {
 public:
  // A reduction, numbered as a rank counts its own calls on a group.
  struct Call {
    std::string group;
    std::int64_t number = 0;
    friend auto operator<=>(const Call&, const Call&) = default;
  };

  void note(Rank rank, const std::string& tensor, Call call, double value) {
    latest_[{rank, tensor}] = {std::move(call), value};
  }

  // What every rank, as far as known, gave to the reduction that made this tensor of `rank`, by rank. Each reduction is
  // reported once, to the first caller: if a sum is wrong on a thousand ranks, it is not needed a thousand times.
  std::vector<std::pair<Rank, double>> to(Rank rank, const std::string& tensor);

 private:
  struct Entry {
    Call call;
    double value = 0;
  };
  std::map<std::pair<Rank, std::string>, Entry> latest_;
  std::set<Call> told_;
};

// The tensors that a scenario has expectations about, which are kept longer than their ranks.
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

struct RunState {
  sim::Decisions* decisions = nullptr;  // borrowed; null: the usual way is taken everywhere
  Contributions contributions{};
  std::uint64_t seed = 0;  // for what statements leave to chance
  WatchedTensors watched{};
};

}  // namespace rollcall::scenario
