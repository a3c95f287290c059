#include "scenarios/program/value_reader.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/devices.h"
#include "scenarios/program/units.h"

namespace rollcall::scenario {
namespace {

// The names of an enumeration of `count` values.
template <typename Enum>
std::vector<std::string_view> names_of(std::size_t count) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(to_string(static_cast<Enum>(i)));
  }
  return names;
}

}  // namespace

void ValueReader::error(const Json& at, std::string message, std::string_view suggestion) {
  diagnostics_.error(at, std::move(message), suggestion);
}

Operand ValueReader::integer(const Json& value) {
  switch (value.type()) {
    case JsonType::integer:
    case JsonType::boolean:
      return Operand::of(value.integer());
    case JsonType::string:
      return expression(value, value.text(), 0);
    case JsonType::null:
    case JsonType::real:
    case JsonType::array:
    case JsonType::object:
      error(value, fmt::format("expected an integer or an expression, found {}", to_phrase(value.type())));
  }
  return Operand::of(0);
}

Operand ValueReader::integer_in(const Json& value, std::int64_t least, std::int64_t most,
                                std::string_view what) {
  if (value.is(JsonType::boolean)) {  // a value, as True is 1 in Python, but not a number of anything
    error(value, fmt::format("expected {} as an integer or an expression, found a boolean", what));
    return Operand::of(least);
  }
  const Operand operand = integer(value);
  if (operand.kind == Operand::Kind::integer && (operand.integer < least || operand.integer > most)) {
    error(value, operand.integer < least && least == 0
                     ? fmt::format("{} cannot be negative", what)
                     : fmt::format("{} must lie between {} and {}", what, least, most));
    return Operand::of(least);
  }
  return operand;
}

Operand ValueReader::number(const Json& value) {
  if (const auto special = value.is(JsonType::string) ? parse_non_finite(value.text()) : std::nullopt) {
    return Operand::of_real(*special);
  }
  return value.is(JsonType::real) ? Operand::of_real(value.real()) : integer(value);
}

double ValueReader::constant(const Json& value, std::string_view what) {
  if (value.is_number()) {
    return value.real();
  }
  if (value.text() != "inf") {
    error(value, fmt::format("expected {} as a number, found {}", what, to_phrase(value.type())));
  }
  return std::numeric_limits<double>::infinity();
}

Operand ValueReader::amount(const Json& value) {
  if (value.is(JsonType::string)) {
    if (const Quantity size = parse_bytes(value.text()); size.value) {
      return Operand::of(*size.value);
    }
  }
  const Operand operand = number(value);
  const bool is_negative =
      (operand.kind == Operand::Kind::integer && operand.integer < 0) ||
      (operand.kind == Operand::Kind::real && !(operand.real >= 0 && operand.real <= 1e24));
  if (is_negative) {
    error(value, "expected a number from 0 to 1e24");
    return Operand::of(0);
  }
  return operand;
}

Operand ValueReader::rank(const Json& value) {
  const Operand operand = integer(value);
  if (operand.kind == Operand::Kind::integer &&
      (operand.integer < 0 || operand.integer >= facts_.world_size)) {
    error(value,
          fmt::format("rank {} is out of range: ranks are 0 to {}", operand.integer, facts_.world_size - 1));
    return Operand::of(0);
  }
  return operand;
}

bool ValueReader::flag(const Json& value) {
  if (!value.is(JsonType::boolean)) {
    error(value, fmt::format("expected true or false, found {}", to_phrase(value.type())));
    return false;
  }
  return value.boolean();
}

std::int64_t ValueReader::bytes(const Json& value) {
  const auto bytes = diagnostics_.value_of(value, parse_bytes(string(value, "a size such as \"25MiB\"")));
  return std::max<std::int64_t>(bytes.value_or(1), 1);
}

std::string_view ValueReader::string(const Json& value, std::string_view what) {
  if (!value.is(JsonType::string) || value.text().empty()) {
    error(value, fmt::format("expected {} as a string, found {}", what,
                             value.is(JsonType::string) ? "an empty one" : to_phrase(value.type())));
    return {};
  }
  return value.text();
}

