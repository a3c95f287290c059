#include <string>

#include "sim/base/error.h"
#include "sim/base/scope_table.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/scope.h"
#include "tests/catch.h"
#include "tests/unit/c10d/fake_rank.h"

namespace rollcall::scope_table_test {

TEST_CASE("a scope has one number however often it is entered") {
  ScopeTable table;
  ScopeId epoch = table.enter(no_scope, "epoch");
  ScopeId forward = table.enter(epoch, "forward");
  CHECK(table.enter(no_scope, "epoch") == epoch);
  CHECK(table.enter(epoch, "forward") == forward);
  CHECK(table.enter(no_scope, "forward") != forward);
}

TEST_CASE("a path names a scope from the outside in") {
  ScopeTable table;
  ScopeId inner = table.enter(table.enter(no_scope, "epoch"), "counter.forward");
  CHECK(table.path(inner) == "epoch/counter.forward");
  CHECK(table.name(inner) == "counter.forward");
  CHECK(table.path(no_scope).empty());
}

TEST_CASE("scope names and numbers cannot run together") {
  ScopeTable table;
  ScopeId one = table.enter(no_scope, "one");
  // The first scope is number 1: a child called "1 x" of the root must not look like "x" in scope 1.
  CHECK(table.enter(no_scope, "1 x") != table.enter(one, "x"));
  CHECK(table.enter(no_scope, "a/b") != table.enter(table.enter(no_scope, "a"), "b"));
}

TEST_CASE("calls without labels may pair with labeled ones, two labels only when equal") {
  ScopeTable table;
  Pairing none = table.pairing(no_scope);
  Pairing forward = table.pairing(table.enter(no_scope, "forward"));
  Pairing backward = table.pairing(table.enter(no_scope, "backward"));
  CHECK(may_pair(none, forward));
  CHECK(may_pair(forward, none));
  CHECK(may_pair(forward, forward));
  CHECK_FALSE(may_pair(forward, backward));
}

TEST_CASE("a strict pairing refuses calls without labels") {
  ScopeTable table;
  Pairing none = table.pairing(no_scope);
  Pairing presence = table.pairing(table.enter_paired(no_scope, "join.count", "join.presence"));
  CHECK_FALSE(may_pair(presence, none));
  CHECK_FALSE(may_pair(none, presence));
}

TEST_CASE("two scopes with one strict pairing belong together") {
  ScopeTable table;
  ScopeId count = table.enter_paired(no_scope, "join.count", "join.presence");
  ScopeId notify = table.enter_paired(no_scope, "join.notify", "join.presence");
  CHECK(count != notify);
  CHECK(may_pair(table.pairing(count), table.pairing(notify)));
  CHECK(table.pairing_name(table.pairing(count)) == "join.presence");
}

TEST_CASE("a strict pairing is inherited by the scopes inside it") {
  ScopeTable table;
  ScopeId hook = table.enter_paired(no_scope, "main_hook", "counter");
  ScopeId inner = table.enter(hook, "agree");
  CHECK(table.pairing(inner) == table.pairing(hook));
  CHECK(table.pairing(table.enter(no_scope, "agree")).strict == false);
}

TEST_CASE("a Scope covers the calls of its lifetime") {
  test::FakeRank rank;
  Tensor tensor = Tensor::ones({1});
  all_reduce(tensor);
  {
    Scope outer("step");
    all_reduce(tensor);
    {
      Scope inner("forward");
      all_reduce(tensor);
    }
    all_reduce(tensor);
  }
  all_reduce(tensor);
  CHECK(rank.scopes() == std::vector<std::string>{"", "step", "forward", "step", ""});
  CHECK(rank.scope_table().path(rank.issued[2].scope) == "step/forward");
}

TEST_CASE("a Scope ends with an exception that leaves it") {
  test::FakeRank rank;
  try {
    Scope scope("doomed");
    throw RuntimeError("out of memory");
  } catch (const RuntimeError&) {
  }
  barrier();
  CHECK(rank.scopes() == std::vector<std::string>{""});
}

}  // namespace rollcall::scope_table_test
