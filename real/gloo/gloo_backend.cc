#include "real/gloo/gloo_backend.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include <fmt/core.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include "real/gloo/gloo_group.h"
#include "real/gloo/gloo_library.h"
#include "real/gloo/translate.h"
#include "real/rank/made_groups.h"
#include "sim/base/expects.h"
#include "sim/c10d/arguments.h"
#include "sim/c10d/gloo_admission.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/p2p.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::real {
namespace {

// The store through which Gloo finds the other ranks.
class StoreAdapter final : public gloo::rendezvous::Store {
 public:
  // `timeout`: for names that are not set; 0: none, because a starting run has a supervisor with a deadline.
  // `prefix`: of every name, so that groups do not read each other's.
  StoreAdapter(real::Store& store, std::string prefix, Duration timeout)
      : store_(store), prefix_(std::move(prefix)) {
    if (timeout > 0) {
      timeout_ = timeout;
    }
  }

  void set(const std::string& key, const std::vector<char>& value) override {
    store_.set(prefix_ + key, std::string(value.begin(), value.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(prefix_ + key, timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) {
      store_.get(prefix_ + key, timeout_);
    }
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  real::Store& store_;
  std::string prefix_;
  std::optional<Duration> timeout_;
};

// The network that torch would use: GLOO_SOCKET_IFNAME if it is set.
gloo::transport::tcp::attr attributes_of(const Seat& seat) {
  gloo::transport::tcp::attr attributes(seat.address.empty() ? "127.0.0.1" : seat.address.c_str());
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"); interface != nullptr && *interface != 0) {
    attributes.hostname.clear();
    attributes.iface = interface;
  }
  return attributes;
}

class GlooBackend final : public Backend, private Observer {
 public:
  explicit GlooBackend(const Seat& seat)
      : seat_(seat), device_(gloo::transport::tcp::CreateDevice(attributes_of(seat_))), made_(seat_) {
    for (const GroupMembers& members : seat_.groups) {
      connect(members, 0);
    }
    // As at the end of torch's init_process_group: no rank leaves while others are still connecting to it.
    made_.wait_for_all("connected", std::nullopt);
  }

  const BackendTraits& traits() const override { return traits_of("gloo"); }

  Work issue(const Op& op) override {
    deliver_completed();
    if (is_ignored(op, torch_)) {
      return {};
    }
    GlooGroup& group = *groups_[op.group];
    if (op.malformed || gloo_refuses(op, torch_)) {
      if (const std::optional<Error> error = gloo_argument_error(op, group.size(), torch_)) {
        raise(*error, op.site);
      }
    }
    if (gloo_refuses(op, torch_)) {
      raise(gloo_refusal(op, torch_), op.site);
    }
    if (!is_point_to_point(op.kind)) {
      return Work(op.group, op.rank, group.start(op, torch_));
    }
    // The Gloo that rollcall is built with connects all ranks at once.
    detail::check_message(op, group.size(), false, traits_of(std::min(torch_.release, TorchRelease::v2_6)));
    const std::int64_t number = group.post(op);
    return Work(op.group, op.rank, number, static_cast<std::uint32_t>(number));
  }

  void wait(const Work& work) override {
    if (work.is_nothing()) {
      return;
    }
    GlooGroup& group = *groups_[work.group()];
    if (work.is_point_to_point()) {
      group.wait_message(work.seq());
    } else {
      group.wait(work.seq());
    }
    deliver_completed();
  }

  // Gloo's operations know only their group's timeout.
  void wait_for(const Work& work, Duration) override { wait(work); }

  // Gloo has no way to ask whether a message has arrived, so messages are waited for in order.
  void wait_any(std::span<const Work> works) override {
    const auto is_message = [](const Work& work) { return work.is_point_to_point(); };
    if (std::ranges::any_of(works, is_message)) {
      wait(*std::ranges::find_if(works, is_message));
      return;
    }
    while (std::ranges::none_of(works, [this](const Work& work) { return is_completed(work); })) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  // A message completes when it is waited for: torch's SendWork and RecvWork ask Gloo only then.
  bool is_completed(const Work& work) override {
    deliver_completed();
    GlooGroup& group = *groups_[work.group()];
    return work.is_point_to_point() ? group.is_message_completed(work.seq()) : group.is_completed(work.seq());
  }

  // Gloo cannot be asked whether a message has gone.
  bool drop(const Work& work) override {
    return work.is_point_to_point() && groups_[work.group()]->drop_message(work.seq());
  }

  Rank source_of(const Work& work) override { return groups_[work.group()]->take_source(work.seq()); }

  void compute(Duration duration) override {
    const double scaled = static_cast<double>(duration) * seat_.time_scale;
    std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(scaled)));
    deliver_completed();
  }

  ProcessGroup find_group(std::string_view name) override { return made_.find(name); }

  ProcessGroup manage(GroupCall call) override {
    deliver_completed();
    if (call.op.kind == OpKind::new_group) {
      return made_.make(call,
                        [this](const GroupMembers& members, Duration timeout) { connect(members, timeout); });
    }
    if (call.op.kind == OpKind::destroy_process_group) {
      return ProcessGroup::non_member();  // its connections stay while there are handles, as in Python
    }
    refuse_call(call.op.kind);
  }

  void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) override {
    deliver_completed();
    groups_[op.group]->monitored_barrier(limits.timeout.value_or(timeout_or_default(0)),
                                         limits.wait_all_ranks);
  }

