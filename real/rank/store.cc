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

void Store::set(const std::string& key, const std::string& value) {
  ask_ranks({.kind = Kind::set, .keys = {key}, .value = value});
}

std::string Store::get(const std::string& key, std::optional<Duration> timeout) {
  return ask_ranks({.kind = Kind::get, .keys = {key}, .timeout = timeout}).value;
}

bool Store::has(const std::string& key) {
  return ask_ranks({.kind = Kind::check, .keys = {key}}).number != 0;
}

StoreReply Store::call(const StoreCall& call, const TorchTraits& torch) {
  if (std::optional<StoreReply> reply = ask(program_store, call)) {
    return *std::move(reply);
  }
  throw LostPeerError(store_timeout(torch, call.timeout.value_or(0), call.keys));
}

StoreReply Store::ask_ranks(const StoreCall& call) {
  if (std::optional<StoreReply> reply = ask(ranks_store, call)) {
    return *std::move(reply);
  }
  throw LostPeerError("Wait timeout");  // the text of torch's PrefixStore around a HashStore, which Gloo uses
}

std::optional<StoreReply> Store::ask(std::string_view store, const StoreCall& call) {
  send_all(hub_, frame({FrameKind::call, std::string(store), encode_value(call)}));
  const Frame answer = receive_frame(hub_);
  if (answer.kind == FrameKind::answer) {
    return decode_value<StoreReply>(answer.value);
  }
  if (answer.kind == FrameKind::late) {
    return std::nullopt;
  }
  if (answer.kind == FrameKind::refusal) {
    throw ValueError(answer.value);
  }
  throw std::runtime_error("the run's hub does not answer");
}

}  // namespace rollcall::real
