#include "scenarios/import/known_communicators.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "sim/c10d/backend_traits.h"

namespace rollcall::scenario {
namespace {

// Without a communicator, a message waits for its other end, and there is none to split.
constexpr std::array<std::string_view, 6> statements = {
    "send", "recv", "isend", "irecv", "batch_isend_irecv", "split_group"};

bool needs_communicators(const OrderedJson& value) {
  const bool is_one = value.is_object() && std::ranges::any_of(statements, [&](std::string_view name) {
                        return value.contains(name);
                      });
  return is_one || (value.is_structured() && std::ranges::any_of(value, needs_communicators));
}

}  // namespace

void assume_communicators(const OrderedJson& programs, OrderedJson& scenario) {
  if (traits_of(scenario.at("backend").get<std::string>()).connects_at_first_use &&
      needs_communicators(programs)) {
    scenario["communicators"] = "eager";
  }
}

}  // namespace rollcall::scenario
