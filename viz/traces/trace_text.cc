#include "viz/traces/trace_text.h"

#include <ostream>

#include <nlohmann/json.hpp>

#include "sim/c10d/op.h"

namespace rollcall::viz {

std::string escaped(const std::string& text) {
  using Json = nlohmann::ordered_json;
  const std::string quoted = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

std::string kineto_name(const std::string& op) {
  const std::optional<OpKind> kind = parse_op_kind(op);
  const std::string_view own = kind ? row_of(*kind).kineto : std::string_view();
  return own.empty() ? op : std::string(own);
}

void TraceText::flush() {
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

}  // namespace rollcall::viz
