#include "traces/values/file_bytes.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/values/unpack.h"
#include "traces/values/value.h"

namespace rollcall::traces {

namespace {

class Descriptor {
 public:
  // O_NONBLOCK: does not wait for a writer if the file is a pipe.
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
  if (static_cast<std::size_t>(status.st_size) > bytes_max) {
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
      break;  // the file became shorter; the parser reports where it ends
    }
    size += static_cast<std::size_t>(count);
  }
  const std::string_view bytes(raw_.data(), size);
  return is_packed(bytes) ? unpack(bytes, unpacked_, bytes_max) : bytes;
}

}  // namespace rollcall::traces
