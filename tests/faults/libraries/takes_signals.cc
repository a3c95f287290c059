// A library that gives signals handlers of its own when it is opened, as UCX does.

#include <csignal>
#include <initializer_list>

namespace {

void ignore(int) {}

[[gnu::constructor]] void take_signals() {
  for (const int signal : {SIGHUP, SIGSEGV, SIGBUS}) {
    std::signal(signal, ignore);
  }
  std::raise(SIGHUP);  // as if it came now
}

}  // namespace
