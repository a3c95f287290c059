#include "viz/base/write_file.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace rollcall::viz {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(std::string_view what, int error) {
  std::string text = "cannot write " + std::string(what);
  if (error != 0) {
    text += ": " + std::generic_category().message(error);
  }
  throw OutputError(text);
}

// The stream does not keep the reason; errno still holds that of the failed system call.
void write_to(const std::string& path, const std::string& shown,
              const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) {
    fail("'" + shown + "'", errno);
  }
  write(out);
  out.close();
  if (!out) {
    fail("'" + shown + "'", errno);
  }
}

// Called before the file gets its name: otherwise the name could outlive the contents if the machine goes down, and
// some file systems notice only here that they are full.
void flush_to_disk(const std::string& path, const std::string& shown) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int failed = file < 0 || ::fsync(file) != 0 ? errno : 0;
  if (file >= 0) {
    ::close(file);
  }
  if (failed != 0 && failed != EINVAL) {  // EINVAL: the file is not on a disk
    fail("'" + shown + "'", failed);
  }
}

// The path of the file that is being written, for signal handlers; null if there is none.
std::atomic<const char*> unfinished = nullptr;
static_assert(std::atomic<const char*>::is_always_lock_free, "a handler of signals reads it");

// Removes an unfinished file unless it was kept.
class Unfinished {
 public:
  explicit Unfinished(std::string path) : path_(std::move(path)) { unfinished = path_.c_str(); }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (!kept_) {
      ::unlink(path_.c_str());  // needs no memory; the failure of the write is already being reported
    }
    unfinished = nullptr;
  }
  const std::string& path() const { return path_; }
  void keep_as(const fs::path& target) {
    std::error_code error;
    fs::rename(path_, target, error);
    if (error) {
      fail("'" + target.string() + "'", error.value());
    }
    kept_ = true;
  }

 private:
  std::string path_;
  bool kept_ = false;
};

// The target of the rename: a link stays a link.
fs::path behind_links(const std::string& path) {
  std::error_code error;
  fs::path target = fs::canonical(path, error);
  return error ? fs::path(path) : target;
}

}  // namespace

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    write_to(path, path, write);
    return;
  }
  const fs::path target = behind_links(path);
  Unfinished file(target.string() + ".partial");
  write_to(file.path(), path, write);
  flush_to_disk(file.path(), path);
  if (fs::exists(status)) {
    fs::permissions(file.path(), status.permissions(), error);  // as before; failure ignored
  }
  file.keep_as(target);
}

void remove_unfinished_file() noexcept {
  if (const char* path = unfinished.load()) {
    ::unlink(path);
  }
}

void write_stdout(const std::string& text) {
  errno = 0;
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    fail("to standard output", errno);
  }
}

}  // namespace rollcall::viz
