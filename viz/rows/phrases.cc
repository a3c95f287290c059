#include "viz/rows/phrases.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/report/stopped.h"

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

// The digits after the decimal point: "25" for 250 thousandths.
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

std::string in_milliseconds(Duration duration) {
  return fmt::format("{}.{:03}", duration / millisecond, duration % millisecond / microsecond);
}

double in_microseconds(Duration duration) { return static_cast<double>(duration) / 1000; }

std::string count_phrase(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string success_phrase(const Report& report) {
  const std::string timeouts =
      report.timeouts == 0 ? "" : fmt::format("; {} timed out", count_phrase(report.timeouts, "wait"));
  return fmt::format("{} finished, {} in {} {}{}", count_phrase(report.world_size, "rank"),
                     count_phrase(report.ops, "call"), duration_phrase(report.simulated_time),
                     report.measured ? "on real ranks" : "of simulated time", timeouts);
}

std::string run_phrase(const Report& report) {
  return fmt::format("world size {}, backend {}{}, seed {}, {}, {} {}", report.world_size, report.backend,
                     report.torch.empty() ? "" : ", torch " + report.torch, report.seed,
                     count_phrase(report.ops, "call"), duration_phrase(report.simulated_time),
                     report.measured ? "measured" : "simulated");
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

std::string owed_phrase(const Place& place) {
  const bool is_send = place.call.op == "send";
  if (is_send || place.call.op == "recv") {
    return fmt::format("{} {}", is_send ? "recv from" : "send to", ranks_phrase(place.waiting));
  }
  const bool is_named = place.call.key.empty() && place.call.group != "world";
  return place.call.key.empty() && !is_named ? fmt::format("{} #{}", place.call.op, place.call.seq)
                                             : call_phrase(place.call);
}

std::string origin_phrase(std::string_view label, std::string_view site) {
  const std::string_view beside = label_beside_site(label, site);
  return (beside.empty() ? "" : fmt::format(" from {}", beside)) +
         (site.empty() ? "" : fmt::format(" at {}", site));
}

std::string call_origin(const Call& call) { return origin_phrase(call.label, call.site); }

std::string join_phrase(const JoinCost& cost) {
  return fmt::format("{} steps on {} with {}.{} of {} ranks on average", cost.steps, cost.group,
                     cost.mean_active_thousandths() / 1000, cost.mean_active_thousandths() / 100 % 10,
                     cost.size);
}

std::int64_t idle_permille(const JoinedRanks& ranks, Duration run) {
  return run == 0 ? 0 : static_cast<std::int64_t>((static_cast<__int128>(ranks.idle) * 1000 + run / 2) / run);
}

std::string joined_phrase(const JoinedRanks& ranks, Duration run) {
  const std::int64_t permille = idle_permille(ranks, run);
  return fmt::format("joined after {}, idle for {} ({} of the run), shadowed {}",
                     count_phrase(ranks.steps, "step"), duration_phrase(ranks.idle), percent_phrase(permille),
                     count_phrase(ranks.shadow_calls, "call"));
}

std::string bytes_phrase(std::int64_t bytes) {
  constexpr std::array<std::string_view, 6> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  std::int64_t scale = 1;
  while (unit + 1 < units.size() && bytes / scale >= 1024) {
    scale *= 1024;
    ++unit;
  }
  const std::int64_t whole = bytes / scale;
  const std::int64_t hundredths =
      static_cast<std::int64_t>(static_cast<__int128>(bytes % scale) * 100 / scale);
  return hundredths == 0 ? fmt::format("{} {}", whole, units[unit])
                         : fmt::format("{}.{:02} {}", whole, hundredths, units[unit]);
}

std::string exact_bytes_phrase(std::int64_t bytes, std::string_view gap) {
  constexpr std::array<std::string_view, 7> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (bytes % 1024 == 0 && bytes > 0 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}{}", bytes, gap, units[unit]);
}

std::string memory_phrase(const MemoryUse& use) {
  const auto total = [](const DeviceMemory& device) { return device.total(); };
  const std::int64_t most = total(std::ranges::max(use.devices, {}, total));
  const std::int64_t least = std::max<std::int64_t>(total(std::ranges::min(use.devices, {}, total)), 1);
  if (most == least) {
    return fmt::format("{} in DataParallel uses the same amount of memory on every GPU", use.object);
  }
  return fmt::format(
      "{} in DataParallel: the output device holds {}.{} times as much as the least loaded GPU and runs out "
      "of memory first; in DistributedDataParallel all GPUs hold the same",
      use.object, most / least, most * 10 / least % 10);
}

std::string device_memory_phrase(const DeviceMemory& memory) {
  std::string parts;
  const std::pair<const char*, std::int64_t> named[] = {
      {"parameters", memory.parameters},     {"gradients", memory.gradients},
      {"optimizer", memory.optimizer_state}, {"inputs", memory.inputs},
      {"activations", memory.activations},   {"outputs", memory.outputs}};
  for (const auto& [name, bytes] : named) {
    if (bytes > 0) {
      parts += fmt::format("{} {} {}", parts.empty() ? ":" : ",", name, bytes_phrase(bytes));
    }
  }
  return fmt::format("{}{}", bytes_phrase(memory.total()), parts);
}

std::string inputs_phrase(std::int64_t fewest, std::int64_t most) {
  if (most < 0) {
    return {};
  }
  return fewest == most ? count_phrase(most, "input") : fmt::format("{} to {} inputs", fewest, most);
}

std::string folded_text(const std::string& text) {
  constexpr std::size_t length_max = 200;
  const std::string line = text.substr(0, text.find('\n'));
  std::size_t end = line.size();
  if (end > length_max) {
    const std::size_t blank = line.rfind(' ', length_max);
    end = blank == std::string::npos ? length_max : blank;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) {
      --end;  // not inside a character
    }
  }
  return end < text.size() ? line.substr(0, end) + " ..." : text;
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
      if (ranks.exception.starts_with(fmt::format("{}: ", stopped_type))) {
        return ranks.exception.substr(stopped_type.size() + 2) + after;
      }
      return "raised" + after + (after.empty() ? " " : ": ") + ranks.exception;
    case RankClass::State::crashed:
      return "crashed" + after + (ranks.exception.empty() ? "" : ": " + ranks.exception);
    case RankClass::State::running:
      return ranks.exception.empty() ? "still running" + after : ranks.exception;
  }
  expects(false, "a rank's state is one of the enumerators");
  return {};
}

}  // namespace rollcall::viz
