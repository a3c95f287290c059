#include "scenarios/cli/terminal/interruption.h"

namespace rollcall::cli {
namespace {

volatile std::sig_atomic_t asked = 0;
void (*before)(int) = SIG_DFL;

void on_interrupt(int signal) {
  asked = 1;
  std::signal(signal, before);
}

}  // namespace

Interruption::Interruption() {
  asked = 0;
  before = std::signal(SIGINT, on_interrupt);
}

Interruption::~Interruption() { std::signal(SIGINT, before); }

const volatile std::sig_atomic_t& Interruption::flag() const { return asked; }

}  // namespace rollcall::cli
