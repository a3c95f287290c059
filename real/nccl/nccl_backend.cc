#include "real/nccl/nccl_backend.h"

#include <fmt/core.h>

#include "real/nccl/gpu_probe.h"
#include "real/rank/backend_entry.h"

#ifdef ROLLCALL_HAS_NCCL

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "real/nccl/device_tensors.h"
#include "real/nccl/flights.h"
#include "real/nccl/nccl_group.h"
#include "real/nccl/nccl_types.h"
#include "real/rank/made_groups.h"
#include "real/rank/recorder.h"
#include "sim/c10d/arguments.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/p2p.h"
#include "sim/c10d/stream.h"
#include "sim/torch/torch_traits.h"
#endif

namespace rollcall::real {

#ifdef ROLLCALL_HAS_NCCL
namespace {

constexpr auto watchdog_interval = std::chrono::milliseconds(100);

// True if wait() blocks the host: TORCH_NCCL_BLOCKING_WAIT, as in torch.
bool waits_on_host() {
  const char* const wanted = std::getenv("TORCH_NCCL_BLOCKING_WAIT");
  return wanted != nullptr && std::string_view(wanted) == "1";
}

constexpr Rank everybody = -1;

constexpr int shares_gpus_since = 23000;  // NCCL 2.30: NCCL_MULTI_RANK_GPU_ENABLE

// Allows several ranks on one GPU, which NCCL refuses by default. Before 2.30, each process pretends to be
// a separate host, so that traffic goes through sockets (src/misc/utils.cc, getHostHashOnce).
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

// What torch's watchdog throws, in a thread where nothing catches it.
struct WatchdogError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class NcclBackend final : public Backend, public WatchedDevice, private Streams {
 public:
  explicit NcclBackend(const Seat& seat) : seat_(seat), made_(seat_) {
    int gpus = 0;
    libraries_.check(libraries_.cuda.get_device_count(&gpus));
    if (seat_.groups.front().size() > gpus) {
      allow_shared_gpu(libraries_, seat_.rank);
    }
    gpu_.emplace(libraries_, seat_.rank % gpus);
    tensors_.emplace(libraries_, *gpu_);
    flights_.emplace(*gpu_);
    for (const GroupMembers& members : seat_.groups) {
      add_group(members, 0);
    }
    watchdog_ = std::jthread([this](const std::stop_token& stop) { keep_watch(stop); });
  }

  const BackendTraits& traits() const override { return traits_of("nccl"); }
  void watch(Recorder& watcher) override {
    epoch_ = gpu_->record(gpu_->stream({}));
    wait_on_host([this] { return gpu_->has_passed(epoch_); }, [] { return std::nullopt; });
    watcher_ = &watcher;
    watcher_->clock_starts();
  }

  Work issue(const Op& op) override {
    check(op);
    NcclGroup& group = communicator_of(op, false);
    Flight flight = begin(op, group);
    Op launched = op;
    launched.dtype = has_tensor(op.kind) ? op.dtype : nccl_barrier_dtype(traits_of(seat_.torch));
    group.launch(launched, flight.scratch);
    group.settle_communicator();
    return end(op, std::move(flight));
  }

  std::vector<Work> issue_batch(std::span<const Op> ops) override {
    std::vector<Flight> flights;
    std::vector<NcclGroup*> groups;
    for (const Op& op : ops) {
      check(op);
    }
    for (const Op& op : ops) {
      groups.push_back(&communicator_of(op, true));
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      flights.push_back(begin(ops[i], *groups[i]));
    }
    libraries_.check(libraries_.nccl.group_start());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      groups[i]->launch(ops[i], flights[i].scratch);
    }
    libraries_.check(libraries_.nccl.group_end());
    std::vector<Work> works;
    for (NcclGroup* const group : groups) {
      group->settle_communicator();
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      works.push_back(end(ops[i], std::move(flights[i])));
    }
    return works;
  }

  // The current stream waits, and the host continues; for a barrier the host waits as well
  // (ProcessGroupNCCL.cpp, WorkNCCL::synchronizeInternal).
  void wait(const Work& work) override {
    poll();
    const std::optional<std::int64_t> number = flights_->number_of(work);
    if (!number) {
      return;
    }
    const Stream current = current_stream();
    libraries_.check(
        libraries_.cuda.stream_wait_event(gpu_->stream(current), flights_->at(*number).ended, 0));
    flights_->note_wait(current, *number);
    if (waits_on_host_ || flights_->at(*number).is_barrier) {
      wait_on_host(*number);
    }
  }

