#include "traces/file_bytes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "traces/value.h"

namespace rollcall::traces {

namespace {

class Descriptor {
 public:
  // Does not wait for somebody to write into a pipe.
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  int number() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void fail() { throw BadFile(0, std::strerror(errno)); }

// Sets zlib's reader up and cleans up after it.
struct Inflater {
  z_stream stream{};

  Inflater() {
    constexpr int gzip_or_zlib = 15 + 32;  // the largest window; the header says which
    if (::inflateInit2(&stream, gzip_or_zlib) != Z_OK) {
      throw BadFile(0, "zlib cannot be set up");
    }
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { ::inflateEnd(&stream); }
};

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

}  // namespace

std::string_view FileBytes::read(const std::string& path) {
  const Descriptor file(path);
  struct ::stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) {
    fail();
  }
  if (!S_ISREG(status.st_mode)) {
    throw BadFile(0, "not a regular file");
  }
  if (static_cast<std::size_t>(status.st_size) > max_bytes) {
    throw BadFile(0, "larger than 1 GiB");
  }
  raw_.resize(static_cast<std::size_t>(status.st_size));
  std::size_t size = 0;
  while (size < raw_.size()) {
    const ::ssize_t count = ::read(file.number(), raw_.data() + size, raw_.size() - size);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      fail();
    }
    if (count == 0) {
      break;  // it became shorter; the parser will say where it ends
    }
    size += static_cast<std::size_t>(count);
  }
  const std::string_view bytes(raw_.data(), size);
  return is_gzip(bytes) ? inflate(bytes) : bytes;
}

std::string_view FileBytes::inflate(std::string_view packed) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // zlib does not write there
  stream.avail_in = static_cast<uInt>(packed.size());
  unpacked_.resize(std::max(unpacked_.capacity(), std::size_t{1} << 20));
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    if (stream.total_out == unpacked_.size()) {
      if (unpacked_.size() >= max_bytes) {
        throw BadFile(stream.total_in, "unpacks to more than 1 GiB");
      }
      unpacked_.resize(std::min(max_bytes, unpacked_.size() * 2));
    }
    stream.next_out = reinterpret_cast<Bytef*>(unpacked_.data()) + stream.total_out;
    stream.avail_out = static_cast<uInt>(unpacked_.size() - stream.total_out);
    code = ::inflate(&stream, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) {
      throw BadFile(stream.total_in, code == Z_BUF_ERROR ? "the gzip data ends here: it was cut off"
                                                         : "the gzip data is damaged");
    }
  }
  return {unpacked_.data(), stream.total_out};
}

}  // namespace rollcall::traces
