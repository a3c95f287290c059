// All kinds of traces for one run: a deadlock of 64 ranks with asynchronous calls, computation and arrows.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>

#include <zlib.h>

#include "sim/c10d/observer.h"
#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"
#include "tests/unit/viz/traces/trace_validator.h"
#include "viz/base/gzip_stream.h"
#include "viz/traces/chrome_trace.h"
#include "viz/traces/kineto_trace.h"
#include "viz/traces/perfetto_trace.h"

namespace rollcall::viz::traces_test {

namespace {

using Json = nlohmann::json;
using Problems = std::vector<std::string>;

// Rank 5 leaves early. Every rank computes for a different time, and has two calls in flight at once.
Report hang(Rank world_size, const std::string& backend) {
  sim::Options options{
      .world_size = world_size, .backend = backend, .groups = {{"evens", {}}}, .timeline = true};
  for (Rank rank = 0; rank < world_size; rank += 2) {
    options.groups[0].ranks.push_back(rank);
  }
  Report report = sim::run(options, [](Rank rank) {
    const Device device = this_rank().device;
    for (int step = 0; step < (rank == 5 ? 3 : 4); ++step) {
      compute((rank * 37 % 11 + 1) * millisecond);
      Tensor gradients = Tensor::ones({1000}, Dtype::float32, device);
      Tensor more = Tensor::ones({2000}, Dtype::float32, device);
      Work first = all_reduce(gradients, {.async_op = true});
      Work second = all_reduce(more, {.async_op = true});
      if (rank % 2 == 0) {
        barrier({.group = find_group("evens")});
      }
      first.wait();
      second.wait();
    }
  });
  report.scenario = "hang \"64\"";
  return report;
}

std::string chrome(const Report& report, const TraceOptions& options = {}) {
  std::ostringstream out;
  chrome_trace(report, out, options);
  return out.str();
}

std::string perfetto(const Report& report, const TraceOptions& options = {}) {
  std::ostringstream out;
  perfetto_trace(report, out, options);
  return out.str();
}

std::string kineto(const Report& report, Rank rank) {
  std::ostringstream out;
  KinetoTraces(report, {}).write(rank, out);
  return out.str();
}

std::string unzipped(const std::string& bytes) {
  z_stream state{};
  REQUIRE(inflateInit2(&state, 15 + 16) == Z_OK);
  std::string input = bytes;
  state.next_in = reinterpret_cast<Bytef*>(input.data());
  state.avail_in = static_cast<uInt>(input.size());
  std::string text;
  int result = Z_OK;
  std::string chunk(1 << 16, '\0');
  while (result == Z_OK) {
    state.next_out = reinterpret_cast<Bytef*>(chunk.data());
    state.avail_out = static_cast<uInt>(chunk.size());
    result = inflate(&state, Z_NO_FLUSH);
    text.append(chunk, 0, chunk.size() - state.avail_out);
  }
  inflateEnd(&state);
  REQUIRE(result == Z_STREAM_END);
  return text;
}

}  // namespace

TEST_CASE("the trace of a deadlock of 64 ranks breaks none of the readers' rules", "[fiber][trace]") {
  for (const char* backend : {"nccl", "gloo"}) {
    CAPTURE(backend);
    const Report report = hang(64, backend);
    REQUIRE(verdict_word(report.verdict) == "deadlock");
    const std::string text = chrome(report);
    CHECK(test::chrome_trace_problems(text) == Problems{});
    CHECK(test::chrome_trace_problems(chrome(report, {.whole_microseconds = true})) == Problems{});
    CHECK(test::perfetto_trace_problems(perfetto(report)) == Problems{});
    for (const Rank rank : {0, 5, 63}) {
      CHECK(test::kineto_trace_problems(kineto(report, rank), rank) == Problems{});
    }
    const Json trace = Json::parse(text);
    const auto count = [&trace](const char* phase) {
      return std::count_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                           [phase](const Json& event) { return event["ph"] == phase; });
    };
    CHECK(count("s") > 0);
    CHECK(count("f") > count("s"));
    CHECK(count("B") >= 63);
  }
}

