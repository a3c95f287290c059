#pragma once

// The parts of an HTML report that work without scripts and styles, in the order of the page. Each
// writes a heading and its content, or nothing if there is nothing to say.

#include "sim/report/report.h"
#include "viz/html/markup.h"

namespace rollcall::viz {

// Who, what, where: the sentence, the cause, and the advice.
void html_verdict(Markup& out, const Report& report);
// The source lines that the verdict is about, if they could be read.
void html_excerpts(Markup& out, const Report& report);
// The ranks' calls in the slot where they differ, and the values that are wrong.
void html_variants(Markup& out, const Report& report);
// Where every rank is, one row per state.
void html_states(Markup& out, const Report& report);
void html_states_table(Markup& out, const Report& report);  // without the heading
// Which ranks wait for which: the graph and the steps.
void html_wait_graph(Markup& out, const Report& report);
// Sends and receives that never completed, both ends side by side.
void html_messages(Markup& out, const Report& report);
// What the ranks printed.
void html_output(Markup& out, const Report& report);
// The command that repeats the run, and what is known about it.
void html_run(Markup& out, const Report& report);

}  // namespace rollcall::viz
