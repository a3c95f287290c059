#include "real/rank/store.h"

#include <stdexcept>

#include "real/rank/encode_store.h"
#include "real/rank/frames.h"
#include "real/rank/recorder.h"
#include "real/rank/sockets.h"
#include "sim/base/error.h"
#include "sim/c10d/store.h"

namespace rollcall::real {

using Kind = StoreCall::Kind;

namespace {

// The text of torch's PrefixStore around a HashStore, which Gloo uses.
const RuntimeError wait_timeout("Wait timeout");

}  // namespace

void Store::set(const std::string& key, const std::string& value) {
  ask(ranks_store, {.kind = Kind::set, .keys = {key}, .value = value}, wait_timeout);
}

std::string Store::get(const std::string& key, std::optional<Duration> timeout) {
  return ask(ranks_store, {.kind = Kind::get, .keys = {key}, .timeout = timeout}, wait_timeout).value;
}

bool Store::has(const std::string& key) {
  return ask(ranks_store, {.kind = Kind::check, .keys = {key}}, wait_timeout).number != 0;
}

StoreReply Store::call(const StoreCall& call, const TorchTraits& torch) {
  return ask(program_store, call, store_timeout(torch, call.timeout.value_or(0), call.keys));
}

// `late`: the error for keys that are not set in time.
StoreReply Store::ask(std::string_view store, const StoreCall& call, const RuntimeError& late) {
  send_all(hub_, frame({FrameKind::call, std::string(store), encode_value(call)}));
  const Frame answer = receive_frame(hub_);
  switch (answer.kind) {
    case FrameKind::answer:
      return decode_value<StoreReply>(answer.value);
    case FrameKind::refusal:
      throw ValueError(answer.value);
    case FrameKind::late:
      throw LostPeerError(late);
    case FrameKind::call:
    case FrameKind::log:
    case FrameKind::challenge:
    case FrameKind::proof:
    case FrameKind::welcome:
      break;
  }
  throw std::runtime_error("the run's hub does not answer");
}

}  // namespace rollcall::real
