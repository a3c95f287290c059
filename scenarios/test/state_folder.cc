#include "scenarios/test/state_folder.h"

#include <filesystem>
#include <ostream>

#include "viz/base/write_file.h"

namespace rollcall::scenario {
namespace {

void write_text_file(const std::string& path, const std::string& text) {
  viz::write_file(path, [&text](std::ostream& out) { out << text; });
}

}  // namespace

void write_state(const std::string& path, const std::string& text) {
  std::error_code unable;  // then writing reports why
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), unable);
  if (constexpr const char* ignored = ".rollcall/.gitignore"; !std::filesystem::exists(ignored, unable)) {
    write_text_file(ignored, "# written by `rollcall test`\n/.gitignore\n/failures/\n/last-failed.json\n");
  }
  write_text_file(path, text);
}

}  // namespace rollcall::scenario
