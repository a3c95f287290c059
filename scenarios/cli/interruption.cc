#include "scenarios/cli/interruption.h"

namespace rollcall::cli {
namespace {

volatile std::sig_atomic_t asked = 0;

void on_interrupt(int) {
  asked = 1;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

Interruption::Interruption() : before_(std::signal(SIGINT, on_interrupt)) { asked = 0; }

Interruption::~Interruption() { std::signal(SIGINT, before_); }

const volatile std::sig_atomic_t& Interruption::flag() const { return asked; }

}  // namespace rollcall::cli
