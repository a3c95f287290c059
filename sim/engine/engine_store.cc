// The engine's part about the store. A rank that asks parks until every rank has come to rest, and is served
// then, in rank order: the order in which ranks ran cannot decide who sets a key first.

#include "sim/engine/engine.h"
#include "sim/engine/park_in_channel.h"

namespace rollcall::sim {

using check::Channel;

StoreReply Engine::store(const StoreCall& call) {
  if (refuses_calls()) [[unlikely]] {
    return {};
  }
  ++ops_;
  const Rank rank = scheduler_->running();
  notes_->store_waits.resize(static_cast<std::size_t>(options_.world_size));
  notes_->store_waits[static_cast<std::size_t>(rank)] = {call.op, call.keys};
  requested_.resize(static_cast<std::size_t>(options_.world_size));
  StoreRequest request{&call, now_, requested_[static_cast<std::size_t>(rank)]++, {}, {}};
  store_requests_[rank] = &request;
  store_moved_ = true;
  const ParkInChannel wait(status_[static_cast<std::size_t>(rank)], world_group, Channel::store, rank, rank);
  limit_next_wait(call.timeout);
  if (recorder_) {
    recorder_->entered(rank, members_.front(), call, now_);
  }
  suspend_rank(nullptr);
  if (request.error) {
    raise(*request.error, call.op.site);
  }
  return request.reply;
}

// Until nobody gets any further: what one rank sets another may have waited for.
void Engine::serve_store() {
  if (options_.decisions != nullptr && !store_requests_.empty()) {
    options_.decisions->kept_order();
  }
  while (store_moved_) {
    store_moved_ = false;
    for (auto request = store_requests_.begin(); request != store_requests_.end();) {
      if (serve(request->first, *request->second)) {
        store_moved_ = true;
        request = store_requests_.erase(request);
      } else {
        ++request;
      }
    }
  }
}

// False when the rank has to wait, and then says for what.
bool Engine::is_servable(Rank rank, const StoreCall& call) {
  if (call.kind == StoreCall::Kind::get || call.kind == StoreCall::Kind::wait) {
    std::vector<std::string> missing = store_.missing(call.keys);
    if (!missing.empty()) {
      notes_->store_waits[static_cast<std::size_t>(rank)].keys = std::move(missing);
      return false;
    }
  }
  return true;
}

// False when the rank has to wait.
bool Engine::serve(Rank rank, StoreRequest& request) {
  const StoreCall& call = *request.call;
  if (!is_servable(rank, call)) {
    return false;
  }
  try {
    request.reply = store_.apply(call);
  } catch (const Error& error) {
    request.error = error;
  }
  if (call.want && request.reply.value != *call.want) {
    notes_->incidents.store({now_, rank, call.op, call.keys.front(), request.reply.value, *call.want});
  }
  release(rank, now_ + host_cost_.of(call.op.kind, static_cast<std::int64_t>(call.value.size()), 2));
  return true;
}

}  // namespace rollcall::sim
