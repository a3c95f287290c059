#include <set>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/c10d/process_group.h"
#include "tests/catch.h"

namespace rollcall::op_test {

namespace {

std::vector<OpKind> every_kind() {
  std::vector<OpKind> kinds;
  for (std::size_t i = 0; i < op_kind_count; ++i) {
    kinds.push_back(static_cast<OpKind>(i));
  }
  return kinds;
}

}  // namespace

TEST_CASE("every kind of operation has its own name and is read back by it") {
  std::set<std::string_view> names;
  for (OpKind kind : every_kind()) {
    names.insert(to_string(kind));
    CHECK(parse_op_kind(to_string(kind)) == kind);
  }
  CHECK(names.size() == op_kind_count);
  CHECK_FALSE(parse_op_kind("allreduce"));
  CHECK_FALSE(parse_op_kind(""));
}

TEST_CASE("reductions, roots and tensors belong to torch's operations that have them") {
  std::set<OpKind> reducing;
  std::set<OpKind> rooted;
  std::set<OpKind> without_tensor;
  for (OpKind kind : every_kind()) {
    if (has_reduce_op(kind)) {
      reducing.insert(kind);
    }
    if (has_root(kind)) {
      rooted.insert(kind);
    }
    if (!has_tensor(kind)) {
      without_tensor.insert(kind);
    }
  }
  CHECK(reducing == std::set<OpKind>{OpKind::all_reduce, OpKind::all_reduce_coalesced, OpKind::reduce,
                                     OpKind::reduce_scatter, OpKind::reduce_scatter_tensor});
  CHECK(rooted == std::set<OpKind>{OpKind::broadcast, OpKind::reduce, OpKind::gather, OpKind::gather_single,
                                   OpKind::scatter, OpKind::send, OpKind::recv});
  CHECK(without_tensor == std::set<OpKind>{OpKind::barrier, OpKind::monitored_barrier, OpKind::new_group,
                                           OpKind::split_group, OpKind::destroy_process_group,
                                           OpKind::batch_isend_irecv, OpKind::store_get, OpKind::store_wait});
}

TEST_CASE("an operation is described by what ranks must agree on") {
  Op op;
  op.kind = OpKind::all_reduce;
  op.numel = 4;
  CHECK(describe(op) == "all_reduce(numel=4, float32, SUM)");
  op.async_op = true;  // does not matter to the others
  op.site = Site::here();
  CHECK(describe(op) == "all_reduce(numel=4, float32, SUM)");

  op.kind = OpKind::reduce;
  op.dtype = Dtype::int64;
  op.reduce = ReduceOp::max;
  op.root = 2;
  CHECK(describe(op) == "reduce(numel=4, int64, MAX, root=2)");

  op.kind = OpKind::barrier;
  CHECK(describe(op) == "barrier()");
}

TEST_CASE("an operation is data: it copies as bytes") { CHECK(std::is_trivially_copyable_v<Op>); }

TEST_CASE("a group knows its members' ranks inside it") {
  GroupMembers members{.id = 3, .name = "odd", .ranks = {1, 3, 5}};
  CHECK(members.size() == 3);
  CHECK(members.rank_of(3) == 1);
  CHECK(members.rank_of(5) == 2);
  CHECK(members.rank_of(2) == -1);
  CHECK(members.rank_of(7) == -1);
}

TEST_CASE("to a rank outside, a group has neither rank nor size") {
  GroupMembers members{.id = 3, .name = "odd", .ranks = {1, 3, 5}};
  ProcessGroup inside(members, 1);
  ProcessGroup outside(members, -1);
  CHECK(inside.size() == 3);
  CHECK(outside.size() == -1);
  CHECK(outside.rank() == -1);
  CHECK_FALSE(outside.is_member());
  CHECK(inside == outside);  // the same group, seen by two ranks
  CHECK_FALSE(ProcessGroup{});
}

TEST_CASE("a call site prints its file without the folders") {
  CHECK(to_string(Site{"/somewhere/train.json", 12, 7}) == "train.json:12:7");
  CHECK(to_string(Site{"train.json", 1, 1}) == "train.json:1:1");
  CHECK(to_string(Site{}).empty());
  CHECK(Site::here().line == __LINE__);
}

}  // namespace rollcall::op_test
