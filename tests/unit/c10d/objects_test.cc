// Object collectives: how a value is pickled, and which collectives carry it.

#include <string>

#include "sim/base/error.h"
#include "sim/c10d/objects.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"
#include "tests/unit/c10d/fake_rank.h"

namespace rollcall::objects_test {

using test::FakeRank;

TEST_CASE("a pickled value is as long as Python's") {
  const auto size = [](const Object& object) { return pickle(object).size(); };
  // len(pickle.dumps(value)) of CPython 3.11.
  CHECK(size({}) == 4);
  CHECK(size(true) == 4);
  CHECK(size(0) == 5);
  CHECK(size(255) == 5);
  CHECK(size(256) == 15);
  CHECK(size(65536) == 17);
  CHECK(size(-1) == 17);
  CHECK(size(std::int64_t{1} << 31) == 19);
  CHECK(size(-(std::int64_t{1} << 31)) == 17);
  CHECK(size(std::int64_t{1} << 40) == 20);
  CHECK(size(1.5) == 21);
  CHECK(size("") == 15);
  CHECK(size(std::string(255, 'x')) == 270);
  CHECK(size(std::string(256, 'x')) == 274);
  CHECK(size(std::string(70000, 'x')) == 70009);
  CHECK(size(Object::list({})) == 5);
  CHECK(size(Object::list({1})) == 17);
  CHECK(size(Object::list({1, 2})) == 20);
  CHECK(size(Object::list({Object::list({1}), Object::list({1})})) == 26);
  CHECK(size(Object::dict({{"a", 1}})) == 21);
  CHECK(size(Object::dict({{"k", Object::list({1, 2.5, {}})}})) == 35);
}

TEST_CASE("a string that occurs twice is pickled once") {
  CHECK(pickle(Object::list({"ab", "ab"})).size() == 23);
  CHECK(pickle(Object::dict({{"a", 1}, {"b", "a"}})).size() == 28);
}

TEST_CASE("pickled bytes are Python's") {
  CHECK(pickle(0) == std::string("\x80\x04K\x00.", 5));
  CHECK(pickle(Object::list({1})) == std::string("\x80\x04\x95\x06\0\0\0\0\0\0\0]\x94K\x01"
                                                 "a.",
                                                 17));
}

TEST_CASE("what was pickled is unpickled") {
  ObjectList many;
  for (int i = 0; i < 2500; ++i) {
    many.emplace_back("name " + std::to_string(i % 300));
  }
  const Object objects[] = {Object(),
                            false,
                            -7,
                            std::int64_t{1} << 40,
                            -(std::int64_t{1} << 40),
                            INT64_MIN,
                            2.5,
                            "text",
                            std::string(70000, 'y'),
                            Object::list({}),
                            Object::dict({{"rank", 3}, {"pad", ""}, {"list", Object::list({1, "rank", {}})}}),
                            Object::list(many)};
  for (const Object& object : objects) {
    CHECK(unpickle(pickle(object)) == object);
    CHECK(unpickle(pickle(object) + "padding") == object);
  }
}

TEST_CASE("bytes that are no pickle are refused") {
  const std::string good = pickle(Object::dict({{"a", Object::list({1, 2})}}));
  for (std::size_t length = 0; length < good.size(); ++length) {
    CHECK_THROWS_AS(unpickle(good.substr(0, length)), Error);
  }
  CHECK_THROWS_AS(unpickle(std::string("\x80\x04h\x05.", 5)), Error);        // a reference to nothing
  CHECK_THROWS_AS(unpickle(std::string("\x80\x04K\x01K\x02s.", 8)), Error);  // an item without a dict
  CHECK_THROWS_AS(unpickle(std::string("\x80\x04"
                                       "e.",
                                       4)),
                  Error);  // a mark that was never set
}

TEST_CASE("a wrong list is an error before anything is sent") {
  FakeRank rank(0, 2);
  ObjectList places(2);
  CHECK_THROWS_AS(gather_object(1, nullptr, 0), ValueError);
  CHECK_THROWS_AS(gather_object(1, &places, 1), ValueError);
  ObjectList nowhere;
  CHECK_THROWS_AS(scatter_object_list(nowhere, {"a", "b"}, 0), RuntimeError);
  CHECK(rank.issued.empty());
}

TEST_CASE("an object collective on a group one does not belong to warns and does nothing") {
  FakeRank rank(0, 4);
  rank.add_group("odd", {1, 3});
  ObjectList places(2);
  all_gather_object(places, 1, rank.find_group("odd"));
  CHECK(rank.issued.empty());
  REQUIRE(rank.warnings.size() == 1);
  CHECK(rank.warnings.front() ==
        "Running all_gather_object on global rank 0 which does not belong to the given group.");
}

TEST_CASE("objects of different sizes reach everyone", "[fiber]") {
  const Report report = sim::run({.world_size = 3, .backend = "gloo"}, [](Rank rank) {
    ObjectList gathered(3);
    all_gather_object(gathered, std::string(static_cast<std::size_t>(10 * rank), 'x'));
    CHECK(gathered == ObjectList{"", std::string(10, 'x'), std::string(20, 'x')});

    ObjectList box = rank == 1 ? ObjectList{"a", 2} : ObjectList(2);
    broadcast_object_list(box, 1);
    CHECK(box == ObjectList{"a", 2});

    ObjectList collected(3);
    gather_object(rank, rank == 2 ? &collected : nullptr, 2);
    CHECK((rank != 2 || collected == ObjectList{0, 1, 2}));

    ObjectList received(1);
    scatter_object_list(received, rank == 0 ? ObjectList{"x", Object(), 1.5} : ObjectList(), 0);
    CHECK(received.front() == ObjectList{"x", Object(), 1.5}[static_cast<std::size_t>(rank)]);
  });
  CHECK(std::holds_alternative<Completed>(report.verdict));
  CHECK(report.ops == 3 * 9);
}

TEST_CASE("a list that is too short for the gathered objects is found out afterwards, as in torch",
          "[fiber]") {
  const Report report = sim::run({.world_size = 2, .backend = "gloo"}, [](Rank) {
    ObjectList one(1);
    CHECK_THROWS_WITH(all_gather_object(one, 1), "list assignment index out of range");
  });
  CHECK(report.ops == 2 * 2);
}

}  // namespace rollcall::objects_test
