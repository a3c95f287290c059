#include "tests/shipped_scenarios.h"

#include <algorithm>
#include <string>

namespace rollcall::test {

namespace fs = std::filesystem;

std::vector<fs::path> scenarios_in(std::initializer_list<const char*> folders) {
  std::vector<fs::path> files;
  for (const char* folder : folders) {
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(ROLLCALL_SOURCE_DIR) / folder)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".json") && !name.ends_with(".schema.json")) {
        files.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace rollcall::test
