#include "scenarios/import/known_communicators.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "sim/c10d/backend_traits.h"

namespace rollcall::scenario {
namespace {

constexpr std::array<std::string_view, 5> messages = {"send", "recv", "isend", "irecv", "batch_isend_irecv"};

bool sends_messages(const OrderedJson& value) {
  const bool is_message = value.is_object() && std::ranges::any_of(messages, [&](std::string_view name) {
                            return value.contains(name);
                          });
  return is_message || (value.is_structured() && std::ranges::any_of(value, sends_messages));
}

}  // namespace

void assume_communicators(const OrderedJson& programs, OrderedJson& scenario) {
  if (traits_of(scenario.at("backend").get<std::string>()).connects_at_first_use &&
      sends_messages(programs)) {
    scenario["communicators"] = "eager";
  }
}

}  // namespace rollcall::scenario
