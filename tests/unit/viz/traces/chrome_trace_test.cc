#include "viz/traces/chrome_trace.h"

// The rules of trace readers, checked on the written text: readers silently drop or misdraw anything that breaks a
// rule.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "tests/catch.h"
#include "tests/unit/viz/sample_reports.h"

namespace rollcall::viz::chrome_trace_test {

namespace {

using Json = nlohmann::json;
using Lane = std::pair<int, int>;  // pid, tid

// Builds a report's timeline in a few words.
struct Recording {
  Report report;

  explicit Recording(Rank world_size) : report(samples::completed(world_size)) {}

  Span& call(Rank rank, std::int64_t seq, Time start, Time end, std::string_view group = "world") {
    span_ = Span{};
    span_.rank = rank;
    span_.seq = seq;
    span_.numel = 4;
    span_.start = start;
    span_.end = end;
    span_.name = report.timeline.intern("all_reduce");
    span_.group = report.timeline.intern(group);
    return span_;
  }
  void add(const Span& span) { report.timeline.add(span); }
  void add_async(Rank rank, std::int64_t seq, Time start, Time end, std::string_view group = "world") {
    Span span = call(rank, seq, start, end, group);
    span.async_op = true;
    add(span);
  }
  void add_compute(Rank rank, Time start, Time end) {
    Span span = call(rank, -1, start, end);
    span.kind = Span::Kind::compute;
    span.name = report.timeline.intern("compute");
    span.group = 0;
    add(span);
  }

  void add_host_call(Rank rank, std::string_view name, std::string_view arguments, Time start, Time end) {
    Span span = call(rank, -1, start, end);
    span.kind = Span::Kind::host;
    span.name = report.timeline.intern(name);
    span.numel = 0;
    span.arguments = report.timeline.intern(arguments);
    add(span);
  }

  std::string text() const {
    std::ostringstream out;
    chrome_trace(report, out);
    return out.str();
  }
  Json json() const { return Json::parse(text()); }
  std::vector<Json> events() const { return json()["traceEvents"].get<std::vector<Json>>(); }
  std::vector<Json> events(const std::string& phase) const {
    std::vector<Json> found = events();
    std::erase_if(found, [&phase](const Json& event) { return event["ph"] != phase; });
    return found;
  }

