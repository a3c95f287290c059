#pragma once

// The wait-for graph as SVG. Presentation attributes only, so that it is there where styles are forbidden;
// classes, so that a style sheet may say more. Nothing rests on color: culprits have a thick frame and a
// cross, cycles thick lines, waits for any one of several ranks dashed ones.

#include "viz/html/markup.h"
#include "viz/rows/wait_graph.h"

namespace rollcall::viz {

void draw_wait_graph(Markup& out, const WaitGraph& graph);

}  // namespace rollcall::viz