Duration ValueReader::duration(const Json& value) {
  if (!value.is(JsonType::string)) {
    error(value, value.is_number()
                     ? "a duration needs a unit, such as \"5ms\""
                     : fmt::format("expected a duration such as \"5ms\", found {}", to_phrase(value.type())));
    return 0;
  }
  return diagnostics_.value_of(value, parse_duration(value.text())).value_or(0);
}

std::int64_t ValueReader::fraction(const Json& value) {
  if (!value.is(JsonType::string)) {
    error(value, fmt::format("expected a fraction such as \"10%\", found {}", to_phrase(value.type())));
    return 0;
  }
  return diagnostics_.value_of(value, parse_fraction(value.text())).value_or(0);
}

Dtype ValueReader::dtype(const Json& value) {
  const std::string_view name = string(value, "a dtype");
  const auto dtype = parse_dtype(name);
  if (!dtype && !name.empty()) {
    const auto known = names_of<Dtype>(dtype_count);
    error(value, fmt::format("unknown dtype \"{}\"; the dtypes are {}", name, fmt::join(known, ", ")),
          suggest(name, known));
  }
  return dtype.value_or(Dtype::float32);
}

ReduceOp ValueReader::reduce_op(const Json& value) {
  const std::string_view name = string(value, "a reduction");
  const auto op = parse_reduce_op(name);
  if (!op && !name.empty()) {
    const auto known = names_of<ReduceOp>(reduce_op_count);
    error(value, fmt::format("unknown reduce_op \"{}\"; the reductions are {}", name, fmt::join(known, ", ")),
          suggest(name, known));
  }
  return op.value_or(ReduceOp::sum);
}

std::optional<DeviceTemplate> ValueReader::device(const Json& value) {
  const std::string_view name = string(value, "a device");
  if (name.empty()) {
    return std::nullopt;
  }
  return diagnostics_.value_of(value, parse_device_template(name, facts_.world_size, facts_.local_ranks));
}

TableIndex ValueReader::shape(const Json& value) {
  constexpr std::size_t dimensions_max = 8;
  if (!value.is(JsonType::array) || value.size() > dimensions_max) {
    error(value, fmt::format("expected a list of at most {} sizes, such as [2, 3]", dimensions_max));
    return none;
  }
  std::vector<std::int64_t> sizes;
  std::int64_t numel = 1;
  for (Json size : value.children()) {
    if (!size.is(JsonType::integer) || size.integer() < 0) {
      error(size, "a size is a non-negative integer");
      return none;
    }
    sizes.push_back(size.integer());
    if (__builtin_mul_overflow(numel, size.integer(), &numel) || numel > numel_max) {
      error(value, fmt::format("a tensor holds at most {} elements", numel_max));
      return none;
    }
  }
  return add_entry(program_.shapes, Shape(std::span<const std::int64_t>(sizes)));
}

std::vector<Operand> ValueReader::integers(const Json& value, std::string_view what) {
  std::vector<Operand> operands;
  if (!value.is(JsonType::array)) {
    error(value, fmt::format("expected {}, found {}", what, to_phrase(value.type())));
    return operands;
  }
  for (Json element : value.children()) {
    operands.push_back(integer_in(element, 0, numel_max, "a size"));
  }
  return operands;
}

ObjectTemplate ValueReader::object_value(const Json& value) {
  switch (value.type()) {
    case JsonType::null:
      return {Object()};
    case JsonType::boolean:
      return {Object(value.boolean())};
    case JsonType::integer:
      return {Object(value.integer())};
    case JsonType::real:
      return {Object(value.real())};
    case JsonType::string:
      return {ObjectTemplate::TextOf{text(value)}};
    case JsonType::array: {
      ObjectTemplate::List list;
      for (Json element : value.children()) {
        list.push_back(object_value(element));
      }
      return {std::move(list)};
    }
    case JsonType::object: {
      ObjectTemplate::Dict dict;
      for (Json member : value.children()) {
        dict.push_back({std::string(member.key()), object_value(member)});
      }
      return {std::move(dict)};
    }
  }
  return {Object()};
}

