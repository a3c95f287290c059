// Lowering, the part about torch.distributed.checkpoint.

#include <algorithm>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/program/lowering.h"

namespace rollcall::scenario {

// A model of the file, or a tensor.
void Lowering::read_saved(const Json& name, CheckpointCall& call) {
  const std::string_view text = read_.string(name, "a tensor's or a model's name");
  const bool is_object = std::ranges::find(facts_.objects, text) != facts_.objects.end();
  if (!is_object) {
    call.tensors.push_back(read_.tensor(name));
    return;
  }
  const TableIndex object = read_.object(name);
  if (program_->is<ModelObject, ShardedObject, FullyShardedObject>(object)) {
    call.objects.push_back(object);
  } else {
    read_.error(
        name,
        fmt::format("\"{}\" has no state to save: models of kind ddp, fsdp and fully_shard have", text));
  }
}

void Lowering::lower_checkpoint(const Statement& statement) {
  CheckpointCall call;
  call.saves = statement.rule().key == "dcp.save";
  const auto read_names = [&](const Json& names, const auto& read) {
    if (!names.is(JsonType::array)) {
      read(names);
      return;
    }
    for (Json name : names.children()) {
      read(name);
    }
  };
  read_names(statement.head(), [&](const Json& name) { read_saved(name, call); });
  if (const auto shards = statement.find("shards")) {
    read_names(*shards, [&](const Json& name) { call.shards.push_back(read_.tensor(name)); });
  }
  if (const auto id = require(statement, "checkpoint_id")) {
    read_.string(*id, "the checkpoint's folder");
    call.checkpoint_id = read_.text(*id);
  }
  read_.given(statement.find("group"), call.group, &ValueReader::group);
  read_.given(statement.find("no_dist"), call.no_dist, &ValueReader::flag);
  call.label = statement.find("label") ? read_label(statement) : read_.intern(statement.rule().key);
  emit(statement.node(), action::Checkpoint{add_entry(program_->checkpoint_calls, std::move(call))});
}

}  // namespace rollcall::scenario
