#pragma once

// Parses docs/findings.md. Its layout:
//
//   ## deadlock: a verdict's title              no colon: a chapter, whose text is for readers of the page only
//   ### send_send: the title of one of its kinds
//
//   What it means, one paragraph.
//
//   ```text
//   an example
//   ```
//
//   - **Typical cause**: one paragraph, whose further lines are indented.
//   - **Help**: the same, and so on: On Gloo, On NCCL, Reports
//
//   ### gloo_timeout                            no colon: a text that several kinds share, as [gloo_timeout](#...)

#include <string_view>
#include <vector>

#include "viz/kinds/explanations.h"

namespace rollcall::viz {

// The text of docs/findings.md, which is built into the program.
std::string_view findings_text();

// Returns the explanations in the page's order. The page must be well formed, because it is part of the program.
std::vector<Explanation> read_findings(std::string_view page);

}  // namespace rollcall::viz
