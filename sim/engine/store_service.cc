#include "sim/engine/store_service.h"

namespace rollcall::sim {

void StoreService::ask(Rank rank, StoreRequest& request) {
  const auto at = static_cast<std::size_t>(rank);
  run_.notes->store_waits.resize(run_.ranks());
  requested_.resize(run_.ranks());
  run_.notes->store_waits[at] = {request.call.op, request.call.keys};
  request.since = run_.now;
  request.number = requested_[at]++;
  const bool is_new = requests_.emplace(rank, &request).second;
  expects(is_new, "a rank that waits for the store asks for nothing else");
  moved_ = true;
}

void StoreService::give_up(Rank rank) {
  expects(requests_.contains(rank), "who gives up waits for the store");
  requests_.erase(rank);
}

void StoreService::serve_all() {
  if (run_.options.decisions != nullptr && !requests_.empty()) {
    run_.options.decisions->kept_order();
  }
  while (moved_) {  // serves in the order of ranks, and forgets the requests that it served
    const std::size_t served =
        std::erase_if(requests_, [this](const auto& each) { return serve(each.first, *each.second); });
    moved_ = served > 0;
  }
}

bool StoreService::is_servable(Rank rank, const StoreCall& call) {
  std::vector<std::string> awaited = state_.awaited_by(call);
  if (awaited.empty()) {
    return true;
  }
  run_.notes->store_waits[static_cast<std::size_t>(rank)].keys = std::move(awaited);
  return false;
}

void StoreService::serve_one(Rank rank) {
  const auto request = requests_.find(rank);
  expects(request != requests_.end(), "who is served waits for the store");
  const bool served = serve(rank, *request->second);
  expects(served, "only what can be served is let go ahead");
  requests_.erase(request);
}

// False if the rank has to wait.
bool StoreService::serve(Rank rank, StoreRequest& request) {
  const StoreCall& call = request.call;
  if (!is_servable(rank, call)) {
    return false;
  }
  try {
    request.reply = state_.apply(call);
    if (sets_key(call)) {
      run_.notes->set_key(rank, call.keys.front());
    } else if (call.kind == StoreCall::Kind::delete_key && request.reply.number > 0) {
      run_.notes->delete_key(rank, call.keys.front());
    }
  } catch (const Error& error) {
    request.error = error;
  }
  run_.learned(rank, request.reply.value, request.reply.number, request.error.has_value());
  if (call.want && request.reply.value != *call.want) {
    run_.notes->incidents.store(
        {run_.now, rank, call.op, call.keys.front(), request.reply.value, *call.want});
  }
  run_.release(rank,
               run_.now + run_.host_cost.of(call.op.kind, static_cast<std::int64_t>(call.value.size()), 2));
  return true;
}

}  // namespace rollcall::sim
