#include "viz/traces/trace_text.h"

#include <array>
#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

namespace rollcall::viz {

std::string escaped(const std::string& text) {
  using Json = nlohmann::ordered_json;
  const std::string quoted = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

std::string kineto_name(const std::string& op) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> names{{
      {"all_reduce", "allreduce"},
      {"all_reduce_coalesced", "allreduce_coalesced"},
      {"all_gather", "allgather"},
      {"all_gather_into_tensor", "_allgather_base"},
      {"reduce_scatter_tensor", "_reduce_scatter_base"},
      {"all_to_all", "all_to_all"},
      {"all_to_all_single", "all_to_allv"},
  }};
  for (const auto& [torch, kineto] : names) {
    if (op == torch) {
      return std::string(kineto);
    }
  }
  return op;
}

void TraceText::flush() {
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

}  // namespace rollcall::viz
