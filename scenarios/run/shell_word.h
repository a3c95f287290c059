#pragma once

#include <string>

namespace rollcall::scenario {

// `word` as a shell reads it back: quoted when it holds anything but the usual characters of a path.
std::string shell_word(const std::string& word);

}  // namespace rollcall::scenario
