#include "traces/formats/host_operators.h"

#include <algorithm>
#include <array>

#include "traces/formats/call_names.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

constexpr int nesting_max = 4;  // a list of lists of tensor shapes
constexpr std::int64_t elements_max = std::int64_t{1} << 60;

const Value* item(const Value* list, std::size_t index) {
  const std::span<const Value> items = items_of(list);
  return index < items.size() ? &items[index] : nullptr;
}

// Total elements of the tensors in a list of shapes, however deeply nested; -1 if there are none.
std::int64_t elements_in(const Value* shapes, int depth = 0) {
  const std::span<const Value> items = items_of(shapes);
  if (items.empty() || depth > nesting_max) {
    return -1;
  }
  const bool is_shape = items[0].is(Value::Kind::integer);
  std::int64_t total = is_shape ? 1 : -1;
  for (const Value& item : items) {
    const std::int64_t part = is_shape ? count_or(&item, -1) : elements_in(&item, depth + 1);
    const bool overflows = is_shape ? __builtin_mul_overflow(total, part, &total)
                                    : __builtin_add_overflow(std::max<std::int64_t>(total, 0), part, &total);
    if (part < 0 || overflows) {
      return -1;
    }
  }
  return total < elements_max ? total : -1;
}

// "float" in "GenericList[Tensor(float)]".
std::string_view dtype_in(std::string_view type) {
  constexpr std::string_view mark = "Tensor(";
  const std::size_t begin = type.find(mark);
  if (begin == std::string_view::npos) {
    return {};
  }
  type.remove_prefix(begin + mark.size());
  return type.substr(0, type.find(')'));
}

// True if the operator takes its outputs before its inputs.
bool has_results_first(std::string_view op) {
  constexpr std::array<std::string_view, 5> names = {"all_gather", "gather", "scatter", "reduce_scatter",
                                                     "all_to_all"};
  return std::find(names.begin(), names.end(), op) != names.end();
}

}  // namespace

bool is_host_operator(std::string_view name) {
  return name.starts_with("c10d::") && !known_name(name).empty();
}

bool is_backend_range(std::string_view name) {
  const std::size_t colon = name.find(':');
  return colon != std::string_view::npos && colon > 0 &&
         name.find(':', colon + 1) == std::string_view::npos && !known_name(name).empty();
}

RecordedCall call_of(const HostOperator& host) {
  RecordedCall call;
  call.name = host.name;
  const std::string_view op = known_name(host.name);
  const bool swaps = is_host_operator(host.name) && has_results_first(op);
  call.numel_in = elements_in(item(host.shapes, swaps ? 1 : 0));
  call.numel_out = elements_in(item(host.shapes, 0));
  call.dtype = dtype_in(text_or_empty(item(host.types, 0)));
  if (is_host_operator(host.name) && (op == "send" || op == "recv")) {
    const std::int64_t peer = number_or(item(host.values, 2), -1);
    call.peer = peer >= 0 && peer < ranks_max ? static_cast<Rank>(peer) : -1;
  }
  return call;
}

}  // namespace rollcall::traces
