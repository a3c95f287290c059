#pragma once

// The Unix resources that other processes need, each owned by an object: descriptors, a private folder, child
// processes.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/types.h>

namespace rollcall::real {

// Throws std::system_error with errno for the failed call `what`.
[[noreturn]] void throw_errno(const char* what);

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void close();

 private:
  int number_ = -1;
};

// poll(2); no descriptor is ready if a signal came first. Throws std::system_error.
void poll_all(std::vector<pollfd>& polled, int milliseconds);

// Blocks until all is written; false if that fails, and errno says why.
bool write_all(int descriptor, std::string_view bytes);

struct Pipe {
  Pipe();  // throws std::system_error
  Descriptor read;
  Descriptor write;
};

// A new folder that only this user can enter; the destructor removes it with everything in it.
class PrivateFolder {
 public:
  // In `parent`, or where temporary files go. Throws std::system_error.
  explicit PrivateFolder(const std::string& parent = {});
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A child of this process. The destructor kills it and waits for it, and the kernel kills it when
// this process dies: no child is ever left behind. Other processes are never affected, because the id of a child
// that has not been waited for cannot belong to another process.
class ChildProcess {
 public:
  enum class Interrupt { ends, ignored };  // what Ctrl-C does to the child

  // Forks; the child runs `body` and never returns from it. Throws std::system_error.
  explicit ChildProcess(const std::function<void()>& body, Interrupt interrupt = Interrupt::ends);
  ~ChildProcess() { kill(); }
  ChildProcess(ChildProcess&& other) noexcept : id_(std::exchange(other.id_, -1)), status_(other.status_) {}
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const { return id_; }
  // Readable once it has ended. Throws std::system_error.
  Descriptor watch() const;
  // Blocks until it has ended. The status is waitpid's.
  int wait();
  // True if one of its threads runs, or would if it had a processor: then it is slow, not stuck.
  bool is_busy() const;
  // Ends it at once, unless it has ended.
  void kill();

 private:
  pid_t id_ = -1;  // -1: waited for
  int status_ = 0;
};

constexpr int no_such_program = 127;  // the exit code that a shell uses

// In a child: becomes this program, which is looked up in PATH.
[[noreturn]] void execute(const std::vector<std::string>& command);

}  // namespace rollcall::real
