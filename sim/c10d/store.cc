#include "sim/c10d/store.h"

#include <fmt/format.h>

#include "sim/c10d/rank_context.h"
#include "sim/torch/torch_traits.h"

namespace rollcall {
namespace {

StoreCall start(StoreCall::Kind kind, const std::string& prefix, const std::vector<std::string>& keys,
                const Site& site) {
  const RankContext& self = this_rank();
  StoreCall call;
  call.kind = kind;
  call.op.kind = kind == StoreCall::Kind::wait ? OpKind::store_wait : OpKind::store_get;
  call.op.rank = self.rank;
  call.op.scope = self.scope;
  call.op.shadow = self.shadowing;
  call.op.site = site;
  for (const std::string& key : keys) {
    call.keys.push_back(prefix + key);
  }
  return call;
}

StoreReply ask(const StoreCall& call) {
  const RankContext& self = this_rank();
  spend_step(self);
  return self.backend->store(call);
}

}  // namespace

void Store::set(const std::string& key, const std::string& value, Site site) const {
  StoreCall call = start(StoreCall::Kind::set, prefix_, {key}, site);
  call.value = value;
  ask(call);
}

std::string Store::get(const std::string& key, const std::optional<std::string>& want, Site site) const {
  StoreCall call = start(StoreCall::Kind::get, prefix_, {key}, site);
  call.timeout = timeout_;
  call.want = want;
  return ask(call).value;
}

std::int64_t Store::add(const std::string& key, std::int64_t amount, Site site) const {
  StoreCall call = start(StoreCall::Kind::add, prefix_, {key}, site);
  call.amount = amount;
  return ask(call).number;
}

void Store::count(const std::string& key, std::int64_t amount, Site site) const {
  StoreCall call = start(StoreCall::Kind::add, prefix_, {key}, site);
  call.amount = amount;
  call.is_blind = true;
  ask(call);
}

void Store::wait(const std::vector<std::string>& keys, std::optional<Duration> timeout, Site site) const {
  StoreCall call = start(StoreCall::Kind::wait, prefix_, keys, site);
  call.timeout = timeout ? timeout : timeout_;
  ask(call);
}

bool Store::check(const std::vector<std::string>& keys, Site site) const {
  return ask(start(StoreCall::Kind::check, prefix_, keys, site)).number != 0;
}

std::string Store::compare_set(const std::string& key, const std::string& expected,
                               const std::string& desired, Site site) const {
  StoreCall call = start(StoreCall::Kind::compare_set, prefix_, {key}, site);
  call.expected = expected;
  call.value = desired;
  return ask(call).value;
}

bool Store::delete_key(const std::string& key, Site site) const {
  return ask(start(StoreCall::Kind::delete_key, prefix_, {key}, site)).number != 0;
}

std::int64_t Store::num_keys(Site site) const {
  return ask(start(StoreCall::Kind::num_keys, prefix_, {}, site)).number;
}

RuntimeError store_timeout(const TorchTraits& torch, Duration limit, const std::vector<std::string>& keys) {
  std::vector<std::string> listed;
  for (const std::string& key : keys) {
    listed.push_back("/" + key);
  }
  return {torch.store_timeout.type,
          fmt::format(fmt::runtime(torch.store_timeout.text), limit / millisecond, fmt::join(listed, ", "))};
}

}  // namespace rollcall
