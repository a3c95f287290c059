#pragma once

// OrderNoter: forwards all calls, and records the order in which its rank uses its groups, for check::warn_about_order.

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
  // Orders that are too long to be compared are not kept.
  void note(const Op& op) {
    std::vector<GroupId>& order = orders_.ranks[static_cast<std::size_t>(this_rank().rank)];
    if (!is_point_to_point(op.kind) && std::ssize(order) <= check::ordered_calls_max) {
      order.push_back(op.group);
    }
  }

  ProcessGroup known(const ProcessGroup& group) {
    if (group) {
      orders_.names[group.id()] = group.name();
    }
    return group;
  }

  check::CallOrders& orders_;
};

}  // namespace rollcall::sim