 private:
  Span span_;
};

// Rank 1 comes last; rank 0 has two calls in flight at once; rank 2 never returns from its last call.
Recording eventful() {
  Recording run(3);
  run.add_compute(1, 0, 500);
  run.add(run.call(0, 0, 0, 1'500));
  run.add(run.call(1, 0, 500, 1'500));
  run.add(run.call(2, 0, 100, 1'500));
  run.add_async(0, 1, 1'500, 4'000);
  run.add_async(0, 2, 1'600, 3'000);
  run.add_async(1, 1, 1'500, 4'000);
  run.add_async(1, 2, 1'700, 3'000);
  run.add_async(2, 1, 1'500, 4'000);
  run.add_async(2, 2, 1'600, 3'000);
  run.add_compute(0, 1'600, 3'500);
  run.add(run.call(2, 3, 4'000, Span::open));
  Report hang = samples::missing_rank(3);
  run.report.verdict = hang.verdict;
  run.report.simulated_time = 5'000;
  return run;
}

Lane lane_of(const Json& event) { return {event["pid"].get<int>(), event["tid"].get<int>()}; }

// Returns a time of the trace. It is exact for the short times of these tests; "all their nanoseconds" has its own.
std::int64_t nanoseconds(const Json& number) { return std::llround(number.get<double>() * 1000); }

}  // namespace

TEST_CASE("the trace is an object that a reader recognizes by its first bytes") {
  const Recording run = eventful();
  CHECK_THAT(run.text(), StartsWith("{\""));
  const Json json = run.json();
  CHECK(json["traceEvents"].is_array());
  CHECK(json["distributedInfo"]["world_size"] == 3);
  CHECK(json["distributedInfo"]["backend"] == "nccl");
  CHECK(json["distributedInfo"]["pg_config"][0]["ranks"] == Json::array({0, 1, 2}));
  CHECK(json["metadata"]["verdict"] == "deadlock");
}

TEST_CASE("a report without a timeline gives a valid, empty trace") {
  CHECK(Recording(2).events("X").empty());
}

TEST_CASE("calls about groups and on the store lie in the program's row and move no data") {
  Recording run(1);
  run.add_host_call(0, "store_wait", "key \"a\"", 0, 5);
  run.add_host_call(0, "new_group", "", 5, 9);
  const std::vector<Json> slices = run.events("X");
  REQUIRE(slices.size() == 2);
  CHECK(slices[0]["cat"] == "host");
  CHECK(slices[0]["name"] == "store_wait");
  CHECK(slices[0]["tid"] == 1);
  CHECK(slices[0]["args"] == Json{{"Process Group Name", "world"}, {"arguments", "key \"a\""}});
  CHECK(slices[1]["args"] == Json{{"Process Group Name", "world"}});
}

TEST_CASE("one process per rank, threads from 1, all of them integers and named") {
  const Recording run = eventful();
  std::set<Lane> named;
  for (const Json& event : run.events("M")) {
    if (event["name"] == "thread_name") {
      named.insert(lane_of(event));
    }
  }
  for (const Json& event : run.events()) {
    REQUIRE(event["pid"].is_number_integer());
    REQUIRE(event["pid"] >= 0);
    REQUIRE(event["pid"] < 3);
    if (event.contains("tid")) {
      REQUIRE(event["tid"].is_number_integer());
      REQUIRE(event["tid"] >= 1);
      CHECK(named.count(lane_of(event)) == 1);
    }
  }
}

TEST_CASE("every rank has a name and a place in the order, and the culprit is marked") {
  std::map<int, std::string> names;
  std::map<int, int> places;
  for (const Json& event : eventful().events("M")) {
    if (event["name"] == "process_name") {
      names[event["pid"]] = event["args"]["name"];
    } else if (event["name"] == "process_sort_index") {
      places[event["pid"]] = event["args"]["sort_index"];
    }
  }
  CHECK(names == std::map<int, std::string>{{0, "rank 0 (culprit)"}, {1, "rank 1"}, {2, "rank 2"}});
  CHECK(places == std::map<int, int>{{0, 0}, {1, 1}, {2, 2}});
}

TEST_CASE("slices of one lane never overlap") {
  std::map<Lane, std::int64_t> free_from;
  for (const Json& event : eventful().events("X")) {
    const Lane lane = lane_of(event);
    const std::int64_t start = nanoseconds(event["ts"]);
    CHECK(start >= free_from[lane]);
    free_from[lane] = start + nanoseconds(event["dur"]);
  }
  CHECK(free_from.size() == 2 + 2 * 3);  // two programs that compute, and three ranks with two calls at once
}

TEST_CASE("asynchronous calls that follow each other share a lane, per group") {
  Recording run(1);
  run.add_async(0, 0, 0, 10);
  run.add_async(0, 1, 10, 20);
  run.add_async(0, 0, 20, 30, "dp");
  std::vector<int> lanes;
  for (const Json& event : run.events("X")) {
    lanes.push_back(event["tid"]);
  }
  CHECK(lanes == std::vector<int>{2, 2, 3});
}

TEST_CASE("times are microseconds with all their nanoseconds") {
  Recording run(1);
  run.add(run.call(0, 0, 1'002'003'004'005, 1'002'003'004'006));
  CHECK_THAT(run.text(), Contains("\"ts\":1002003004.005,\"dur\":0.001"));
}

TEST_CASE("events are in order of time") {
  std::int64_t now = 0;
  for (const Json& event : eventful().events()) {
    if (event["ph"] != "M") {
      CHECK(nanoseconds(event["ts"]) >= now);
      now = nanoseconds(event["ts"]);
    }
  }
  CHECK(now == 6'000);  // the culprit's alternative is drawn slightly longer
}

TEST_CASE("a call that never returned is open, last on its lane, and marked with the verdict") {
  const Recording run = eventful();
  const auto open = run.events("B");
  REQUIRE(open.size() == 1);
  CHECK(open[0]["name"] == "wait all_reduce #3");
  CHECK(run.events("E").empty());
  for (const Json& event : run.events("X")) {
    if (lane_of(event) == lane_of(open[0])) {
      CHECK(nanoseconds(event["ts"]) + nanoseconds(event["dur"]) <= nanoseconds(open[0]["ts"]));
    }
  }
  const auto marks = run.events("i");
  REQUIRE(marks.size() == 1);
  CHECK(marks[0]["name"] == "verdict: deadlock");
  CHECK(lane_of(marks[0]) == lane_of(open[0]));
}

TEST_CASE(
    "a culprit that has finished has a slice that says so, with an arrow from each call that waits for it") {
  Recording run(1);
  run.report = samples::missing_rank(3);
  run.add(run.call(0, 4, 0, 10));
  run.add(run.call(1, 5, 20, Span::open));
  run.add(run.call(2, 5, 30, Span::open));
  const auto slices = run.events("X");
  const auto gone =
      std::ranges::find(slices, "finished after 5 inputs", [](const Json& event) { return event["name"]; });
  REQUIRE(gone != slices.end());
  CHECK((*gone)["pid"] == 0);
  CHECK(nanoseconds((*gone)["ts"]) == 10);
  const std::int64_t end = nanoseconds((*gone)["ts"]) + nanoseconds((*gone)["dur"]);
  const auto starts = run.events("s");
  const auto ends = run.events("f");
  REQUIRE(starts.size() == 2);
  REQUIRE(ends.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(starts[i]["pid"] == i + 1);
    CHECK(starts[i]["name"] == "waits in vain");
    CHECK(ends[i]["pid"] == 0);
    CHECK(nanoseconds(ends[i]["ts"]) < end);
  }
}

TEST_CASE("nothing is drawn behind a call that never returned") {
  Recording run(1);
  run.add_async(0, 0, 0, Span::open);
  run.add_async(0, 1, 5, 6);
  REQUIRE(run.events("X").size() == 1);
  CHECK(lane_of(run.events("X")[0]) != lane_of(run.events("B")[0]));
}

TEST_CASE("arrows run from the rank that came last to each that waited") {
  Recording run(3);
  run.add(run.call(0, 0, 0, 1'500));
  run.add(run.call(1, 0, 500, 1'500));
  run.add(run.call(2, 0, 100, 1'500));
  const auto starts = run.events("s");
  const auto ends = run.events("f");
  REQUIRE(starts.size() == 1);
  CHECK(starts[0]["pid"] == 1);
  REQUIRE(ends.size() == 2);
  CHECK(ends[0]["pid"] == 0);
  CHECK(ends[1]["pid"] == 2);
}

TEST_CASE("each arrow's end has its beginning, with one id, category and name, inside open slices") {
  const Recording run = eventful();
  std::map<std::int64_t, Json> begun;
  std::size_t ended = 0;
  for (const Json& event : run.events()) {
    if (event["ph"] == "s") {
      REQUIRE(event["id"].is_number_integer());
      CHECK(begun.emplace(event["id"], event).second);
    } else if (event["ph"] == "f") {
      ++ended;
      REQUIRE(begun.count(event["id"]) == 1);
      const Json& start = begun[event["id"]];
      CHECK(event["bp"] == "e");
      CHECK(event["cat"] == start["cat"]);
      CHECK(event["name"] == start["name"]);
      CHECK(event["ts"] >= start["ts"]);
    }
  }
  CHECK(begun.size() == 2);
  CHECK(ended == 2 + 2);

  const auto slices = run.events("X");
  for (const std::string phase : {"s", "f"}) {
    for (const Json& event : run.events(phase)) {
      const std::int64_t time = nanoseconds(event["ts"]);
      CHECK(std::count_if(slices.begin(), slices.end(), [&](const Json& slice) {
              const std::int64_t start = nanoseconds(slice["ts"]);
              return lane_of(slice) == lane_of(event) && start < time &&
                     time < start + nanoseconds(slice["dur"]);
            }) == 1);
    }
  }
}

TEST_CASE("ranks that arrive together have no arrows, and neither has a call that never completes") {
  Recording run(2);
  run.add(run.call(0, 0, 0, 10));
  run.add(run.call(1, 0, 0, 10));
  run.add(run.call(0, 1, 10, Span::open));
  run.add(run.call(1, 1, 20, Span::open));
  CHECK(run.events("s").empty());
  CHECK(run.events("f").empty());
}

TEST_CASE("a collective's slice carries Kineto's arguments") {
  Recording run(1);
  Span span = run.call(0, 3, 0, 10, "dp");
  span.label = run.report.timeline.intern("DDP.backward");
  span.site = run.report.timeline.intern("train.json:4:5");
  run.add(span);
  const Json args = run.events("X").at(0)["args"];
  CHECK(args["Collective name"] == "allreduce");
  CHECK(args["In msg nelems"] == 4);
  CHECK(args["dtype"] == "Float");
  CHECK(args["Process Group Name"] == "dp");
  CHECK(args["Seq"] == 3);
  CHECK(args["label"] == "DDP.backward");
  CHECK(args["site"] == "train.json:4:5");
}

TEST_CASE("names with quotes, control characters and broken UTF-8 leave the trace valid") {
  Recording run(1);
  run.report.scenario = "a \"quoted\" \x01 name";
  Span span = run.call(0, 0, 0, 10, "group\n\"\x02\xff");
  span.label = run.report.timeline.intern("back\\slash");
  run.add(span);
  run.add_async(0, 1, 10, 20, "group\n\"\x02\xff");
  const auto slices = run.events("X");
  REQUIRE(slices.size() == 2);
  CHECK(slices[0]["args"]["Process Group Name"] == "group\n\"\x02\xef\xbf\xbd");
  CHECK(slices[0]["args"]["label"] == "back\\slash");
}

}  // namespace rollcall::viz::chrome_trace_test
