#pragma once

// Runs the program as users and scripts do: from a shell, in a folder of its own.

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/contents.h"

namespace rollcall::test {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

// A temporary folder, in which a shell runs the program.
class Shell {
 public:
  Shell()
      : folder_(std::filesystem::temp_directory_path() /
                ("rollcall_cli_test." + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;
  ~Shell() { std::filesystem::remove_all(folder_); }

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
  }

  // `arguments` may redirect output; `before` may set variables or wrap the program.
  Outcome rollcall(const std::string& arguments, const std::string& before = "") const {
    return run("env -u NO_COLOR -u CLICOLOR_FORCE TERM=xterm " + before + " '" ROLLCALL_CLI "' " + arguments);
  }

  Outcome run(const std::string& line) const {
    const std::string command = "cd '" + folder_.string() + "' && { " + line + "; } 2>stderr.txt </dev/null";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    Outcome outcome;
    std::array<char, 4096> buffer;
    for (std::size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
      outcome.out.append(buffer.data(), count);
    }
    const int status = ::pclose(pipe);
    REQUIRE(WIFEXITED(status));
    outcome.code = WEXITSTATUS(status);
    outcome.err = contents(path("stderr.txt"));
    return outcome;
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace rollcall::test
