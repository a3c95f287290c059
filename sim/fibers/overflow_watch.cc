#include "sim/fibers/overflow_watch.h"

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include <unistd.h>

namespace rollcall::sim {
namespace {

constexpr std::size_t handlers_stack_bytes = 64 * 1024;

thread_local const StackArena* watched = nullptr;
struct sigaction handled_before;

// A line of text for a signal handler, which may neither format nor allocate.
class Line {
 public:
  Line& add(std::string_view text) {
    for (const char letter : text) {
      if (length_ < text_.size()) {
        text_[length_++] = letter;
      }
    }
    return *this;
  }
  Line& add(std::size_t number) {
    std::array<char, 20> digits{};
    std::size_t first = digits.size();
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return add(std::string_view(digits.data() + first, digits.size() - first));
  }
  void write() const { static_cast<void>(!::write(STDERR_FILENO, text_.data(), length_)); }

 private:
  std::array<char, 400> text_{};
  std::size_t length_ = 0;
};

void handle(int, siginfo_t* info, void*) {
  const std::optional<std::size_t> rank =
      watched != nullptr ? watched->guarded_by(info->si_addr) : std::nullopt;
  if (!rank) {
    sigaction(SIGSEGV, &handled_before, nullptr);  // the same instruction faults again, with that handler
    return;
  }
  Line()
      .add("rollcall: rank ")
      .add(*rank)
      .add(" has run out of stack: it has ")
      .add(watched->stack_bytes() / 1024)
      .add(
          " KiB.\n  help: keep large local arrays on the heap (std::vector), or set "
          "sim::Options::stack_bytes\n")
      .write();
  _exit(OverflowWatch::exit_code);
}

// Called again for every thread that has ranks: a test framework may have installed its own handler meanwhile.
void install() {
  static std::mutex lock;
  const std::lock_guard guard(lock);
  struct sigaction current {};
  sigaction(SIGSEGV, nullptr, &current);
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == handle) {
    return;
  }
  handled_before = current;
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

OverflowWatch::OverflowWatch() {
  install();
  stack_t current{};
  sigaltstack(nullptr, &current);
  if ((current.ss_flags & SS_DISABLE) != 0) {  // otherwise there is one already, which serves as well
    handlers_stack_ = std::make_unique_for_overwrite<std::byte[]>(handlers_stack_bytes);
    const stack_t own{.ss_sp = handlers_stack_.get(), .ss_flags = 0, .ss_size = handlers_stack_bytes};
    sigaltstack(&own, nullptr);
  }
}

OverflowWatch::~OverflowWatch() {
  watched = nullptr;
  if (handlers_stack_ != nullptr) {
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    sigaltstack(&none, nullptr);
  }
}

void OverflowWatch::look_at(const StackArena& arena) { watched = &arena; }

}  // namespace rollcall::sim
