#pragma once

#include <string>

namespace rollcall::scenario {

// Returns `word` such that a shell reads it back unchanged: quoted if it has anything but the usual
// characters of a path.
std::string shell_word(const std::string& word);

}  // namespace rollcall::scenario
