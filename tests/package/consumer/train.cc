// Prints the program's report. The exit code is 0 if the verdict is a deadlock.

#include <iostream>

#include <rollcall/sim/engine/simulate.h>
#include <rollcall/viz/text/text_report.h>

#include "program.h"

int main() {
  const rollcall::Report report = rollcall::sim::run({.world_size = 4, .backend = "gloo"}, uneven);
  std::cout << rollcall::viz::text_report(report, {});
  return rollcall::verdict_word(report.verdict) == "deadlock" ? 0 : 1;
}