  // The host waits. A call that does not complete in time ends the communicator (WorkNCCL::synchronizeInternal).
  void wait_for(const Work& work, Duration timeout) override {
    const std::optional<std::int64_t> number = flights_->number_of(work);
    if (number && !wait_on_host(*number, timeout)) {
      flights_->at(*number).group->abort();
      throw LostPeerError(
          fmt::format("Work WorkNCCL(Timeout(ms)={}) timed out in blocking wait.", timeout / millisecond));
    }
  }
  void wait_any(std::span<const Work> works) override {
    const auto any_is_over = [&] {
      return std::ranges::any_of(works, [this](const Work& work) { return !flights_->number_of(work); });
    };
    wait_on_host(any_is_over, [&] { return flights_->blocking(*flights_->number_of(works.front())); });
  }
  bool is_completed(const Work& work) override {
    poll();
    return !flights_->number_of(work);
  }
  Rank source_of(const Work&) override {
    throw RuntimeError("ProcessGroupNCCL does not support recvAnysource");
  }

  void compute(Duration duration) override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(scaled(duration)));
    poll();
  }

  ProcessGroup find_group(std::string_view name) override { return made_.find(name); }

  ProcessGroup manage(GroupCall call) override {
    if (call.op.kind == OpKind::new_group) {
      if (call.is_on_gloo) {
        throw NotImplementedError(
            "real ranks on NCCL have no group on Gloo beside it; that is only simulated");
      }
      return made_.make(
          call, [this](const GroupMembers& members, Duration timeout) { add_group(members, timeout); });
    }
    if (call.op.kind == OpKind::split_group) {
      return made_.split(call, [&](std::span<const GroupMembers* const> parts, Duration timeout) {
        split(call.op.group, parts, timeout);
      });
    }
    if (call.op.kind != OpKind::destroy_process_group) {
      refuse_call(call.op.kind);
    }
    for (std::size_t id = 0; id < groups_.size(); ++id) {  // ending the world ends all groups
      if (call.op.group == world_group || call.op.group == id) {
        destroy(static_cast<GroupId>(id));
      }
    }
    return ProcessGroup::non_member();
  }

  void monitored_barrier(const Op& op, const MonitoredBarrierLimits&) override { refuse_call(op.kind); }
  StoreReply store(const StoreCall& call) override { return seat_.store->call(call, traits_of(seat_.torch)); }

  Time now() const override { return 0; }
  Streams* streams() override { return this; }
  Observer& observer() override { return nobody_; }

 private:
  // A process group, as this rank knows it.
  struct Member {
    const GroupMembers* members = nullptr;
    Rank rank = -1;  // the rank's own
    bool has_ended = false;
    // By the rank at the other end of a pair; `everybody`: the group's own. Made when they are first needed.
    std::map<Rank, std::unique_ptr<NcclGroup>> communicators{};
    std::optional<Device> device{};  // of the rank's first call
    Duration timeout = 0;
    std::int64_t collectives = 0;  // launched
    std::int64_t messages = 0;
  };

  std::int64_t scaled(Duration duration) const {
    return static_cast<std::int64_t>(static_cast<double>(duration) * seat_.time_scale);
  }

  void poll() {
    for (const Landing& landing : flights_->poll(epoch_)) {
      watcher_->ran(landing.work, landing.from, landing.to);
    }
  }

  Member& note_group(const GroupMembers& members, Duration timeout) {
    const Duration asked_for = timeout > 0 ? timeout : seat_.timeout;
    return groups_.emplace_back(Member{.members = &members,
                                       .rank = members.rank_of(seat_.rank),
                                       .timeout = asked_for > 0 ? asked_for : traits().timeout});
  }

  // With a device_id, the world connects at once, and other groups are split off it, which all ranks have to call
  // (distributed_c10d.py, _new_process_group_helper).
  void add_group(const GroupMembers& members, Duration timeout) {
    Member& member = note_group(members, timeout);
    if (!seat_.eager) {
      return;
    }
    if (members.id == world_group) {
      member.communicators[everybody] = connect_all(member);
      return;
    }
    const bool is_member = member.rank >= 0;
    auto part = settled(groups_.front())
                    .split(is_member ? 0 : NcclGroup::no_part, std::max(member.rank, 0), members.size());
    if (is_member) {
      member.communicators[everybody] = std::move(part);
    }
  }

  // The group's own communicator, once none of its calls is in flight: splitting it earlier may deadlock
  // (NCCL User Guide, ncclCommSplit).
  NcclGroup& settled(const Member& group) {
    wait_for_calls_of(group.members->id);
    return *group.communicators.at(everybody);
  }

  // split_group: a part of `parent` for each group.
  void split(GroupId parent, std::span<const GroupMembers* const> parts, Duration timeout) {
    const auto first = static_cast<std::size_t>(groups_.size());
    int own = NcclGroup::no_part;
    for (const GroupMembers* const part : parts) {
      if (note_group(*part, timeout).rank >= 0) {
        own = static_cast<int>(groups_.size() - first) - 1;
      }
    }
    NcclGroup& whole = settled(groups_[parent]);
    if (own == NcclGroup::no_part) {
      whole.split(own, 0, 0);
      return;
    }
    Member& member = groups_[first + static_cast<std::size_t>(own)];
    member.communicators[everybody] = whole.split(own, member.rank, member.members->size());
  }

  // The first member makes the id and the others read it, as torch does through its store (ProcessGroupNCCL.cpp,
  // broadcastUniqueNCCLID). All ranks number the groups equally here: only split_group gives ranks different numbers,
  // and it needs groups that connect when they are made.
  ncclUniqueId exchange_id(const std::string& key, bool is_first) {
    ncclUniqueId id = {};
    if (is_first) {
      libraries_.check(libraries_.nccl.get_unique_id(&id));
      seat_.store->set(key, std::string(id.internal, sizeof id.internal));
      return id;
    }
    for (Patience patience; !seat_.store->has(key); patience.pause()) {
      note_connecting();
    }
    seat_.store->get(key).copy(id.internal, sizeof id.internal);
    return id;
  }

  std::unique_ptr<NcclGroup> connect_all(const Member& member) {
    const std::string key = fmt::format("nccl-{}", member.members->id);
    return std::make_unique<NcclGroup>(libraries_, *gpu_, *tensors_, exchange_id(key, member.rank == 0),
                                       member.rank, member.members->size(), [this] { note_connecting(); });
  }
  std::unique_ptr<NcclGroup> connect_pair(const Member& member, Rank peer) {
    const std::string key = fmt::format("nccl-{}-{}:{}", member.members->id, std::min(member.rank, peer),
                                        std::max(member.rank, peer));
    return NcclGroup::between(libraries_, *gpu_, *tensors_, exchange_id(key, member.rank <= peer),
                              member.rank, peer, [this] { note_connecting(); });
  }

  // Earlier launches continue meanwhile.
  void note_connecting() {
    if (watcher_ != nullptr) {
      poll();
      watcher_->connecting();
    }
  }

  // The communicator of a call. Unless groups connect when they are made, it is made now if it does not exist: a
  // message outside a batch uses a communicator of its two ranks, everything else the group's (ProcessGroupNCCL.cpp,
  // pointToPoint).
  NcclGroup& communicator_of(const Op& op, bool is_in_batch) {
    Member& member = groups_[op.group];
    const bool is_of_pair = !seat_.eager && is_point_to_point(op.kind) && !is_in_batch;
    std::unique_ptr<NcclGroup>& place = member.communicators[is_of_pair ? op.root : everybody];
    if (place == nullptr) {
      note_connecting();
      place = is_of_pair ? connect_pair(member, op.root) : connect_all(member);
      watcher_->connected();
    }
    return *place;
  }

  // Waits for calls in flight first (ProcessGroupNCCL.cpp, shutdown).
  void destroy(GroupId id) {
    Member& member = groups_[id];
    wait_for_calls_of(id);
    for (const auto& [peer, communicator] : member.communicators) {
      if (communicator != nullptr) {
        communicator->close();
      }
    }
    member.communicators.clear();
    member.has_ended = true;
  }

  void wait_for_calls_of(GroupId id) {
    wait_on_host([this, id] { return !flights_->first_of(id); },
                 [this, id] { return flights_->first_of(id); });
  }

  // The group's stream waits until the caller's stream has got this far (ProcessGroupNCCL.cpp, syncStream).
  Flight begin(const Op& op, NcclGroup& group) {
    poll();
    tensors_->sweep([this](std::int64_t number) { return flights_->is_over(number); });
    Flight flight;
    flight.group = &group;
    flight.stream = op.stream;
    flight.position = flights_->position(op.stream);
    flight.is_barrier = op.kind == OpKind::barrier;
    const std::int64_t number = flights_->next_number() + launching_++;
    const cudaStream_t from = gpu_->stream(op.stream);
    for (const TensorList& tensors : {given_tensors(op), filled_tensors(op)}) {
      for (const Tensor& tensor : tensors) {  // copies them now, because copies are not part of NCCL's groups
        tensors_->use(*tensor.storage(), from, number, flight.staging);
      }
    }
    const cudaEvent_t reached = gpu_->record(from);
    libraries_.check(libraries_.cuda.stream_wait_event(group.stream(), reached, 0));
    gpu_->give_back(reached);  // the wait is for what was recorded
    flight.begun = gpu_->record(group.stream());
    return flight;
  }

  Work end(const Op& op, Flight flight) {
    Member& member = groups_[op.group];
    flight.group->distribute(op, flight.scratch);
    const bool is_message = is_point_to_point(op.kind);
    const std::int64_t seq = is_message ? member.messages++ : member.collectives++;
    flight.work = is_message ? Work(op.group, op.rank, seq, static_cast<std::uint32_t>(seq))
                             : Work(op.group, op.rank, seq);
    flight.text = describe(op);
    flight.ended = gpu_->record(flight.group->stream());
    flight.launched = std::chrono::steady_clock::now();
    flight.limit = std::chrono::nanoseconds(member.timeout);
    const Work work = flight.work;
    flights_->add(std::move(flight));
    --launching_;
    return work;
  }

  void check(const Op& op) {
    Member& member = groups_[op.group];
    const Rank size = member.members->size();
    if (member.has_ended || member.rank < 0) {
      throw Error("torch.distributed.DistBackendError",
                  fmt::format("NCCL communicator was aborted on rank {}.", op.rank));
    }
    if (op.malformed) {
      if (const std::optional<Error> error = nccl_argument_error(op, size, traits_of(seat_.torch))) {
        raise(*error, op.site);
      }
    }
    if (op.device.type != DeviceType::cuda && has_tensor(op.kind)) {
      const TorchError& refusal = traits_of(seat_.torch).nccl_host_tensor;
      raise(Error(refusal.type, fmt::format(fmt::runtime(refusal.text), to_string(op.device))), op.site);
    }
    if (op.device.type == DeviceType::cuda && member.device.value_or(op.device) != op.device) {
      throw stray_device_error(op.device, *member.device);
    }
    if (is_point_to_point(op.kind)) {
      detail::check_message(op, size, true, traits_of(seat_.torch));
    }
    // If the call were refused later, its tensors would wait for a call that is never launched.
    if (const std::optional<Error> error = nccl_type_error(op, traits_of(seat_.torch))) {
      throw *error;
    }
    if (op.device.type == DeviceType::cuda) {
      member.device = op.device;
    }
  }

  // ---- The host waits ----

  // Waits until `is_over`, and reports the call that it ultimately waits for. False after `timeout`, if one is given.
  bool wait_on_host(const std::function<bool()>& is_over,
                    const std::function<std::optional<Work>()>& blocking, Duration timeout = 0) {
    const auto begun = std::chrono::steady_clock::now();
    Patience patience;
    for (poll(); !is_over(); poll()) {
      for (const Member& member : groups_) {
        for (const auto& [peer, communicator] : member.communicators) {
          if (communicator != nullptr) {  // null: it is being made, or that failed
            communicator->check_communicator();
          }
        }
      }
      if (timeout > 0 && std::chrono::steady_clock::now() - begun > std::chrono::nanoseconds(timeout)) {
        return false;
      }
      const std::optional<Work> call = blocking();
      if (watcher_ != nullptr && call) {
        watcher_->blocked_in(*call);
      }
      patience.pause();
    }
    return true;
  }
  bool wait_on_host(std::int64_t number, Duration timeout = 0) {
    return wait_on_host([this, number] { return flights_->is_over(number); },
                        [this, number] { return std::optional(flights_->blocking(number)); }, timeout);
  }

  void wait_for_stream(cudaStream_t stream) {
    const cudaEvent_t reached = gpu_->record(stream);
    wait_on_host([&] { return gpu_->has_passed(reached); }, [] { return std::nullopt; });
    gpu_->give_back(reached);
  }

  // ---- Streams ----

  rollcall::Event record_event(Stream stream) override {
    const rollcall::Event event{stream, flights_->advance(stream)};
    events_[{stream.id, event.position}] = gpu_->record(gpu_->stream(stream));
    std::erase_if(events_, [this](const auto& entry) {
      const bool has_passed = gpu_->has_passed(entry.second);
      if (has_passed) {
        gpu_->give_back(entry.second);
      }
      return has_passed;
    });
    return event;
  }

  // An event that is no longer known has passed.
  void stream_wait(Stream stream, const rollcall::Event& event) override {
    const auto found = events_.find({event.stream.id, event.position});
    if (found != events_.end()) {
      libraries_.check(libraries_.cuda.stream_wait_event(gpu_->stream(stream), found->second, 0));
      flights_->note_wait(stream, event.stream, event.position);
    }
  }

  void launch_kernel(Stream stream, const Kernel& kernel) override {
    gpu_->spin(gpu_->stream(stream), scaled(kernel.duration));
    flights_->advance(stream);
  }

  void synchronize(const rollcall::Event& event) override {
    const auto found = events_.find({event.stream.id, event.position});
    if (found != events_.end()) {
      const cudaEvent_t reached = found->second;
      wait_on_host([&] { return gpu_->has_passed(reached); },
                   [&] { return flights_->blocking(event.stream, event.position); });
    }
  }

  void synchronize_device() override {
    wait_on_host([this] { return flights_->empty(); },
                 [this] { return std::optional(flights_->blocking(flights_->oldest())); });
    for (int id = 0; id < streams_per_rank; ++id) {
      const Stream stream{static_cast<std::uint8_t>(id)};
      if (flights_->position(stream) > 0) {
        wait_for_stream(gpu_->stream(stream));
      }
    }
  }

  void settle(Storage& storage) override {
    const std::vector<std::int64_t> users = tensors_->users(storage);
    for (const std::int64_t number : users) {
      wait_on_host(number);
    }
    if (copies_ == nullptr) {
      copies_ = gpu_->new_stream();
    }
    tensors_->download(storage, copies_, [this] { wait_for_stream(copies_); });
  }

  // ---- The watchdog ----

  // Checks as often as torch's watchdog, and like it ends the process by an uncaught exception. It does not abort calls
  // first (ProcessGroupNCCL.hpp, SkipCleanUp): they would look completed, and the rank would go on with what they left.
  void keep_watch(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(watchdog_interval);
      if (const std::optional<Flight> flight = flights_->overdue()) {
        const auto milliseconds = [](auto duration) {
          return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
        };
        const std::string text = fmt::format(
            "[Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, "
            "Timeout(ms)={}) ran for {} milliseconds before timing out.",
            seat_.rank, flight->work.seq(), flight->text, milliseconds(flight->limit),
            milliseconds(std::chrono::steady_clock::now() - flight->launched));
        throw WatchdogError(text);
      }
    }
  }

  Seat seat_;
  Observer nobody_;
  NcclLibraries libraries_;
  MadeGroups made_;
  std::optional<Gpu> gpu_;
  std::optional<DeviceTensors> tensors_;
  std::optional<Flights> flights_;
  std::deque<Member> groups_;                                            // by GroupId; addresses are stable
  std::int64_t launching_ = 0;                                           // calls between begin() and end()
  std::map<std::pair<std::uint8_t, std::int64_t>, cudaEvent_t> events_;  // by stream and position; not passed
  cudaStream_t copies_ = nullptr;                                        // for copies to the host
  cudaEvent_t epoch_ = nullptr;                                          // null: there is no watcher
  Recorder* watcher_ = nullptr;                                          // null: none
  const bool waits_on_host_ = waits_on_host();
  std::jthread watchdog_;  // ends before the members that it uses
};

}  // namespace

std::string nccl_obstacle(Rank) {
  const GpuProbe probe = probe_gpus();
  return probe.problem.empty() ? "" : fmt::format("nccl: {}", probe.problem);
}

std::unique_ptr<Backend> connect_nccl(const Seat& seat) { return std::make_unique<NcclBackend>(seat); }

#else

std::string nccl_obstacle(Rank) { return "nccl: rollcall was built without the headers of CUDA and NCCL"; }
std::unique_ptr<Backend> connect_nccl(const Seat&) { throw Unavailable(nccl_obstacle(1)); }

#endif

}  // namespace rollcall::real
