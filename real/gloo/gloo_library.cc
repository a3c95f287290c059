#include "real/gloo/gloo_library.h"

#ifdef ROLLCALL_OPENS_GLOO

#include <cstddef>
#include <cstdlib>
#include <stdexcept>

#include <fmt/core.h>
#include <gloo/rendezvous/store.h>

#include "real/gloo/gloo_functions.h"
#include "real/process/shared_library.h"

// A class needs its base class's type information, which is data: no jump leads there. Compilers emit it with the
// destructor, which does nothing in Gloo, either (gloo/rendezvous/store.cc).
gloo::rendezvous::Store::~Store() = default;

namespace rollcall::real {
namespace {

std::string open_library() {
  // UCX would start a thread with a socket, to show its state in a file system. A user's own setting stays.
  ::setenv("UCX_VFS_ENABLE", "n", 0);
  try {
    const SharedLibrary library({ROLLCALL_OPENS_GLOO});
    for (std::size_t i = 0; i < gloo_functions.size(); ++i) {
      rollcall_gloo_addresses[i] = library.find(gloo_functions[i]).address;
    }
    return {};
  } catch (const std::runtime_error& error) {
    return fmt::format("gloo: {}; install the Gloo that rollcall was built with (Debian: libgloo0)",
                       error.what());
  }
}

}  // namespace

std::string open_gloo_library() {
  static const std::string problem = open_library();
  return problem;
}

}  // namespace rollcall::real

#else

namespace rollcall::real {

std::string open_gloo_library() { return {}; }  // it is part of the program

}  // namespace rollcall::real

#endif
