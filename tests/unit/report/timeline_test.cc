#include "sim/report/timeline.h"
#include "tests/catch.h"

namespace rollcall::timeline_test {

namespace {

Timeline two_spans(Time end_of_second) {
  Timeline timeline;
  Span span;
  span.name = timeline.intern("all_reduce");
  span.group = timeline.intern("world");
  span.end = 10;
  timeline.add(span);
  span.start = 10;
  span.end = end_of_second;
  timeline.add(span);
  return timeline;
}

// Returns the fingerprint after `change` is made to one span.
template <typename Change>
std::uint64_t changed(Change change) {
  Timeline timeline;
  timeline.intern("all_reduce");
  Span span;
  change(span);
  timeline.add(span);
  return timeline.fingerprint();
}

}  // namespace

TEST_CASE("a name is kept once, and the empty name is number 0") {
  Timeline timeline;
  const std::uint32_t world = timeline.intern("world");
  CHECK(timeline.intern("dp") != world);
  CHECK(timeline.intern("world") == world);
  CHECK(timeline.name(world) == "world");
  CHECK(timeline.intern("") == 0);
  CHECK(timeline.name(0).empty());
}

TEST_CASE("equal timelines have equal fingerprints, on every machine") {
  CHECK(two_spans(25).fingerprint() == two_spans(25).fingerprint());
  CHECK(two_spans(25).fingerprint() == 0x793f439066da5483);  // a fixed value: other builds must agree
}

TEST_CASE("every field of a span counts for the fingerprint") {
  const std::uint64_t plain = changed([](Span&) {});
  CHECK(changed([](Span& span) { span.start = 1; }) != plain);
  CHECK(changed([](Span& span) { span.end = 1; }) != plain);
  CHECK(changed([](Span& span) { span.seq = 0; }) != plain);
  CHECK(changed([](Span& span) { span.numel = 1; }) != plain);
  CHECK(changed([](Span& span) { span.rank = 1; }) != plain);
  CHECK(changed([](Span& span) { span.kind = Span::Kind::compute; }) != plain);
  CHECK(changed([](Span& span) { span.async_op = true; }) != plain);
  CHECK(changed([](Span& span) { span.dtype = Dtype::int64; }) != plain);
  CHECK(changed([](Span& span) { span.name = 1; }) != plain);
  CHECK(changed([](Span& span) { span.group = 1; }) != plain);
  CHECK(changed([](Span& span) { span.label = 1; }) != plain);
  CHECK(changed([](Span& span) { span.site = 1; }) != plain);
}

TEST_CASE("the order in which names were first said does not count for the fingerprint") {
  const auto with = [](const char* one, const char* other) {
    Timeline timeline;
    timeline.intern(one);
    timeline.intern(other);
    timeline.add(Span{.name = timeline.intern("a")});
    return timeline.fingerprint();
  };
  CHECK(with("a", "b") == with("b", "a"));
}

TEST_CASE("names and the number of spans count for the fingerprint") {
  const auto named = [](const char* name) {
    Timeline timeline;
    timeline.add(Span{.name = timeline.intern(name)});
    return timeline.fingerprint();
  };
  CHECK(named("a") != named("b"));
  CHECK(named("a") != Timeline{}.fingerprint());
  Timeline longer = two_spans(25);
  longer.add(Span{});
  CHECK(longer.fingerprint() != two_spans(25).fingerprint());
}

}  // namespace rollcall::timeline_test
