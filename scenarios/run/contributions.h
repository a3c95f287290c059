#pragma once

// Contributions: what each rank contributed to the reductions that made its named tensors, the latest for each. When a
// check finds a wrong sum, this tells which rank gave which value.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall::scenario {

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

}  // namespace rollcall::scenario
