#include "viz/rows/span_text.h"

#include <fmt/core.h>

#include "sim/c10d/op.h"

namespace rollcall::viz {

namespace {

std::string peer_text(const Span& span, const Timeline& timeline) {
  if (span.kind != Span::Kind::message) {
    return {};
  }
  const std::string_view word = timeline.name(span.name) == "recv" ? "from" : "to";
  return span.peer < 0 ? fmt::format(" {} anyone", word) : fmt::format(" {} rank {}", word, span.peer);
}

std::string arguments_text(const Span& span, const Timeline& timeline) {
  const std::string dtype = dtype_text(span, timeline);
  const std::string data = dtype.empty() ? "" : fmt::format("{} x {}", dtype, span.numel);
  const std::string& more = timeline.name(span.arguments);
  const std::string text = data + (data.empty() || more.empty() ? "" : ", ") + more;
  return text.empty() ? "" : " (" + text + ")";
}

}  // namespace

std::string dtype_text(const Span& span, const Timeline& timeline) {
  const auto kind = parse_op_kind(timeline.name(span.name));
  return kind && has_tensor(*kind) ? std::string(to_string(span.dtype)) : "";
}

std::string call_text(const Span& span, const Timeline& timeline) {
  return call_text(span, timeline, timeline.name(span.group));
}

std::string call_text(const Span& span, const Timeline& timeline, const std::string& group) {
  if (span.kind == Span::Kind::compute) {
    return timeline.name(span.name);
  }
  const bool is_numbered = span.seq >= 0 && span.kind != Span::Kind::message;
  const std::string number = is_numbered ? fmt::format(" #{}", span.seq) : "";
  return fmt::format("{}{}{}{}{}", timeline.name(span.name), number, peer_text(span, timeline),
                     group == "world" ? "" : " on " + group, arguments_text(span, timeline));
}

std::string origin_text(const Span& span, const Timeline& timeline) {
  return origin_phrase(timeline.name(span.label), timeline.name(span.site));
}

}  // namespace rollcall::viz
