#pragma once

// Writing a file so that a failure is never silent and never leaves half of one.

#include <functional>
#include <iosfwd>
#include <stdexcept>
#include <string>

namespace rollcall::viz {

// Something could not be written. The text names it and says why.
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Calls `write` with a stream, and puts what it wrote at `path`: under another name first, renamed
// when complete, so that `path` holds either what it held or all of the new text. What is not a regular
// file (a pipe, /dev/stdout) is written directly. Throws OutputError.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

// For handlers of signals that end the program: what write_file has begun and not finished is no longer there.
void remove_unfinished_file() noexcept;

// The same for text on standard output. Throws OutputError when nobody takes it.
void write_stdout(const std::string& text);

}  // namespace rollcall::viz
