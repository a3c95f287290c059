#include "sim/c10d/backend.h"

namespace rollcall {

std::vector<Work> Backend::issue_batch(std::span<const Op> ops) {
  std::vector<Work> works;
  works.reserve(ops.size());
  for (const Op& op : ops) {
    works.push_back(issue(op));
  }
  return works;
}

}  // namespace rollcall
