#include "sim/match/slot_calls.h"

#include <algorithm>
#include <cstring>

#include "sim/base/expects.h"

namespace rollcall::sim {

std::vector<Op> calls_of(const check::GroupMatcher& matcher, const check::Slot& slot) {
  expects(slot.arrived == matcher.size(), "every member of a full slot has a call");
  std::vector<Op> calls;
  for (Rank rank = 0; rank < matcher.size(); ++rank) {
    calls.push_back(matcher.op_of(slot, rank));
  }
  return calls;
}

void give_all(check::Slot& slot, std::size_t members, check::Fate fate) {
  slot.fates.assign(members, fate);
  slot.failures.assign(members, std::string());
}

std::int64_t bytes_of(const Op& op) { return op.numel * static_cast<std::int64_t>(size_of(op.dtype)); }

std::vector<std::byte> read_bytes(Storage& storage) {
  const std::byte* bytes = storage.make_dense();
  return {bytes, bytes + storage.bytes()};
}

void write_bytes(Storage& storage, const std::byte* bytes, std::size_t count) {
  if (count > 0) {
    std::memcpy(storage.make_dense(), bytes, std::min(count, static_cast<std::size_t>(storage.bytes())));
    storage.collapse_if_uniform();
  }
}

void copy_front(const Op& send, const Op& receive) {
  expects(send.kind == OpKind::send && receive.kind == OpKind::recv,
          "a message goes from a send to a receive");
  Storage& source = *send.tensors.input;
  Storage& target = *receive.tensors.input;
  if (source.form != Storage::Form::meta && target.form != Storage::Form::meta) {
    const std::vector<std::byte> sent = read_bytes(source);
    write_bytes(target, sent.data(), sent.size());
  }
}

}  // namespace rollcall::sim
