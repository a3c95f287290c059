#include "sim/engine/device_queue.h"

#include <catch2/catch.hpp>

namespace rollcall::sim {
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

// The group of the collective that starts next; -1: none does.
std::int64_t starts(DeviceQueue& queue) {
  const DeviceQueue::Action action = queue.next();
  return action.kind == Kind::start ? static_cast<std::int64_t>(action.op->group) : -1;
}

}  // namespace

TEST_CASE("collectives of one group run one after the other", "[device_queue]") {
  DeviceQueue queue;
  CHECK(queue.launch(call(0)) == 0);
  CHECK(queue.launch(call(0)) == 1);
  CHECK(starts(queue) == 0);
  CHECK(starts(queue) == -1);
  queue.finish_collective(0);
  CHECK(queue.has_finished(0, 0));
  CHECK(starts(queue) == 0);
}

TEST_CASE("collectives of different groups run at once where nothing orders them", "[device_queue]") {
  DeviceQueue queue;
  queue.launch(call(0));
  queue.launch(call(1));
  CHECK(starts(queue) == 0);
  CHECK(starts(queue) == 1);
}

TEST_CASE("what follows a wait on a stream starts when the wait is over", "[device_queue]") {
  DeviceQueue queue;
  queue.launch(call(0));
  queue.await_collective({}, 0, 0);
  queue.launch(call(1));
  CHECK(starts(queue) == 0);
  CHECK(starts(queue) == -1);
  queue.finish_collective(0);
  CHECK(starts(queue) == 1);
}

TEST_CASE("another stream does not wait", "[device_queue]") {
  DeviceQueue queue;
  queue.launch(call(0));
  queue.await_collective({}, 0, 0);
  queue.launch(call(1, side));
  CHECK(starts(queue) == 0);
  CHECK(starts(queue) == 1);
}

TEST_CASE("a collective keeps its place in its group while its stream is busy", "[device_queue]") {
  DeviceQueue queue;
  queue.launch_kernel({}, 5);
  queue.launch(call(0));        // behind the kernel
  queue.launch(call(0, side));  // free, but launched later
  CHECK(queue.next().kind == Kind::run_kernel);
  CHECK(starts(queue) == -1);
  queue.finish_kernel({});
  CHECK(starts(queue) == 0);
  queue.finish_collective(0);
  CHECK(starts(queue) == 0);
}

TEST_CASE("an event orders two streams", "[device_queue]") {
  DeviceQueue queue;
  queue.launch_kernel(side, 5);
  const Event done = queue.record(side);
  queue.await_event({}, done);
  queue.launch(call(0));
  CHECK(queue.next().kind == Kind::run_kernel);
  CHECK_FALSE(queue.has_passed(done));
  CHECK(starts(queue) == -1);
  queue.finish_kernel(side);
  CHECK(queue.has_passed(done));
  CHECK(starts(queue) == 0);
}

TEST_CASE("with one slot collectives run in launch order", "[device_queue]") {
  DeviceQueue queue(1);
  queue.launch(call(3));
  queue.launch(call(2, side));
  CHECK(starts(queue) == 3);
  CHECK(starts(queue) == -1);
  SECTION("and the one that runs is what blocks the others") {
    REQUIRE(queue.blocking(2, 0).has_value());
    CHECK(queue.blocking(2, 0)->group == 3);
  }
  queue.finish_collective(3);
  CHECK(starts(queue) == 2);
}

TEST_CASE("a wait comes down to the call that the GPU is in", "[device_queue]") {
  DeviceQueue queue;
  queue.launch(call(0));
  queue.await_collective({}, 0, 0);
  queue.launch(call(1));
  queue.await_collective({}, 1, 0);
  CHECK(starts(queue) == 0);
  REQUIRE(queue.blocking().has_value());
  CHECK(queue.blocking()->group == 0);
  REQUIRE(queue.blocking(1, 0).has_value());
  CHECK(queue.blocking(1, 0)->group == 0);
  CHECK_FALSE(queue.streams_are_idle());
}

TEST_CASE("a dead process starts nothing more", "[device_queue]") {
  DeviceQueue queue;
  queue.launch(call(0));
  queue.launch(call(0));
  CHECK(starts(queue) == 0);
  queue.drop_unstarted();
  queue.finish_collective(0);
  CHECK(starts(queue) == -1);
}

}  // namespace rollcall::sim
