#pragma once

#include <filesystem>
#include <initializer_list>
#include <vector>

namespace rollcall::test {

// The scenario files that lie in these folders of the repository, and not below them; sorted.
std::vector<std::filesystem::path> scenarios_in(std::initializer_list<const char*> folders);

}  // namespace rollcall::test
