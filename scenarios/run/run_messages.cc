// The interpreter, the part about sends, receives and object collectives.

#include <map>
#include <optional>
#include <span>
#include <utility>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "sim/c10d/objects.h"
#include "sim/c10d/op_table.h"
#include "sim/c10d/p2p.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/stream.h"

namespace rollcall::scenario {
namespace {

// Nothing if the statement names none: a message from anyone.
std::optional<Rank> peer_of(const RankFrame& frame, const Operand& peer) {
  return peer ? std::optional(frame.rank_of(peer)) : std::nullopt;
}

PointToPointOptions options_of(RankFrame& frame, const MessageCall& call) {
  PointToPointOptions options{.group = frame.group(call.group)};
  if (call.tag) {
    options.tag = static_cast<std::int32_t>(frame.evaluate(call.tag));
  }
  return options;
}

TensorUse use_of(const MessageCall& call, SlotIndex handle, Site site, std::optional<CallQueue> queue) {
  TensorUse use{.tensor = {call.tensor.slot}, .writes = call.kind == OpKind::recv, .work = handle};
  use.op.kind = call.kind;
  use.op.scope = this_rank().scope;
  use.op.site = site;
  use.queue = queue;
  return use;
}

// Makes the tensor of a message, of which `use` is about to begin.
Tensor& tensor_of(RankFrame& frame, const MessageCall& call, const TensorUse& use) {
  if (call.tensor.value && !call.tensor.scratch) {
    frame.touch(use.tensor, Observation::Access::write, use.op.site);
  } else if (frame.group(call.group).is_member()) {
    frame.touch(use);
  }
  return frame.make(call.tensor);
}

// The message's tensor is in use until its handle has been waited for.
void note_use(RankFrame& frame, const TensorUse& use, const Work& work, bool is_awaited = false) {
  if (!work.is_nothing()) {  // outside the group, nothing happened
    frame.use(with_work(use, work, frame.tensors[use.tensor.slot]), is_awaited);
  }
}

}  // namespace

void run_message(RankFrame& frame, const MessageCall& call, Site site, std::vector<Work>* unfinished) {
  const LabelScope scope(frame, call.label);
  const NamedStreamScope stream(frame, call.stream);
  const std::optional<Rank> peer = peer_of(frame, call.peer);
  const TensorUse use = use_of(call, call.blocks ? no_slot : call.work, site,
                               peer ? frame.queue_of(frame.group(call.group), *peer) : std::nullopt);
  const Tensor& tensor = tensor_of(frame, call, use);
  const PointToPointOptions options = options_of(frame, call);
  const bool orders_stream = call.blocks && frame.has_streams();
  if (call.blocks && !orders_stream && (unfinished == nullptr || !frame.calls_block())) {
    if (call.kind == OpKind::send) {
      send(tensor, *peer, options, site);
    } else if (const Rank source = recv(tensor, peer, options, site); call.source != no_slot) {
      frame.set(call.source, source);
    }
    block_host(frame);
    return;
  }
  const Work work =
      call.kind == OpKind::send ? isend(tensor, *peer, options, site) : irecv(tensor, peer, options, site);
  if (orders_stream) {
    work.wait();
    note_use(frame, use, work, true);
    return;
  }
  if (call.blocks) {
    unfinished->push_back(work);
    return;
  }
  frame.keep_work(call.work, work);
  note_use(frame, use, work);
}

// The messages of a batch are under way at the same time, also on nccl. Notes the tensors that they work on, and
// reports one that two of them share, unless both only read it.
void note_batch(RankFrame& frame, std::span<const MessageCall> calls, const std::vector<TensorUse>& uses,
                const std::vector<Work>& works) {
  std::map<SlotIndex, std::size_t> users;    // by tensor: the first message that works on it
  std::map<SlotIndex, std::size_t> writers;  // the first that receives into it
  for (std::size_t i = 0; i < works.size(); ++i) {
    const TensorUse& use = uses[i];
    const SlotIndex tensor = use.tensor.slot;
    const std::map<SlotIndex, std::size_t>& rivals = use.writes ? users : writers;
    if (const auto rival = rivals.find(tensor); rival != rivals.end() && !calls[i].tensor.scratch) {
      frame.report_touch(with_work(uses[rival->second], works[rival->second], frame.tensors[tensor]),
                         use.writes ? Observation::Access::write : Observation::Access::read, use.op.site,
                         row_of(use.op.kind).name);
    }
    users.emplace(tensor, i);
    if (use.writes) {
      writers.emplace(tensor, i);
    }
    note_use(frame, use, works[i]);
  }
}

void run_batch(RankFrame& frame, const MessageBatch& batch, Site site) {
  const LabelScope scope(frame, batch.label);
  const NamedStreamScope stream(frame, batch.stream);
  const auto calls = std::span(frame.program().messages).subspan(batch.first, batch.count);
  std::vector<PointToPoint> messages;
  std::vector<TensorUse> uses;
  for (const MessageCall& call : calls) {
    uses.push_back(use_of(call, batch.work, site, frame.queue_of(frame.group(call.group))));
    messages.push_back(
        {call.kind, tensor_of(frame, call, uses.back()), frame.rank_of(call.peer), options_of(frame, call)});
  }
  std::vector<Work> works = batch_isend_irecv(messages, site);
  if (works.size() == calls.size()) {
    note_batch(frame, calls, uses, works);
  }
  frame.keep_works(batch.work, std::move(works));
}

// ---- Objects ----

namespace {

Object object_of(const RankFrame& frame, const ObjectTemplate& pattern) {
  if (const auto* object = std::get_if<Object>(&pattern.value)) {
    return *object;
  }
  if (const auto* text = std::get_if<ObjectTemplate::TextOf>(&pattern.value)) {
    return Object(compose(frame, text->text));
  }
  if (const auto* list = std::get_if<ObjectTemplate::List>(&pattern.value)) {
    ObjectList elements;
    for (const ObjectTemplate& element : *list) {
      elements.push_back(object_of(frame, element));
    }
    return Object::list(std::move(elements));
  }
  Object::Dict entries;
  for (const auto& [name, entry] : std::get<ObjectTemplate::Dict>(pattern.value)) {
    entries.emplace_back(name, object_of(frame, entry));
  }
  return Object::dict(std::move(entries));
}

}  // namespace

void run_objects(RankFrame& frame, const ObjectCall& call, Site site) {
  const LabelScope scope(frame, call.label);
  const ProcessGroup group = frame.group(call.group);
  const std::optional<Rank> peer = peer_of(frame, call.root);
  const Rank root = peer.value_or(0);
  ObjectList given;
  for (const ObjectTemplate& pattern : call.objects) {
    given.push_back(object_of(frame, pattern));
  }
  ObjectList received;
  const auto places = static_cast<std::size_t>(group.is_member() ? group.size() : 0);
  switch (call.kind) {
    case ObjectCall::Kind::all_gather:
      received.resize(places);
      all_gather_object(received, given.front(), group, site);
      break;
    case ObjectCall::Kind::broadcast:
      received = given;  // overwritten on the other ranks
      broadcast_object_list(received, root, group, site);
      break;
    case ObjectCall::Kind::gather:
      received.resize(root == frame.rank() ? places : 0);
      gather_object(given.front(), received.empty() ? nullptr : &received, root, group, site);
      break;
    case ObjectCall::Kind::scatter:
      received.resize(1);
      scatter_object_list(received, given, root, group, site);
      break;
    case ObjectCall::Kind::send:
      send_object_list(given, root, group, site);
      break;
    case ObjectCall::Kind::recv:
      received = given;  // overwritten
      recv_object_list(received, peer, group, site);
      break;
  }
  if (call.output != no_slot) {
    frame.objects[call.output] = std::move(received);
  }
}

}  // namespace rollcall::scenario
