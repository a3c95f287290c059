#include "viz/phrases.h"

#include <fmt/format.h>

#include "sim/dist/expects.h"

namespace rollcall::viz {

namespace {

struct Unit {
  Duration size;
  std::string_view name;
};

// The largest unit that `duration` fills at least once; nanoseconds for everything smaller.
Unit unit_of(Duration duration) {
  constexpr Unit units[] = {{second, "s"}, {millisecond, "ms"}, {microsecond, "us"}};
  for (const Unit& unit : units) {
    if (duration >= unit.size) {
      return unit;
    }
  }
  return {nanosecond, "ns"};
}

// "25" for the thousandths 250: what stands behind the point.
std::string without_trailing_zeros(Duration thousandths) {
  std::string digits = fmt::format("{:03}", thousandths);
  digits.erase(digits.find_last_not_of('0') + 1);
  return digits;
}

}  // namespace

std::string duration_phrase(Duration duration) {
  const Unit unit = unit_of(duration);
  const Duration thousandths = unit.size == nanosecond ? 0 : duration % unit.size / (unit.size / 1000);
  const std::string decimals = without_trailing_zeros(thousandths);
  return fmt::format("{}{}{} {}", duration / unit.size, decimals.empty() ? "" : ".", decimals, unit.name);
}

std::string count_phrase(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

namespace {

std::string arguments(const Call& call) {
  std::string text;
  const auto add = [&text](const std::string& argument) { text += (text.empty() ? "" : ", ") + argument; };
  if (!call.dtype.empty()) {
    add(fmt::format("{} x {}", call.dtype, call.numel));
  }
  if (!call.ranks.empty()) {
    add("ranks " + call.ranks);
  }
  if (!call.reduce_op.empty()) {
    add(call.reduce_op);
  }
  if (call.root >= 0) {
    add(fmt::format("root {}", call.root));
  }
  return text.empty() ? text : " (" + text + ")";
}

}  // namespace

std::string call_with_arguments(const Call& call) {
  if (!call.key.empty()) {
    return call_phrase(call);
  }
  const std::string group = call.group == "world" ? "" : " on " + call.group;
  return fmt::format("{} #{}{}{}", call.op, call.seq, group, arguments(call));
}

std::string call_origin(const Call& call) {
  const std::string from = call.label.empty() ? "" : " from " + call.label;
  const std::string at = call.site.empty() ? "" : " at " + call.site;
  return from + at;
}

std::string inputs_phrase(std::int64_t fewest, std::int64_t most) {
  if (most < 0) {
    return {};
  }
  return fewest == most ? count_phrase(most, "input") : fmt::format("{} to {} inputs", fewest, most);
}

namespace {

std::string waiting_phrase(const RankClass& ranks) {
  std::string text = "waiting";
  if (ranks.call) {
    text += " in " + call_with_arguments(*ranks.call) + call_origin(*ranks.call);
  }
  if (!ranks.waits_for.empty()) {
    text += ", for " + ranks_phrase(ranks.waits_for);
  }
  return text;
}

}  // namespace

std::string state_phrase(const RankClass& ranks, const std::string& inputs) {
  const std::string after = inputs.empty() ? "" : " after " + inputs;
  switch (ranks.state) {
    case RankClass::State::finished:
      return "finished" + after;
    case RankClass::State::waiting:
      return waiting_phrase(ranks);
    case RankClass::State::raised:
      return "raised" + after + (after.empty() ? " " : ": ") + ranks.exception;
    case RankClass::State::crashed:
      return "crashed" + after + (ranks.exception.empty() ? "" : ": " + ranks.exception);
    case RankClass::State::running:
      return "still running" + after;
  }
  expects(false, "a rank's state is one of the enumerators");
  return {};
}

}  // namespace rollcall::viz
