// The same program on processes with Gloo, judged by the same judge.

#include <iostream>

#include <rollcall/real/launch/launch.h>
#include <rollcall/viz/text/text_report.h>

#include "program.h"

int main() {
  const rollcall::Report report = rollcall::real::run({.world_size = 2}, uneven).report;
  std::cout << rollcall::viz::text_report(report, {});
  return rollcall::verdict_word(report.verdict) == "deadlock" ? 0 : 1;
}
