#include "sim/nccl/device_queue.h"

#include <map>

#include "tests/catch.h"

namespace rollcall::sim::device_queue_test {
namespace {

using Kind = DeviceQueue::Action::Kind;

constexpr Stream side{1};

Op call(GroupId group, Stream stream = {}) {
  Op op;
  op.kind = OpKind::all_reduce;
  op.group = group;
  op.rank = 0;
  op.stream = stream;
  return op;
}

// One GPU and the tables of its groups, each with one member.
struct Gpu {
  explicit Gpu(int slots = 0) : queue(slots) {}

  LaunchTable& table(GroupId group) { return tables.try_emplace(group, group, 1).first->second; }
  std::int64_t launch(const Op& op) { return queue.launch(table(op.group), op); }
  void finish(GroupId group) { queue.finish_collective(table(group), 0); }
  // Returns the group of the collective that starts next; -1 if none does.
  std::int64_t starts() {
    const DeviceQueue::Action action = queue.next();
    return action.kind == Kind::start ? static_cast<std::int64_t>(action.table->group()) : -1;
  }

  std::map<GroupId, LaunchTable> tables;
  DeviceQueue queue;
};

}  // namespace

TEST_CASE("collectives of one group run one after the other", "[device_queue]") {
  Gpu gpu;
  CHECK(gpu.launch(call(0)) == 0);
  CHECK(gpu.launch(call(0)) == 1);
  CHECK(gpu.starts() == 0);
  CHECK(gpu.starts() == -1);
  gpu.finish(0);
  CHECK(gpu.table(0).has_finished(0, 0));
  CHECK(gpu.starts() == 0);
}

TEST_CASE("collectives of different groups run at once where nothing orders them", "[device_queue]") {
  Gpu gpu;
  gpu.launch(call(0));
  gpu.launch(call(1));
  CHECK(gpu.starts() == 0);
  CHECK(gpu.starts() == 1);
}

TEST_CASE("what follows a wait on a stream starts when the wait is over", "[device_queue]") {
  Gpu gpu;
  gpu.launch(call(0));
  gpu.queue.await_collective({}, 0, 0);
  gpu.launch(call(1));
  CHECK(gpu.starts() == 0);
  CHECK(gpu.starts() == -1);
  gpu.finish(0);
  CHECK(gpu.starts() == 1);
}

TEST_CASE("another stream does not wait", "[device_queue]") {
  Gpu gpu;
  gpu.launch(call(0));
  gpu.queue.await_collective({}, 0, 0);
  gpu.launch(call(1, side));
  CHECK(gpu.starts() == 0);
  CHECK(gpu.starts() == 1);
}

TEST_CASE("a collective keeps its place in its group while its stream is busy", "[device_queue]") {
  Gpu gpu;
  gpu.queue.launch_kernel({}, {.duration = 5});
  gpu.launch(call(0));        // behind the kernel
  gpu.launch(call(0, side));  // free, but launched later
  CHECK(gpu.queue.next().kind == Kind::run_kernel);
  CHECK(gpu.starts() == -1);
  gpu.queue.finish_kernel({});
  CHECK(gpu.starts() == 0);
  gpu.finish(0);
  CHECK(gpu.starts() == 0);
}

TEST_CASE("an event orders two streams", "[device_queue]") {
  Gpu gpu;
  gpu.queue.launch_kernel(side, {.duration = 5});
  const Event done = gpu.queue.record(side);
  gpu.queue.await_event({}, done);
  gpu.launch(call(0));
  CHECK(gpu.queue.next().kind == Kind::run_kernel);
  CHECK_FALSE(gpu.queue.has_passed(done));
  CHECK(gpu.starts() == -1);
  gpu.queue.finish_kernel(side);
  CHECK(gpu.queue.has_passed(done));
  CHECK(gpu.starts() == 0);
}

TEST_CASE("with one slot collectives run in launch order", "[device_queue]") {
  Gpu gpu(1);
  gpu.launch(call(3));
  gpu.launch(call(2, side));
  CHECK(gpu.starts() == 3);
  CHECK(gpu.starts() == -1);
  SECTION("and the one that runs is what blocks the others") {
    REQUIRE(gpu.queue.blocking(2, 0).has_value());
    CHECK(gpu.queue.blocking(2, 0)->group == 3);
  }
  gpu.finish(3);
  CHECK(gpu.starts() == 2);
}

TEST_CASE("a wait comes down to the call that the GPU is in", "[device_queue]") {
  Gpu gpu;
  gpu.launch(call(0));
  gpu.queue.await_collective({}, 0, 0);
  gpu.launch(call(1));
  gpu.queue.await_collective({}, 1, 0);
  CHECK(gpu.starts() == 0);
  REQUIRE(gpu.queue.blocking().has_value());
  CHECK(gpu.queue.blocking()->group == 0);
  REQUIRE(gpu.queue.blocking(1, 0).has_value());
  CHECK(gpu.queue.blocking(1, 0)->group == 0);
  CHECK_FALSE(gpu.queue.streams_are_idle());
}

TEST_CASE("what finishes lets the next of its lane start at once", "[device_queue]") {
  Gpu gpu;
  gpu.launch(call(0));
  gpu.launch(call(0));
  CHECK(gpu.starts() == 0);
  CHECK(gpu.starts() == -1);
  CHECK(gpu.queue.advance(gpu.table(0), 0));
  CHECK_FALSE(gpu.queue.has_next());
  CHECK_FALSE(gpu.queue.advance(gpu.table(0), 0));
  CHECK(gpu.queue.is_idle());
  CHECK(gpu.queue.backlog() == 0);
}

TEST_CASE("with one slot another lane may be next", "[device_queue]") {
  Gpu gpu(1);
  gpu.launch(call(0));
  gpu.launch(call(1));
  gpu.launch(call(0));
  CHECK(gpu.starts() == 0);
  CHECK_FALSE(gpu.queue.advance(gpu.table(0), 0));
  CHECK(gpu.starts() == 1);
}

TEST_CASE("a dead process starts nothing more", "[device_queue]") {
  Gpu gpu;
  gpu.launch(call(0));
  gpu.launch(call(0));
  CHECK(gpu.starts() == 0);
  gpu.queue.drop_unstarted();
  gpu.finish(0);
  CHECK(gpu.starts() == -1);
}

}  // namespace rollcall::sim::device_queue_test
