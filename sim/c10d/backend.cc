#include "sim/c10d/backend.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rollcall {

void Backend::refuse_host_call(std::string_view what) {
  throw NotImplementedError(fmt::format("this backend does not support {}", what));
}

}  // namespace rollcall
