#include "tests/processes.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace rollcall::test {
namespace {

bool is_running(const std::string& word) {
  const std::string argument = '\0' + word + '\0';
  return std::ranges::any_of(std::filesystem::directory_iterator("/proc"), [&](const auto& entry) {
    std::ifstream in(entry.path() / "cmdline");
    std::string line;
    std::getline(in, line);  // an iterator would throw where the process ends between opening and reading
    return line.find(argument) != std::string::npos;
  });
}

}  // namespace

bool stays_running(const std::string& word) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (is_running(word)) {
    if (std::chrono::steady_clock::now() > until) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace rollcall::test
