// What HashStore and TCPStore of PyTorch 1.13 do, call by call.

#include "sim/c10d/store_state.h"

#include "sim/base/error.h"
#include "tests/catch.h"

namespace rollcall::store_state_test {
namespace {

using Kind = StoreCall::Kind;

struct Keys : StoreState {
  void set(const std::string& key, const std::string& value) {
    apply({.kind = Kind::set, .keys = {key}, .value = value});
  }
  std::string get(const std::string& key) { return apply({.kind = Kind::get, .keys = {key}}).value; }
  std::int64_t add(const std::string& key, std::int64_t amount) {
    return apply({.kind = Kind::add, .keys = {key}, .amount = amount}).number;
  }
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
    return apply({.kind = Kind::compare_set, .keys = {key}, .value = desired, .expected = expected}).value;
  }
  std::int64_t number(Kind kind, std::vector<std::string> keys = {}) {
    return apply({.kind = kind, .keys = std::move(keys)}).number;
  }
};

}  // namespace

TEST_CASE("a key has the value it was last set to", "[store]") {
  Keys store;
  store.set("a", "1");
  store.set("a", "2");
  CHECK(store.get("a") == "2");
  CHECK(store.number(Kind::num_keys) == 1);
}

TEST_CASE("the keys of a part of the store are those that begin alike", "[store]") {
  Keys store;
  for (const std::string key : {"a/x", "b", "b/x", "b/y", "c/x"}) {
    store.set(key, "1");
  }
  CHECK(store.apply({.kind = Kind::num_keys, .prefix = "b/"}).number == 2);
  CHECK(store.apply({.kind = Kind::num_keys, .prefix = "d/"}).number == 0);
  CHECK(store.number(Kind::num_keys) == 5);
}

TEST_CASE("adding makes a number, or goes on from one that is there", "[store]") {
  Keys store;
  CHECK(store.add("n", 3) == 3);
  CHECK(store.add("n", -1) == 2);
  CHECK(store.get("n") == "2");
  store.set("text", "12abc");
  CHECK(store.add("text", 1) == 13);
  store.set("empty", "");
  CHECK(store.add("empty", 1) == 1);
  store.set("largest", "9223372036854775807");
  CHECK(store.add("largest", 1) == std::numeric_limits<std::int64_t>::min());
  store.set("word", "word");
  CHECK_THROWS_AS(store.add("word", 1), ValueError);
}

TEST_CASE("compare_set sets only what it expects", "[store]") {
  Keys store;
  CHECK(store.compare_set("c", "old", "x") == "old");
  CHECK(store.missing({"c"}).size() == 1);
  CHECK(store.compare_set("c", "", "x") == "x");
  CHECK(store.compare_set("c", "x", "y") == "y");
  CHECK(store.compare_set("c", "x", "z") == "y");
}

TEST_CASE("a deleted key is missing again", "[store]") {
  Keys store;
  store.set("a", "1");
  CHECK(store.number(Kind::check, {"a"}) == 1);
  CHECK(store.number(Kind::check, {"a", "b"}) == 0);
  CHECK(store.missing({"a", "b", "c"}) == std::vector<std::string>{"b", "c"});
  CHECK(store.number(Kind::delete_key, {"a"}) == 1);
  CHECK(store.number(Kind::delete_key, {"a"}) == 0);
  CHECK(store.missing({"a"}).size() == 1);
}

}  // namespace rollcall::store_state_test
