#include "tests/shipped_scenarios.h"

#include <algorithm>
#include <stdexcept>

namespace rollcall::test {
namespace {

namespace fs = std::filesystem;

const fs::path root = ROLLCALL_SOURCE_DIR;

void add_scenario(const fs::path& path, std::vector<fs::path>& files) {
  const std::string name = path.filename().string();
  if (name.ends_with(".json") && !name.ends_with(".schema.json")) {
    files.push_back(path);
  }
}

std::vector<fs::path> find_examples() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "scenarios")) {
    add_scenario(entry.path(), files);
  }
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "scenarios/examples")) {
    add_scenario(entry.path(), files);
  }
  std::ranges::sort(files);
  return files;
}

std::vector<fs::path> find_hangs() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "scenarios/real_hangs")) {
    add_scenario(entry.path(), files);
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

const std::vector<fs::path>& shipped_examples() {
  static const std::vector<fs::path> files = find_examples();
  return files;
}

const std::vector<fs::path>& shipped_hangs() {
  static const std::vector<fs::path> files = find_hangs();
  return files;
}

std::vector<fs::path> shipped_scenarios() {
  std::vector<fs::path> files = shipped_examples();
  files.insert(files.end(), shipped_hangs().begin(), shipped_hangs().end());
  return files;
}

std::string example_file(const std::string& name) {
  for (const fs::path& path : shipped_examples()) {
    if (path.stem() == name) {
      return path.lexically_relative(root).generic_string();
    }
  }
  throw std::invalid_argument("no example is called " + name);
}

}  // namespace rollcall::test
