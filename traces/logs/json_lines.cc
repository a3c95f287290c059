#include "traces/logs/json_lines.h"

#include <array>

#include <fmt/core.h>

#include "traces/logs/lines.h"
#include "traces/values/json_value.h"
#include "traces/values/value.h"

namespace rollcall::traces {

namespace {

// The members that have the message: of Docker and Fluent Bit; of most loggers and Logstash; of journald; of zap and
// logrus; of structlog; of Google Cloud; of Loki.
constexpr std::array<std::string_view, 8> message_names = {"log", "message", "@message",    "MESSAGE",
                                                           "msg", "event",   "textPayload", "line"};

bool may_be_object(std::string_view line) { return line.starts_with("{\"") && line.ends_with('}'); }

const Value* text_in(const Value& object) {
  for (const std::string_view name : message_names) {
    if (const Value* text = find(object, name); text != nullptr && text->is(Value::Kind::text)) {
      return text;
    }
  }
  return nullptr;
}

struct Message {
  std::string_view text;
  std::string prefix;  // of each of its lines
};

// Empty if the line is not such an object. Borrows from the arena.
std::optional<Message> message_in(std::string_view line, Arena& arena) {
  arena.reset();
  try {
    const Value object = read_json(line, arena);
    if (!object.is(Value::Kind::dict)) {
      return std::nullopt;
    }
    // Google Cloud's, of a logger that writes JSON itself.
    const Value* payload = find(object, "jsonPayload");
    const Value& fields = payload != nullptr && payload->is(Value::Kind::dict) ? *payload : object;
    const Value* text = text_in(fields);
    if (text == nullptr) {
      return std::nullopt;
    }
    const Value* rank = find(fields, "rank");
    const bool has_rank = rank != nullptr && rank->is(Value::Kind::integer) && rank->integer >= 0 &&
                          rank->integer < ranks_max && !contains(text->as_text(), "[rank");
    return Message{text->as_text(), has_rank ? fmt::format("[rank{}]: ", rank->integer) : ""};
  } catch (const BadFile&) {
    return std::nullopt;  // it only looks like one, such as a dictionary of Python
  }
}

}  // namespace

std::optional<UnpackedLog> unpack_json_lines(std::string_view bytes) {
  if (!bytes.starts_with("{\"") && !contains(bytes, "\n{\"")) {
    return std::nullopt;
  }
  constexpr std::size_t line_bytes_max = std::size_t{64} << 20;
  Arena arena(line_bytes_max);
  UnpackedLog log;
  bool has_message = false;
  const auto add = [&log](std::string_view line, std::int64_t number) {
    log.text.append(line) += '\n';
    log.lines.push_back(number);
  };
  for (Lines lines(bytes); lines.next();) {
    const std::optional<Message> message =
        may_be_object(lines.line()) ? message_in(lines.line(), arena) : std::nullopt;
    if (!message) {
      add(lines.line(), lines.number());
      continue;
    }
    has_message = true;
    for (Lines parts(message->text); parts.next();) {
      add(message->prefix + std::string(parts.line()), lines.number());
    }
  }
  return has_message ? std::optional(std::move(log)) : std::nullopt;
}

}  // namespace rollcall::traces
