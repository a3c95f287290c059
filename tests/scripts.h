#pragma once

// Helpers for tests that record the PyTorch scripts of tests/scripts.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/contents.h"
#include "tests/shell.h"

namespace rollcall::test {

// Returns the script's path, quoted for a shell: 'tests/scripts/counter.py'.
inline std::string script(const std::string& name) {
  return "'" ROLLCALL_SOURCE_DIR "/tests/scripts/" + name + ".py'";
}

// Returns the line of a script that ends in "# MISTAKE name", such as "mistakes.py:17", or "mistakes.py:0" if there is
// none.
inline std::string mistake_line(const std::string& name, const std::string& file = "mistakes") {
  std::ifstream in(ROLLCALL_SOURCE_DIR "/tests/scripts/" + file + ".py");
  std::size_t number = 0;
  std::size_t found = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    found = line.ends_with("# MISTAKE " + name) ? number : found;
  }
  return file + ".py:" + std::to_string(found);
}

// True if there is a Python with torch. If there is none, nothing can be recorded here, and a message says so once.
// Where TORCH_ROOT says which torch is to be tested (tests/package/torch_bin), a test fails that would use another one.
inline bool has_torch() {
  static const bool has = [] {
    if (std::getenv("TORCH_ROOT") != nullptr) {
      const Outcome tried = Shell().run("python3 -c 'import torch'");
      INFO(tried.err);
      REQUIRE(tried.code == 0);
    }
    const bool found =
        Shell().rollcall("record --world-size 1 " + script("mistakes") + " never_initializes").code != 77;
    if (!found) {
      WARN("skipped: no python3 with torch (Debian's package python3-torch)");
    }
    return found;
  }();
  return has;
}

// Returns the PyTorch release that the installed torch counts as: "1.13".
inline std::string recorded_torch() {
  static const std::string release = [] {
    const Shell shell;
    shell.rollcall("record --fake -n 4 -o out.json " + script("starts") + " by_file");
    const std::string scenario = contents(shell.path("out.json"));
    const std::string before = "\"torch\": \"";
    const std::size_t begin = scenario.find(before) + before.size();
    return scenario.substr(begin, scenario.find('"', begin) - begin);
  }();
  return release;
}

// True on a machine with GPUs of NVIDIA's, which scripts are recorded without.
inline bool has_gpus() { return std::filesystem::exists("/dev/nvidia0"); }

// What is said before a script that asks for GPUs runs.
inline std::string pretends(int devices) {
  return std::string("rollcall: ") + (has_gpus() ? "leaving the GPUs here alone" : "no GPU here") +
         ": pretending that there is CUDA, " + std::to_string(devices) + " devices\n";
}

}  // namespace rollcall::test
