#include "scenarios/record/recorder_files.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace rollcall::scenario {

std::string unpack_recorder(const std::string& folder) {
  const std::filesystem::path package = std::filesystem::path(folder) / "rollcall_recorder";
  std::filesystem::create_directories(package / "hook");
  for (const EmbeddedFile& file : recorder_files()) {
    std::ofstream out(package / file.name, std::ios::binary);
    out << file.text;
    if (!out.flush()) {
      throw std::system_error(errno, std::generic_category(), package / file.name);
    }
  }
  return package;
}

}  // namespace rollcall::scenario