Kwargs ValueReader::kwargs(const Json& value) {
  Kwargs kwargs;
  if (!value.is(JsonType::object)) {
    error(value, fmt::format("expected an object of keyword arguments, found {}", to_phrase(value.type())));
    return kwargs;
  }
  for (Json member : value.children()) {
    const std::string name(member.key());
    if (member.is(JsonType::boolean)) {
      kwargs[name] = member.boolean();
    } else if (member.is(JsonType::integer)) {
      kwargs[name] = member.integer();
    } else if (member.is(JsonType::real)) {
      kwargs[name] = member.real();
    } else if (member.is(JsonType::string)) {
      kwargs[name] = std::string(member.text());
    } else {
      error(member, fmt::format("a keyword argument is a boolean, a number or a string, not {}",
                                to_phrase(member.type())));
    }
  }
  return kwargs;
}

SlotIndex ValueReader::group(const Json& value) {
  const std::string_view name = string(value, "a group's name");
  if (name.empty() || name == "world") {
    return no_slot;
  }
  const bool exists = std::find(facts_.groups.begin(), facts_.groups.end(), name) != facts_.groups.end();
  if (!exists && !names_.makes_group(name)) {
    std::vector<std::string_view> known(facts_.groups.begin(), facts_.groups.end());
    known.insert(known.end(), names_.groups().begin(), names_.groups().end());
    known.push_back("world");
    error(value, fmt::format("unknown group \"{}\"; the groups are {}", name, fmt::join(known, ", ")),
          suggest(name, known));
    return no_slot;
  }
  return group_slot(name, !exists);
}

SlotIndex ValueReader::made_group(const Json& value) {
  return made_group_named(value, string(value, "a group's name"));
}

SlotIndex ValueReader::made_group_named(const Json& value, std::string_view name) {
  const bool exists =
      name == "world" || std::find(facts_.groups.begin(), facts_.groups.end(), name) != facts_.groups.end();
  if (name.empty() || exists) {
    error(value, name.empty()
                     ? std::string("a group needs a name")
                     : fmt::format("the group \"{}\" exists from the start; use another name", name));
    return no_slot;
  }
  return group_slot(name, true);
}

SlotIndex ValueReader::group_slot(std::string_view name, bool is_made) {
  const auto [entry, is_new] =
      group_slots_.try_emplace(std::string(name), static_cast<SlotIndex>(program_.groups.size()));
  if (is_new) {
    program_.groups.emplace_back(name);
    program_.makes_group.push_back(is_made);
  }
  return entry->second;
}

TableIndex ValueReader::object(const Json& value) {
  const std::string_view name = string(value, "an object's name");
  const auto found = std::find(facts_.objects.begin(), facts_.objects.end(), name);
  if (found == facts_.objects.end()) {
    if (!name.empty()) {
      error(value, fmt::format("unknown object \"{}\"; \"objects\" must define it", name),
            suggest_from(name, facts_.objects));
    }
    return none;
  }
  return static_cast<TableIndex>(found - facts_.objects.begin());
}

SlotIndex ValueReader::work(const Json& value) {
  const std::string_view name = string(value, "the name of an asynchronous call");
  const auto slot = names_.find_work(name);
  if (!slot && !name.empty()) {
    error(value, fmt::format("unknown name \"{}\"; an asynchronous call gets its name from \"as\"", name),
          names_.suggest_work(name));
  }
  return slot.value_or(no_slot);
}

SlotIndex ValueReader::variable(const Json& value) {
  const auto name = names_.find(string(value, "a variable's name"));
  return name ? name->slot : no_slot;
}

