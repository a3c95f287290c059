#pragma once

// Gloo's library is opened when the first rank needs it, as NVIDIA's are, so a simulation does not pay for it. Debian's
// Gloo of 2023 brings MPI and UCX along, and loading those takes ten times as long as a small run.

#include <string>

namespace rollcall::real {

// Opens the library and finds its functions; nothing of Gloo may be called before. Returns why that is impossible, as
// one line, or an empty text. Later calls return what the first did.
std::string open_gloo_library();

}  // namespace rollcall::real