TEST_CASE("the validators see what they look for", "[trace]") {
  const std::string head = R"({"traceEvents":[{"ph":"M","name":"process_name","pid":0,"args":{}},)"
                           R"({"ph":"M","name":"process_sort_index","pid":0,"args":{}},)"
                           R"({"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{}},)"
                           R"({"ph":"M","name":"thread_sort_index","pid":0,"tid":1,"args":{}})";
  const auto problems = [&head](const std::string& events) {
    return test::chrome_trace_problems(head + "," + events + "]}");
  };
  const std::string good = R"({"ph":"X","name":"a","pid":0,"tid":1,"ts":0.000,"dur":5.000})";
  CHECK(problems(good) == Problems{});
  CHECK(problems(good + R"(,{"ph":"X","name":"b","pid":0,"tid":1,"ts":4.000,"dur":5.000})") ==
        Problems{"slices of one lane cross"});
  CHECK(problems(R"({"ph":"X","name":"a","pid":0,"tid":0,"ts":0.000,"dur":5.000})") ==
        Problems{"a tid is no integer from 1"});
  CHECK(problems(R"({"ph":"X","name":"a","pid":0,"tid":1,"ts":0.1234,"dur":5.000})") ==
        Problems{"a time is not written in whole nanoseconds"});
  CHECK(problems(good + R"(,{"ph":"f","id":1,"cat":"c","name":"n","pid":0,"tid":1,"ts":1.000})").size() == 2);
  CHECK(problems(good + R"(,{"ph":"s","id":1,"cat":"c","name":"n","pid":0,"tid":1,"ts":5.000})").size() == 2);
  CHECK(problems(R"({"ph":"B","name":"a","pid":0,"tid":1,"ts":0.000})") ==
        Problems{"a call that never returned is not marked"});
  CHECK(problems(R"({"ph":"X","name":"a","pid":0,"tid":2,"ts":0.000,"dur":5.000})").size() == 2);
  CHECK_FALSE(test::perfetto_trace_problems("no protobuf").empty());
}

