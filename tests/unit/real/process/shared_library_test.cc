#include "real/process/shared_library.h"

#include <csignal>

#include "tests/catch.h"

namespace rollcall::real::shared_library_test {
namespace {

volatile std::sig_atomic_t hangups = 0;

void count_hangup(int) { hangups = hangups + 1; }

void (*handler_of(int signal))(int) {
  struct sigaction action = {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

}  // namespace

TEST_CASE("a library that is opened does not take the signals of this process", "[real]") {
  struct sigaction before = {};
  struct sigaction counts = {};
  counts.sa_handler = count_hangup;
  ::sigaction(SIGHUP, &counts, &before);
  const auto on_fault = handler_of(SIGSEGV);
  hangups = 0;
  const SharedLibrary library({ROLLCALL_TAKES_SIGNALS});
  CHECK(hangups == 1);  // one that comes while it is opened is not lost
  CHECK(handler_of(SIGHUP) == count_hangup);
  CHECK(handler_of(SIGSEGV) == on_fault);
  std::raise(SIGHUP);
  CHECK(hangups == 2);
  ::sigaction(SIGHUP, &before, nullptr);
}

}  // namespace rollcall::real::shared_library_test
