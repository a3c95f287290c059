#pragma once

// Writes files so that a failure is never silent and never leaves half a file.

#include <functional>
#include <iosfwd>
#include <stdexcept>
#include <string>

namespace rollcall::viz {

// The output could not be written. The message names it and says why.
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Calls `write` with a stream, and stores the result at `path`: under another name first, renamed
// when complete, so that `path` holds either its old contents or all of the new text. Anything but a regular
// file (a pipe, /dev/stdout) is written directly. Throws OutputError.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

// Removes the file that write_file has begun and not finished. For handlers of signals that end the program.
void remove_unfinished_file() noexcept;

// Writes text to standard output. Throws OutputError if that fails.
void write_stdout(const std::string& text);

}  // namespace rollcall::viz
