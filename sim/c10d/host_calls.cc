#include "sim/c10d/host_calls.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rollcall {
namespace {

using Kind = StoreCall::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 8> names{{
    {"store_set", Kind::set},
    {"store_get", Kind::get},
    {"store_add", Kind::add},
    {"store_wait", Kind::wait},
    {"store_check", Kind::check},
    {"store_compare_set", Kind::compare_set},
    {"store_delete", Kind::delete_key},
    {"store_num_keys", Kind::num_keys},
}};

}  // namespace

std::string_view to_string(StoreCall::Kind kind) {
  return std::ranges::find(names, kind, &std::pair<std::string_view, Kind>::second)->first;
}

bool is_sound(const StoreCall& call) {
  const bool takes_any = call.kind == Kind::wait || call.kind == Kind::check;
  return call.kind <= Kind::num_keys &&
         (takes_any || call.keys.size() == (call.kind == Kind::num_keys ? 0 : 1));
}

std::optional<StoreCall::Kind> parse_store_kind(std::string_view name) {
  const auto entry = std::ranges::find(names, name, &std::pair<std::string_view, Kind>::first);
  return entry != names.end() ? std::optional(entry->second) : std::nullopt;
}

}  // namespace rollcall
