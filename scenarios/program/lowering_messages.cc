// Lowering, the part about sends, receives and object collectives.

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/program/lowering.h"
#include "sim/base/expects.h"

namespace rollcall::scenario {
namespace {

struct ObjectFunction {
  std::string_view name;
  ObjectCall::Kind kind;
  bool takes_list;               // a list of objects, otherwise one object
  std::string_view root = {};    // the argument that names the root or peer
  bool has_default_root = true;  // rank 0
};
constexpr std::array<ObjectFunction, 6> object_functions{{
    {"all_gather_object", ObjectCall::Kind::all_gather, false, "dst"},
    {"gather_object", ObjectCall::Kind::gather, false, "dst"},
    {"broadcast_object_list", ObjectCall::Kind::broadcast, true, "src"},
    {"scatter_object_list", ObjectCall::Kind::scatter, true, "src"},
    {"send_object_list", ObjectCall::Kind::send, true, "dst", false},
    {"recv_object_list", ObjectCall::Kind::recv, true, "src", false},
}};

}  // namespace

void Lowering::lower_message(const Statement& statement) {
  emit(statement.node(), action::Exchange{add_entry(program_->messages, read_message(statement))});
}

// A message's tensor is in use until the call has been waited for, so only those of blocking calls are
// shared.
MessageCall Lowering::read_message(const Statement& statement) {
  MessageCall call;
  const std::string_view key = statement.rule().key;
  const bool sends = key == "send" || key == "isend";
  call.kind = sends ? OpKind::send : OpKind::recv;
  call.blocks = key == "send" || key == "recv";
  if (!statement.head().is(JsonType::string) && !statement.head().is(JsonType::object)) {
    read_.error(statement.head(), fmt::format("expected a tensor's name or an object of arguments, found {}",
                                              to_phrase(statement.head().type())));
    return call;
  }
  if (sends) {
    const auto peer = require(statement, "dst");
    call.peer = peer ? read_.rank(*peer) : Operand::of(0);
  } else {
    read_.given(statement.find("src"), call.peer, &ValueReader::rank);
  }
  if (const auto tag = statement.find("tag")) {
    call.tag = read_.integer_in(*tag, 0, INT32_MAX, "a tag");
  }
  read_.given(statement.find("group"), call.group, &ValueReader::group);
  call.label = read_label(statement);
  read_.given(statement.find("stream"), call.stream, &ValueReader::stream);
  if (const auto name = statement.find("as")) {
    if (call.blocks && in_thread_) {
      read_.error(*name, "the source of a receive inside \"parallel\" is not supported by this version");
    } else if (call.blocks) {
      call.source = read_.variable(*name);
    } else {
      call.work = read_.work(*name);
    }
  }
  call.tensor = read_tensor(statement, call.blocks && !in_thread_);
  return call;
}

void Lowering::lower_batch(const Statement& statement) {
  MessageBatch batch;
  batch.first = static_cast<TableIndex>(program_->messages.size());
  if (!statement.head().is(JsonType::array)) {
    read_.error(statement.head(), "expected a list of isend and irecv statements");
    return;
  }
  for (Json node : statement.head().children()) {
    const auto message = Statement::recognize(node);
    const bool fits = message && (message->rule().key == "isend" || message->rule().key == "irecv");
    if (!fits) {
      read_.error(node, "a batch consists of isend and irecv");
      continue;
    }
    check_arguments(*message);
    for (const char* argument : {"as", "label", "stream"}) {
      if (const auto own = message->find(argument)) {
        read_.error(
            *own,
            fmt::format("a batch has one \"{}\" for all its messages: put it next to \"batch_isend_irecv\"",
                        argument));
      }
    }
    program_->messages.push_back(read_message(*message));
    if (!program_->messages.back().peer) {
      read_.error(node, "a message of a batch must name its peer");
    }
  }
  batch.count = static_cast<std::uint32_t>(program_->messages.size() - batch.first);
  if (const auto work = statement.find("as")) {
    batch.work = read_.work(*work);
  }
  read_.given(statement.find("stream"), batch.stream, &ValueReader::stream);
  batch.label = read_label(statement);
  emit(statement.node(), action::ExchangeBatch{add_entry(program_->batches, batch)});
}

void Lowering::lower_objects(const Statement& statement) {
  ObjectCall call;
  const auto* const function =
      std::ranges::find(object_functions, statement.rule().key, &ObjectFunction::name);
  expects(function != object_functions.end(), "every statement about objects has a row");
  call.kind = function->kind;
  if (!statement.head().is(JsonType::object)) {
    read_.error(statement.head(),
                fmt::format("expected an object of arguments, found {}", to_phrase(statement.head().type())));
    return;
  }
  if (const auto objects = require(statement, function->takes_list ? "objects" : "object")) {
    if (!function->takes_list) {
      call.objects.push_back(read_.object_value(*objects));
    } else if (!objects->is(JsonType::array)) {
      read_.error(*objects, fmt::format("expected a list of objects, found {}", to_phrase(objects->type())));
    } else {
      for (Json object : objects->children()) {
        call.objects.push_back(read_.object_value(object));
      }
    }
  }
  const auto root = call.kind == ObjectCall::Kind::send ? require(statement, function->root)
                                                        : statement.find(function->root);
  if (root) {
    call.root = read_.rank(*root);
  } else if (function->has_default_root) {
    call.root = Operand::of(0);
  }
  read_.given(statement.find("group"), call.group, &ValueReader::group);
  call.label = read_label(statement);
  if (const auto output = statement.find("output")) {
    const auto name = names_.find(read_.string(*output, "the output's name"));
    call.output = name ? name->slot : no_slot;
  }
  emit(statement.node(), action::ExchangeObjects{add_entry(program_->object_calls, std::move(call))});
}

}  // namespace rollcall::scenario