namespace {

// Returns the index of the name, which may be a new one.
SlotIndex slot_in(std::vector<std::string>& names, std::string_view name) {
  const auto known = std::find(names.begin(), names.end(), name);
  const auto slot = static_cast<SlotIndex>(known - names.begin());
  if (known == names.end()) {
    names.emplace_back(name);
  }
  return slot;
}

}  // namespace

SlotIndex ValueReader::event(const Json& value) {
  return slot_in(program_.events, string(value, "an event's name"));
}

SlotIndex ValueReader::stream(const Json& value) {
  const std::string_view name = string(value, "a stream's name");
  if (name == "default" || name.empty()) {
    return no_slot;
  }
  const SlotIndex slot = slot_in(program_.streams, name);
  if (slot + 1 >= streams_per_rank) {
    error(value, fmt::format("a rank has at most {} streams", streams_per_rank));
    return no_slot;
  }
  return slot;
}

SlotIndex ValueReader::tensor(const Json& value) {
  const std::string_view name = string(value, "a tensor's name");
  if (name.empty()) {
    return 0;
  }
  const auto found = names_.find(name);
  if (found && found->kind == Name::Kind::tensor) {
    return found->slot;
  }
  if (!is_name(name)) {
    error(value, not_a_name(name));
  } else if (!found && !is_reserved_name(name)) {
    error(value,
          fmt::format("unknown tensor \"{}\"; create it with {{\"fill\": \"{}\", \"value\": 0}} or give the "
                      "call a value or numel",
                      name, name),
          names_.suggest_like(name, Name::Kind::tensor));
  } else if (found) {
    error(value, fmt::format("\"{}\" is {}, not a tensor", name, to_phrase(found->kind)));
  }
  return 0;
}

std::optional<TensorName> ValueReader::find_tensor(std::string_view text) const {
  std::string_view name = text;
  std::int32_t element = -1;
  if (const std::size_t open = text.find('['); open != std::string_view::npos && text.ends_with(']')) {
    const std::string_view digits = text.substr(open + 1, text.size() - open - 2);
    const bool is_index = !digits.empty() && digits.size() < 9 &&
                          digits.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_index) {
      return std::nullopt;
    }
    name = text.substr(0, open);
    element = std::stoi(std::string(digits));
  }
  const auto found = names_.find(name);
  const bool fits =
      found && (found->kind == Name::Kind::list || (found->kind == Name::Kind::tensor && element < 0));
  return fits ? std::optional(TensorName{found->slot, found->kind == Name::Kind::list, element})
              : std::nullopt;
}

TensorName ValueReader::tensor_name(const Json& value) {
  const std::string_view name = string(value, "a tensor's name");
  if (const auto found = find_tensor(name)) {
    return *found;
  }
  if (!name.empty()) {
    const std::string_view near = names_.suggest_like(name, Name::Kind::tensor);
    error(value, fmt::format("unknown tensor \"{}\"", name),
          near.empty() ? names_.suggest_like(name, Name::Kind::list) : near);
  }
  return {0, false, -1};
}

void ValueReader::watch(const Json& entry) {
  if (const auto found = find_tensor(entry.key())) {
    program_.watched.push_back({*found, std::string(entry.key())});
    return;
  }
  const std::string_view near = names_.suggest_like(entry.key(), Name::Kind::tensor);
  diagnostics_.error_at_key(entry, fmt::format("unknown tensor \"{}\"", entry.key()),
                            near.empty() ? names_.suggest_like(entry.key(), Name::Kind::list) : near);
}

TableIndex ValueReader::intern(std::string_view text) {
  const auto found = interned_.find(text);
  if (found != interned_.end()) {
    return found->second;
  }
  program_.strings.emplace_back(text);
  const auto index = static_cast<TableIndex>(program_.strings.size() - 1);
  interned_.emplace(text, index);
  return index;
}

bool ValueReader::mentions_peer(const Operand& operand) const {
  return operand.kind == Operand::Kind::expression &&
         program_.expressions[operand.expression].mentions(builtin::peer);
}

}  // namespace rollcall::scenario