TEST_CASE("chosen ranks and a window leave a smaller trace that is as sound", "[fiber][trace]") {
  const Report report = hang(64, "nccl");
  TraceOptions options;
  options.ranks = RankSet::range(4, 7);
  options.from = 10 * millisecond;
  options.until = 20 * millisecond;
  const std::string text = chrome(report, options);
  CHECK(test::chrome_trace_problems(text) == Problems{});
  CHECK(test::perfetto_trace_problems(perfetto(report, options)) == Problems{});
  std::set<int> processes;
  const Json trace = Json::parse(text);
  for (const Json& event : trace["traceEvents"]) {
    processes.insert(event["pid"].get<int>());
    if (event["ph"] == "X") {
      CHECK(event["ts"].get<double>() <= 20'000);
      CHECK(event["ts"].get<double>() + event["dur"].get<double>() >= 10'000);
    }
  }
  CHECK(processes == std::set<int>{4, 5, 6, 7});
  CHECK(KinetoTraces(report, options).ranks() == std::vector<Rank>{4, 5, 6, 7});
}

TEST_CASE("a rank's file has torch's own argument names", "[fiber][trace]") {
  const Json trace = Json::parse(kineto(hang(8, "nccl"), 3));
  CHECK(trace["schemaVersion"] == 1);
  CHECK(trace["traceName"] == "rank3.json");
  CHECK(trace["distributedInfo"]["rank"] == 3);
  CHECK(trace["distributedInfo"]["pg_config"][0]["pg_desc"] == "default_pg");
  CHECK(trace["distributedInfo"]["pg_config"][1]["ranks"] == Json::array({0, 2, 4, 6}));
  const auto& events = trace["traceEvents"];
  const auto kernel = std::find_if(events.begin(), events.end(), [](const Json& event) {
    return event["name"].get<std::string>().starts_with("ncclDevKernel_AllReduce");
  });
  REQUIRE(kernel != events.end());
  const Json& args = (*kernel)["args"];
  CHECK(args["Collective name"] == "allreduce");
  CHECK(args["In msg nelems"] == 1000);
  CHECK(args["Out msg nelems"] == 1000);
  CHECK(args["Group size"] == 8);
  CHECK(args["dtype"] == "Float");
  CHECK(args["Process Group Name"] == "world");
  CHECK(args["Process Group Ranks"] == "[0, 1, 2, 3, 4, 5, 6, 7]");
  CHECK(args["Seq"] == 0);
}

TEST_CASE("a rank's file has its training steps, one after the other", "[fiber][trace]") {
  const Report report = sim::run({.world_size = 2, .timeline = true}, [](Rank rank) {
    for (int step = 0; step < 3 - rank; ++step) {
      this_rank().backend->observer().begin_step(step);
      compute(millisecond);
      all_reduce(Tensor::ones({8}, Dtype::float32, this_rank().device));
    }
  });
  const std::string text = kineto(report, 0);
  CHECK(test::kineto_trace_problems(text, 0) == Problems{});
  const Json trace = Json::parse(text);
  std::vector<std::string> names;
  double end = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event.value("cat", "") == "user_annotation") {
      names.push_back(event["name"]);
      CHECK(event["pid"] != 0);  // the device's rows
      CHECK(event["ts"].get<double>() >= end);
      end = event["ts"].get<double>() + event["dur"].get<double>();
    }
  }
  CHECK(names == std::vector<std::string>{"ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"});
  CHECK(end * 1000 >= static_cast<double>(report.simulated_time) - 1000);
  CHECK(kineto(report, 1).find("ProfilerStep#2") == std::string::npos);
}

TEST_CASE("members of large groups are listed once, not in every event", "[fiber][trace]") {
  const Report report = hang(64, "nccl");
  const Json trace = Json::parse(kineto(report, 0));
  CHECK(trace["distributedInfo"]["pg_config"][0]["ranks"].size() == 64);
  CHECK(kineto(report, 0).find("\"Process Group Ranks\": \"[0, 1,") == std::string::npos);
}

TEST_CASE("messages have arrows from the end that came last", "[fiber][trace]") {
  const Report report = sim::run({.world_size = 2, .backend = "gloo", .timeline = true}, [](Rank rank) {
    Tensor tensor = Tensor::ones({4});
    if (rank == 0) {
      compute(5 * millisecond);
      send(tensor, 1);
    } else {
      recv(tensor, 0);
    }
  });
  const std::string text = chrome(report);
  CHECK(test::chrome_trace_problems(text) == Problems{});
  std::vector<std::pair<std::string, int>> flows;
  const Json trace = Json::parse(text);
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "s" || event["ph"] == "f") {
      flows.emplace_back(event["ph"], event["pid"]);
    }
  }
  CHECK(flows == std::vector<std::pair<std::string, int>>{{"s", 0}, {"f", 1}});
}

TEST_CASE("gzip changes the bytes and not the text", "[trace]") {
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    text += std::to_string(i * 7919) + "\n";
  }
  std::ostringstream out;
  GzipStream compressed(out);
  compressed << text;
  compressed.finish();
  CHECK(compressed.good());
  CHECK(out.str().size() < text.size() / 2);
  CHECK(unzipped(out.str()) == text);
}

TEST_CASE("gzip of nothing is a file, and a sink that fails shows", "[trace]") {
  std::ostringstream out;
  GzipStream compressed(out);
  compressed.finish();
  CHECK(unzipped(out.str()).empty());
  std::ostringstream broken;
  broken.setstate(std::ios::badbit);
  GzipStream lost(broken);
  lost << "text";
  lost.finish();
  CHECK_FALSE(lost.good());
}

}  // namespace rollcall::viz::traces_test
