#include "sim/engine/decisions.h"

#include <algorithm>

namespace rollcall::sim {

bool depend(const Contender& a, const Contender& b) {
  using Access = Contender::Access;
  if ((a.kind == Contender::Kind::store) != (b.kind == Contender::Kind::store)) {
    return false;  // the store and messages have nothing to do with each other
  }
  if (a.access == b.access && a.access != Access::write) {
    return false;
  }
  return a.objects.empty() || b.objects.empty() || std::ranges::any_of(a.objects, [&b](std::uint64_t object) {
           return std::ranges::find(b.objects, object) != b.objects.end();
         });
}

std::string_view to_string(Decision::Kind kind) {
  switch (kind) {
    case Decision::Kind::branch:
      return "choice";
    case Decision::Kind::thread:
      return "parallel";
    case Decision::Kind::delay:
      return "jitter";
    case Decision::Kind::order:
      return "order";
  }
  return "";
}

}  // namespace rollcall::sim
