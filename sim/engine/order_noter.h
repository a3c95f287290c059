#pragma once

// OrderNoter: forwards all calls, and records the order in which its rank uses its groups, for check::warn_about_order.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/c10d/forwarding_backend.h"
#include "sim/c10d/rank_context.h"
#include "sim/judge/order_warning.h"

namespace rollcall::sim {

class OrderNoter final : public ForwardingBackend {
 public:
  // `orders` is borrowed, and has an entry for every rank.
  OrderNoter(Backend& inner, check::CallOrders& orders) : ForwardingBackend(inner), orders_(orders) {}

  Work issue(const Op& op) override {
    const Work work = inner().issue(op);
    note(op);
    return work;
  }
  void call(const Op& op) override {
    inner().call(op);
    note(op);
  }
  ProcessGroup find_group(std::string_view name) override { return known(inner().find_group(name)); }
  ProcessGroup manage(GroupCall call) override { return known(inner().manage(std::move(call))); }

 private:
  // While the rank knows no group but the world, its calls are only counted. Orders that are too long to be compared
  // are not kept.
  void note(const Op& op) {
    if (is_point_to_point(op.kind)) {
      return;
    }
    if (!has_groups_) {
      ++world_calls_;
    } else if (std::ssize(order()) <= check::ordered_calls_max) {
      order().push_back(op.group);
    }
  }

  ProcessGroup known(const ProcessGroup& group) {
    if (group.is_member()) {
      orders_.names[group.id()] = group.name();
      if (!std::exchange(has_groups_, true)) {
        order().assign(std::min(world_calls_, check::ordered_calls_max + 1), world_group);
      }
    }
    return group;
  }

  std::vector<GroupId>& order() { return orders_.ranks[static_cast<std::size_t>(this_rank().rank)]; }

  check::CallOrders& orders_;
  std::int64_t world_calls_ = 0;  // before the first group
  bool has_groups_ = false;
};

}  // namespace rollcall::sim