  StoreReply store(const StoreCall& call) override {
    deliver_completed();
    return seat_.store->call(call, traits_of(seat_.torch));
  }

  Time now() const override { return 0; }
  Streams* streams() override { return nullptr; }
  Observer& observer() override { return *this; }

 private:
  // The Recorder has logged the line before it gets here.
  void print(std::string_view) override { deliver_completed(); }

  // Connects like torch's ProcessGroupGloo: a full mesh, under the group's own prefix. If the rank is not a member,
  // the group's place stays empty.
  void connect(const GroupMembers& members, Duration timeout) {
    groups_.emplace_back();
    const Rank rank = members.rank_of(seat_.rank);
    if (rank < 0) {
      return;
    }
    const auto store =
        std::make_shared<StoreAdapter>(*seat_.store, fmt::format("group-{}/", members.id), timeout);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, members.size());
    context->setTimeout(in_milliseconds(timeout_or_default(timeout)));
    translating([&] { connect_full_mesh(*context, store); });
    groups_.back() = std::make_unique<GlooGroup>(std::move(context));
  }

  // Gloo of 2022 borrows the store, newer versions share it.
  template <typename Context>
  void connect_full_mesh(Context& context, const std::shared_ptr<StoreAdapter>& store) {
    if constexpr (requires { context.connectFullMesh(store, device_); }) {
      context.connectFullMesh(store, device_);
    } else {
      context.connectFullMesh(*store, device_);
    }
  }

  Duration timeout_or_default(Duration timeout) const {
    const Duration asked_for = timeout > 0 ? timeout : seat_.timeout;
    return asked_for > 0 ? asked_for : traits().timeout;
  }

  void deliver_completed() {
    for (const auto& group : groups_) {
      if (group != nullptr) {
        group->deliver_completed();
      }
    }
  }

  Seat seat_;
  const TorchTraits& torch_ = traits_of(seat_.torch);
  std::shared_ptr<gloo::transport::Device> device_;
  MadeGroups made_;
  std::vector<std::unique_ptr<GlooGroup>> groups_;  // by GroupId; null if the rank is not a member
};

}  // namespace

std::unique_ptr<Backend> connect_gloo(const Seat& seat) {
  expects(open_gloo_library().empty(), "Gloo is asked for its obstacle before it is used");
  return std::make_unique<GlooBackend>(seat);
}

}  // namespace rollcall::real
