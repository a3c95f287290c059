#pragma once

// The wait-for graph as SVG. It uses presentation attributes only, so that it works where styles are forbidden, and
// classes, so that a style sheet can refine it. Nothing depends on color: culprits have a thick frame and a cross,
// cycles have thick lines, and waits for any one of several ranks have dashed ones.

#include "viz/html/markup.h"
#include "viz/rows/wait_graph.h"

namespace rollcall::viz {

void draw_wait_graph(Markup& out, const WaitGraph& graph);

}  // namespace rollcall::viz
