#include "scenarios/record/rank_messages.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/values/value_access.h"

namespace rollcall::scenario {
namespace {

using traces::Value;

constexpr double seconds_max = 1e6;

// A script's text may not be UTF-8.
std::string text_of_line(const nlohmann::json& message) {
  return message.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Values in the store may be any bytes, but lines are text.
std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace

std::string failure_line(const Failure& failure, const FailureNotes& notes) {
  return text_of_line({{"error", failure.type},
                       {"message", failure.message},
                       {"refused", notes.refused},
                       {"ticket", notes.ticket},
                       {"last_resort", notes.last_resort}});
}

std::string death_line(const ProcessKilled& death) {
  return text_of_line({{"killed", death.signal}, {"message", death.text}});
}

StoreQuestion store_question(const Value& message) {
  const std::string_view name = traces::text_or_empty(find(message, "store"));
  const std::optional<StoreCall::Kind> kind = parse_store_kind(name);
  if (!kind) {
    throw traces::BadFile(0, fmt::format("the store has no {}", name));
  }
  StoreQuestion question;
  StoreCall& call = question.call;
  call.kind = *kind;
  call.op.kind = call.kind == StoreCall::Kind::wait ? OpKind::store_wait : OpKind::store_get;
  call.keys = traces::texts_of(find(message, "keys"));
  if (!is_sound(call)) {
    throw traces::BadFile(0, fmt::format("{} takes another number of keys", name));
  }
  call.prefix = traces::text_or_empty(find(message, "prefix"));
  call.value = from_hex(traces::text_or_empty(find(message, "value")));
  call.expected = from_hex(traces::text_or_empty(find(message, "expected")));
  call.amount = traces::number_or(find(message, "amount"), 0);
  if (const double limit = traces::real_or(find(message, "timeout"), 0); limit > 0) {
    call.timeout = duration_of(limit);
  }
  question.site = traces::script_site(find(message, "site"));
  return question;
}

nlohmann::json store_answer(const StoreReply& reply) {
  return {{"value", to_hex(reply.value)}, {"number", reply.number}};
}

Duration duration_of(double seconds) {
  return static_cast<Duration>(std::llround(std::clamp(seconds, 0.0, seconds_max) * 1e9));
}

}  // namespace rollcall::scenario
