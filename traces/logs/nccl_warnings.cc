#include "traces/logs/nccl_warnings.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/core.h>

#include "sim/base/ascii.h"
#include "traces/logs/lines.h"

namespace rollcall::traces {

namespace {

constexpr std::string_view warning = "NCCL WARN ";
// Other warnings are about settings, and training goes on.
constexpr std::array<std::string_view, 7> of_failures = {"error",  "failed",   "failure", "closed by",
                                                         "broken", "mismatch", "status="};

bool is_failure(std::string_view text) {
  return std::ranges::any_of(of_failures,
                             [text](std::string_view word) { return contains_ignoring_case(text, word); });
}

// "node2, GPU 0" of "node2:5776:5902 [0] transport/net_ib.cc:1296 "; empty if the line begins otherwise.
std::string place_of(std::string_view before) {
  const std::size_t open = before.rfind(" [");
  const std::size_t close = open == std::string_view::npos ? open : before.find(']', open);
  if (close == std::string_view::npos) {
    return "";
  }
  const std::string_view process = before.substr(0, open);
  const std::string_view host = process.substr(process.rfind(' ') + 1);  // npos + 1 is 0
  return fmt::format("{}, GPU {}", host.substr(0, host.find(':')), before.substr(open + 2, close - open - 2));
}

}  // namespace

bool looks_like_nccl_warnings(std::string_view bytes) { return contains(bytes, warning); }

std::vector<check::LogFact> read_nccl_warnings(const LogStream& log) {
  constexpr std::size_t text_max = 200;
  std::vector<check::LogFact> facts;
  for (const LogLine& line : log.lines) {
    const std::size_t at = line.text.find(warning);
    if (at == std::string_view::npos || !is_failure(line.text.substr(at + warning.size()))) {
      continue;
    }
    const std::string place = place_of(line.text.substr(0, at));
    add_fact(facts, check::LogFact::Kind::nccl_failed, {}, line.number).text =
        fmt::format("{}{}", place.empty() ? "" : "NCCL on " + place + ": ",
                    line.text.substr(at + warning.size(), text_max));
    break;  // those that follow tell how the error went on
  }
  return facts;
}

}  // namespace rollcall::traces
