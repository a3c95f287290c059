#pragma once

// A stream that compresses what is written to it, for the readers of traces that take gzip: all of them.
// The bytes depend on the text alone: no time and no file name in the header.

#include <memory>
#include <ostream>
#include <streambuf>

namespace rollcall::viz {

class GzipStream : public std::ostream {
 public:
  // `sink` is borrowed. What it does not take shows in this stream's state.
  explicit GzipStream(std::ostream& sink);
  ~GzipStream() override;

  // Writes what is left, and the trailer. To be called once, last.
  void finish();

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace rollcall::viz
