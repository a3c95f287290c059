#pragma once

// A stream that compresses what is written to it. All readers of traces accept gzip.
// The output depends on the text alone: the header has no time and no file name.

#include <memory>
#include <ostream>
#include <streambuf>

namespace rollcall::viz {

class GzipStream : public std::ostream {
 public:
  // `sink` is borrowed. A failed write to it shows in this stream's state.
  explicit GzipStream(std::ostream& sink);
  ~GzipStream() override;

  // Writes the rest and the trailer. Must be called once, at the end.
  void finish();

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace rollcall::viz
