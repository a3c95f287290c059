#include "real/nccl/nccl_backend.h"

#include <fmt/core.h>

#include "real/nccl/gpu_probe.h"
#include "real/rank/backend_entry.h"

#ifdef ROLLCALL_HAS_NCCL

#include <chrono>
#include <cstdlib>
#include <thread>

#include "real/nccl/nccl_group.h"
#include "real/rank/made_groups.h"
#include "sim/c10d/arguments.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/p2p.h"

namespace rollcall::real {
namespace {

constexpr int shares_gpus_since = 23000;  // NCCL 2.30: NCCL_MULTI_RANK_GPU_ENABLE

// Several ranks on one GPU, which NCCL refuses unless it is told otherwise. Before 2.30 each process poses as
// a host of its own, so that traffic goes through sockets (src/misc/utils.cc, getHostHashOnce).
void allow_shared_gpu(const NcclLibraries& libraries, Rank rank) {
  int version = 0;
  libraries.check(libraries.nccl.get_version(&version));
  if (version >= shares_gpus_since) {
    ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
    return;
  }
  ::setenv("NCCL_HOSTID", fmt::format("rollcall-rank-{}", rank).c_str(), 0);
  ::setenv("NCCL_NET", "Socket", 0);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
}

// Made by the group's first rank, read by the others, as torch does it through its store.
ncclUniqueId exchange_id(const NcclLibraries& libraries, Store& store, Rank rank, GroupId group) {
  const std::string key = fmt::format("nccl-{}", group);
  ncclUniqueId id = {};
  if (rank == 0) {
    libraries.check(libraries.nccl.get_unique_id(&id));
    store.set(key, std::string(id.internal, sizeof id.internal));
  } else {
    store.get(key).copy(id.internal, sizeof id.internal);
  }
  return id;
}

class NcclBackend final : public Backend {
 public:
  explicit NcclBackend(const Seat& seat) : seat_(seat), made_(seat_) {
    int gpus = 0;
    libraries_.check(libraries_.cuda.get_device_count(&gpus));
    if (seat_.groups.front().size() > gpus) {
      allow_shared_gpu(libraries_, seat_.rank);
    }
    libraries_.check(libraries_.cuda.set_device(seat_.rank % gpus));
    for (const GroupMembers& members : seat_.groups) {
      connect(members);
    }
  }

  const BackendTraits& traits() const override { return traits_of("nccl"); }

  Work issue(const Op& op) override {
    NcclGroup& group = *groups_[op.group];
    check(op, group.size());
    const std::int64_t number = group.start(op);
    return is_point_to_point(op.kind) ? Work(op.group, op.rank, number, static_cast<std::uint32_t>(number))
                                      : Work(op.group, op.rank, number);
  }

  std::vector<Work> issue_batch(std::span<const Op> ops) override {
    for (const Op& op : ops) {
      check(op, groups_[op.group]->size());
    }
    libraries_.check(libraries_.nccl.group_start());
    std::vector<Work> works;
    for (const Op& op : ops) {
      works.push_back(issue(op));
    }
    libraries_.check(libraries_.nccl.group_end());
    for (const Op& op : ops) {
      groups_[op.group]->settle_communicator();
    }
    return works;
  }

  void wait(const Work& work) override { groups_[work.group()]->wait(work.seq(), work.is_point_to_point()); }
  // The host goes on, and what its streams wait for is the watchdog's affair.
  void wait_for(const Work& work, Duration) override { wait(work); }
  void wait_any(std::span<const Work> works) override { wait(works.front()); }
  bool is_completed(const Work& work) override {
    return groups_[work.group()]->is_completed(work.seq(), work.is_point_to_point());
  }
  Rank source_of(const Work&) override {
    throw RuntimeError("ProcessGroupNCCL does not support recvAnysource");
  }

  void compute(Duration duration) override {
    const double scaled = static_cast<double>(duration) * seat_.time_scale;
    std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(scaled)));
  }

  ProcessGroup find_group(std::string_view name) override { return made_.find(name); }

  ProcessGroup manage(GroupCall call) override {
    if (call.op.kind == OpKind::new_group) {
      return made_.make(call, [this](const GroupMembers& members, Duration) { connect(members); });
    }
    if (call.op.kind != OpKind::destroy_process_group) {
      refuse_call(call.op.kind);
    }
    for (std::size_t id = 0; id < groups_.size(); ++id) {  // the world's end is everybody's
      if (call.op.group == world_group || call.op.group == id) {
        groups_[id].reset();
      }
    }
    return ProcessGroup::non_member();
  }

  void monitored_barrier(const Op& op, const MonitoredBarrierLimits&) override { refuse_call(op.kind); }
  StoreReply store(const StoreCall& call) override { return seat_.store->call(call); }

  Time now() const override { return 0; }
  Streams* streams() override { return nullptr; }
  Observer& observer() override { return nobody_; }

 private:
  // Where the rank is not a member, the group's place stays empty.
  void connect(const GroupMembers& members) {
    groups_.emplace_back();
    if (const Rank rank = members.rank_of(seat_.rank); rank >= 0) {
      groups_.back() = std::make_unique<NcclGroup>(
          libraries_, exchange_id(libraries_, *seat_.store, rank, members.id), rank, members.size());
    }
  }

  void check(const Op& op, Rank group_size) const {
    if (op.malformed) {
      if (const std::optional<Error> error = nccl_argument_error(op, group_size, traits_of(seat_.torch))) {
        raise(*error, op.site);
      }
    }
    if (op.device.type != DeviceType::cuda && has_tensor(op.kind)) {
      throw ValueError("Tensors must be CUDA and dense");
    }
    const bool takes_equal_parts = row_of(op.kind).sizes != Sizes::exchanged;
    if (op.uneven && takes_equal_parts) {
      throw NotImplementedError(fmt::format(
          "{} with tensors of different sizes is not supported on real NCCL ranks yet", to_string(op.kind)));
    }
    if (is_point_to_point(op.kind)) {
      detail::check_message(op, group_size, true, traits_of(seat_.torch));
    }
  }

  Seat seat_;
  Observer nobody_;
  NcclLibraries libraries_;
  MadeGroups made_;
  std::vector<std::unique_ptr<NcclGroup>> groups_;  // by GroupId; null where the rank is not a member
};

}  // namespace

std::string nccl_obstacle(Rank) {
  const GpuProbe probe = probe_gpus();
  return probe.problem.empty() ? "" : fmt::format("nccl: {}", probe.problem);
}

std::unique_ptr<Backend> connect_nccl(const Seat& seat) { return std::make_unique<NcclBackend>(seat); }

}  // namespace rollcall::real

#else

namespace rollcall::real {

std::string nccl_obstacle(Rank) { return "nccl: rollcall was built without the headers of CUDA and NCCL"; }
std::unique_ptr<Backend> connect_nccl(const Seat&) { throw Unavailable(nccl_obstacle(1)); }

}  // namespace rollcall::real

#endif
