#include "sim/engine/handles.h"

#include <vector>

#include "tests/catch.h"

namespace rollcall::sim::handles_test {
namespace {

Op sends() {
  Op op;
  op.kind = OpKind::send;
  op.async_op = true;
  return op;
}

Work message(GroupId group, Rank member, std::int64_t seq) { return Work(group, member, seq, 7); }

}  // namespace

TEST_CASE("a handle is found by its call, whatever was called before and after", "[handles]") {
  Handles handles;
  for (std::int64_t seq = 0; seq < 20; seq += 2) {  // every other call blocks, and has no handle
    handles.give(5, sends(), message(3, 1, seq));
  }
  handles.give(5, sends(), Work(3, 1, 4));  // a collective: numbered apart from messages
  for (std::int64_t seq = 21; seq >= 0; --seq) {
    const Handles::Handle* found = handles.find(message(3, 1, seq));
    REQUIRE((found != nullptr) == (seq < 20 && seq % 2 == 0));
    CHECK((found == nullptr || found->seq == seq));
  }
  CHECK(handles.find(Work(3, 1, 4)) != nullptr);
  CHECK(handles.find(Work(3, 1, 6)) == nullptr);
  CHECK(handles.find(message(3, 0, 4)) == nullptr);
  CHECK(handles.find(message(4, 1, 4)) == nullptr);
  CHECK(handles.find(Work()) == nullptr);
}

TEST_CASE("handles that nobody has waited for are left, and only they are open", "[handles]") {
  Handles handles;
  for (const Rank member : {1, 0}) {
    handles.give(member, sends(), message(0, member, 0));
    handles.give(member, sends(), message(0, member, 1));
  }
  handles.find(message(0, 0, 0))->waited_for();
  handles.find(message(0, 1, 1))->is_done = true;  // seen completed: nothing leaks, but it may be waited for
  CHECK(handles.find_open(message(0, 0, 0)) == nullptr);
  CHECK(handles.find_open(message(0, 1, 1)) != nullptr);
  const std::vector<Handles::Handle> left = handles.left();
  REQUIRE(left.size() == 2);
  CHECK((left[0].rank == 0 && left[0].seq == 1));
  CHECK((left[1].rank == 1 && left[1].seq == 0));
}

TEST_CASE("no more handles are watched than fit", "[handles]") {
  Handles handles;
  const auto most = static_cast<std::int64_t>(Handles::most);
  for (std::int64_t seq = 0; seq <= most; ++seq) {
    handles.give(0, sends(), message(0, 0, seq));
  }
  CHECK(handles.find(message(0, 0, most - 1)) != nullptr);
  CHECK(handles.find(message(0, 0, most)) == nullptr);
}

}  // namespace rollcall::sim::handles_test
