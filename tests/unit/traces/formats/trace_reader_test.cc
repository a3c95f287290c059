// Traces are read back as they were written, and Kineto traces as torch.profiler writes them.

#include "traces/formats/trace_reader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"
#include "viz/base/gzip_stream.h"
#include "viz/traces/chrome_trace.h"
#include "viz/traces/kineto_trace.h"

namespace rollcall::traces::trace_reader_test {

namespace {

namespace fs = std::filesystem;

// A temporary folder.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("rollcall_traces_test." + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return file(name);
  }
};

Report hang() {
  Report report = sim::run({.world_size = 3, .backend = "gloo", .timeline = true}, [](Rank rank) {
    Tensor tensor = Tensor::ones({4});
    compute((rank + 1) * millisecond);
    all_reduce(tensor);
    if (rank == 0) {
      send(tensor, 1, {.tag = 3});
    } else if (rank == 1) {
      recv(tensor, 0, {.tag = 3});
    }
    if (rank != 2) {
      barrier();
    }
  });
  report.scenario = "a hang";
  return report;
}

// The parts of a span that a trace keeps, with times relative to the first span.
using Look = std::tuple<Rank, Time, Time, std::string, std::string, std::int64_t, Rank>;

std::vector<Look> looks_of(const Report& report) {
  std::vector<Look> looks;
  for (const Span& span : report.timeline.spans()) {
    const bool is_compute = span.kind == Span::Kind::compute;
    looks.emplace_back(span.rank, span.start, span.end, report.timeline.name(span.name),
                       report.timeline.name(span.group), is_compute ? 0 : span.numel,
                       span.kind == Span::Kind::message ? span.peer : -1);
  }
  std::ranges::sort(looks);
  return looks;
}

std::string problem_of(const std::string& file) {
  try {
    read_trace({file});
  } catch (const InvalidTrace& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a Chrome trace reads back as the timeline it was written from", "[traces][fiber]") {
  const Folder folder;
  const Report report = hang();
  {
    std::ofstream plain(folder.file("t.json"), std::ios::binary);
    viz::chrome_trace(report, plain);
    std::ofstream packed(folder.file("t.json.gz"), std::ios::binary);
    viz::GzipStream gzip(packed);
    viz::chrome_trace(report, gzip);
    gzip.finish();
  }
  for (const std::string name : {"t.json", "t.json.gz"}) {
    CHECK(looks_like_trace(folder.file(name)));
    const Report again = read_trace({folder.file(name)});
    CHECK(again.world_size == 3);
    CHECK(again.scenario == "a hang");
    CHECK(looks_of(again) == looks_of(report));
    CHECK(std::holds_alternative<Completed>(again.verdict));  // it was not judged
  }
}

TEST_CASE("a folder of Kineto files is one timeline", "[traces][fiber]") {
  const Folder folder;
  const Report report = hang();
  const viz::KinetoTraces traces(report, {});
  for (const Rank rank : traces.ranks()) {
    std::ofstream out(folder.file(viz::KinetoTraces::file_name(rank)), std::ios::binary);
    traces.write(rank, out);
  }
  const Report again = read_trace({folder.path.string()});
  CHECK(again.world_size == 3);
  CHECK(again.timeline.spans().size() == report.timeline.spans().size());
  const auto open = [](const Report& any) {
    return std::ranges::count(any.timeline.spans(), Span::open, &Span::end);
  };
  CHECK(open(again) == open(report));
  CHECK(again.groups.front().ranks == RankSet::range(0, 2));
}

TEST_CASE("times at epoch scale are moved to the beginning", "[traces]") {
  const Folder folder;
  const std::string file =
      folder.write("k.json", R"({"distributedInfo": {"rank": 1, "world_size": 2, "backend": "nccl"},
    "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1700000000000000.5, "dur": 10.0,
     "args": {"stream": 7}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 1700000000000000.0, "dur": 1.0},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20, "ts": 1700000000000020.5,
     "dur": 5.5, "args": {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float", "Seq": 4,
     "Process Group Name": "0", "Process Group Description": "default_pg"}},
    null, 3, {"ph": "X"}]})");
  const Report report = read_trace({file});
  REQUIRE(report.timeline.spans().size() == 2);
  const Span& call = report.timeline.spans()[1];
  CHECK(report.timeline.spans()[0].start == 0);
  CHECK(call.rank == 1);
  CHECK(call.start == 20'000);
  CHECK(call.end == 25'500);
  CHECK(call.seq == 4);
  CHECK(report.timeline.name(call.group) == "world");
  CHECK(report.world_size == 2);
}

TEST_CASE("where a file names its rank, its processes may have any number", "[traces]") {
  const Folder folder;
  const Report report =
      read_trace({folder.write("k.json", R"({"distributedInfo": {"rank": 1, "world_size": 2}, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 3141592, "ts": 1.0, "dur": 5.0,
     "args": {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float"}}]})")});
  REQUIRE(report.timeline.spans().size() == 1);
  CHECK(report.timeline.spans().front().rank == 1);
}

TEST_CASE("what is no trace is refused with the file's name", "[traces]") {
  const Folder folder;
  CHECK_THAT(problem_of(folder.file("nothing.json")), Contains("nothing.json"));
  CHECK_THAT(problem_of(folder.write("cut.json", R"({"traceEvents": [{"ph": "X")")), Contains("cut.json"));
  CHECK_THAT(problem_of(folder.write("other.json", "{}")), Contains("no \"traceEvents\""));
  CHECK_THAT(problem_of(folder.write("list.json", "[1]")), Contains("no \"traceEvents\""));
  const std::string one = R"({"distributedInfo": {"rank": 0}, "traceEvents": []})";
  folder.write("a.json", one);
  folder.write("b.json", one);
  CHECK_THROWS_WITH(read_trace({folder.file("a.json"), folder.file("b.json")}),
                    Contains("a second file of rank 0"));
}

}  // namespace rollcall::traces::trace_reader_test
