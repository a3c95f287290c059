#include "traces/dumps/profiling_name.h"

#include <charconv>

namespace rollcall::traces {

check::DumpCall parse_profiling_name(std::string_view name) {
  check::DumpCall call;
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
    call.backend = name.substr(0, colon);
    name.remove_prefix(colon + 1);
  }
  const std::size_t blank = name.find(' ');
  const std::string_view op = name.substr(0, blank);
  call.op = name;
  if (blank == std::string_view::npos || (op != "send" && op != "recv")) {
    return call;
  }
  const std::string_view ends = name.substr(blank + 1);
  const std::size_t arrow = ends.find(op == "send" ? "->" : "<-");
  Rank own = -1;
  Rank peer = -1;
  if (arrow == std::string_view::npos ||
      std::from_chars(ends.data(), ends.data() + arrow, own).ec != std::errc() ||
      std::from_chars(ends.data() + arrow + 2, ends.data() + ends.size(), peer).ec != std::errc() ||
      own < 0 || peer < 0) {
    return call;
  }
  call.op = op;
  call.source = op == "send" ? own : peer;
  call.destination = op == "send" ? peer : own;
  return call;
}

}  // namespace rollcall::traces
