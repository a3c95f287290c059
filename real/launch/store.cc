#include "real/launch/store.h"

#include <stdexcept>

#include "real/launch/encode_store.h"
#include "real/launch/frames.h"
#include "real/launch/recorder.h"
#include "real/launch/sockets.h"
#include "sim/dist/error.h"

namespace rollcall::real {

using Kind = StoreCall::Kind;

void Store::set(const std::string& key, const std::string& value) {
  ask(ranks_store, {.kind = Kind::set, .keys = {key}, .value = value});
}

std::string Store::get(const std::string& key, std::optional<Duration> timeout) {
  return ask(ranks_store, {.kind = Kind::get, .keys = {key}, .timeout = timeout}).value;
}

StoreReply Store::call(const StoreCall& call) { return ask(program_store, call); }

StoreReply Store::ask(std::string_view store, const StoreCall& call) {
  send_all(hub_, frame({FrameKind::call, std::string(store), encode_value(call)}));
  const Frame answer = receive_frame(hub_);
  switch (answer.kind) {
    case FrameKind::answer:
      return decode_value<StoreReply>(answer.value);
    case FrameKind::refusal:
      throw ValueError(answer.value);
    case FrameKind::late:
      throw LostPeerError("Socket Timeout");  // TCPStore's words
    case FrameKind::call:
    case FrameKind::log:
      break;
  }
  throw std::runtime_error("the hub of the run does not answer a question");
}

}  // namespace rollcall::real
