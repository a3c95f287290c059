// `rollcall predict`, and the timelines that `rollcall run` writes.

#include <nlohmann/json.hpp>

#include <algorithm>

#include "real/nccl/gpu_probe.h"
#include "tests/catch.h"
#include "tests/shell.h"
#include "tests/unit/viz/traces/trace_validator.h"

namespace rollcall::test::cli_predict_test {
namespace {
using Json = nlohmann::json;
using Problems = std::vector<std::string>;

// Two steps that compute and reduce on `cluster`; with `hangs`, one rank stops a step early.
std::string training(const std::string& cluster, bool hangs = false) {
  return R"({ "version": 1, "name": "training", "world_size": 16, "inputs": )" +
         std::string(hangs ? "[1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]" : "2") + cluster +
         R"(, "program": [ {"for_each_input": "x", "do": [
               {"compute": "1ms"}, {"all_reduce": "gradients", "numel": 1000000}, {"all_reduce": "loss", "numel": 1},
               {"item": "loss", "as": "seen"} ]} ],
             "expect": {"verdict": ")" +
         (hangs ? "deadlock" : "ok") + "\"} }";
}

}  // namespace

TEST_CASE("predict measures on the GPUs that are there, or says that there are none", "[cli][predict]") {
  const Shell shell;
  CHECK(shell.rollcall("predict barrier --cluster h100-8 --measure").code == 4);
  if (!real::probe_gpus().problem.empty()) {
    const Outcome none = shell.rollcall("predict all_reduce --cluster h100-8 --bytes 1KiB:1MiB --measure");
    CHECK(none.code == 77);
    CHECK(none.out.empty());
    CHECK_THAT(none.err, StartsWith("rollcall: not possible here: nccl: "));
  }
}

TEST_CASE("predict prints a table that scripts and people can read", "[cli][predict]") {
  const Shell shell;
  const Outcome text = shell.rollcall("predict all_reduce --cluster h100-8 --bytes 1KiB:8GiB");
  CHECK(text.code == 0);
  CHECK(text.err.empty());
  CHECK(std::count(text.out.begin(), text.out.end(), '\n') == 4 + 24);
  CHECK_THAT(text.out, Contains("algbw") && Contains("busbw") && Contains("NVLS"));
  const Outcome json = shell.rollcall("predict all_reduce --cluster h100-8 --bytes 1KiB:8GiB --format json");
  CHECK(json.code == 0);
  const Json rows = Json::parse(json.out)["rows"];
  REQUIRE(rows.size() == 24);
  CHECK(rows[0]["bytes"] == 1024);
  CHECK(rows[0]["time_us"] == 15.013);
  CHECK(rows[0]["algorithm"] == "Ring");
  CHECK(rows[0]["protocol"] == "LL");
  CHECK(rows[0]["channels"] == 1);
}

TEST_CASE("predict takes NCCL's variables as options, and explains itself", "[cli][predict]") {
  const Shell shell;
  const std::string base = "predict all_reduce --cluster h100-2x8 --bytes 64MiB ";
  CHECK_THAT(shell.rollcall(base + "--algorithm ring --protocol ll128").out,
             Contains("Ring") && Contains("LL128"));
  CHECK_THAT(shell.rollcall(base + "--reduce-op MAX --dtype float32").out, !Contains("NVLS"));
  CHECK_THAT(shell.rollcall(base + "--explain").out, Contains("> NVLSTree"));
  const Outcome impossible = shell.rollcall(base + "--algorithm PAT");
  CHECK(impossible.code == 4);
  CHECK_THAT(impossible.err, Contains("--explain says why"));
}

TEST_CASE("predict says what is wrong with its arguments, and exits with 4", "[cli][predict]") {
  const Shell shell;
  const std::pair<const char*, const char*> cases[] = {
      {"predict all_reduce", "needs --cluster"},
      {"predict all_redcue --cluster h100-8", "did you mean 'all_reduce'?"},
      {"predict all_reduce --cluster h10-8", "did you mean 'h100-8'?"},
      {"predict all_reduce --cluster h100", "did you mean 'h100-8'?"},
      {"predict all_reduce --cluster h100-8 --bytes 8GiB:1KiB", "write 1KiB:8GiB"},
      {"predict all_reduce --cluster h100-8 --bytes 8XB", "--bytes:"},
      {"predict new_group --cluster h100-8", "unknown operation 'new_group'"},
      {"predict all_reduce --cluster h100-8 --dtype float31", "--dtype: unknown 'float31'"},
      {"predict all_reduce --cluster h100-8 --algorithm rong", "--algorithm: unknown 'rong'"},
      {"predict all_reduce --cluster h100-8 --explain --format json", "--explain prints text"},
      {"predict all_reduce --cluster missing.json", "missing.json"},
      {"predict missing.json", "missing.json"},
      {"predict all_reduce --cluster h100-8 --svg no/such/folder.svg", "No such file or directory"},
  };
  for (const auto& [arguments, message] : cases) {
    CAPTURE(arguments);
    const Outcome outcome = shell.rollcall(arguments);
    CHECK(outcome.code == 4);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Contains(message));
  }
}

TEST_CASE("predict reads a cluster from a file, and says where that is wrong", "[cli][predict]") {
  const Shell shell;
  shell.write("mine.json", R"({ "preset": "h100-8", "nodes": 4, "links": { "nic_speed": "200Gbps" } })");
  const Outcome good = shell.rollcall("predict all_gather --cluster mine.json --bytes 1GiB --format json");
  CHECK(good.code == 0);
  CHECK(Json::parse(good.out)["ranks"] == 32);
  CHECK(Json::parse(good.out)["graphs"] == "estimated");
  shell.write("wrong.json", "{\n  \"preset\": \"h100-8\",\n  \"nods\": 4 }");
  const Outcome wrong = shell.rollcall("predict all_gather --cluster wrong.json");
  CHECK(wrong.code == 4);
  CHECK_THAT(wrong.err, Contains("wrong.json:3:3: error:") && Contains("nodes"));
  shell.write("empty.json", R"({ "gpus_per_node": 8 })");
  CHECK_THAT(shell.rollcall("predict all_gather --cluster empty.json").err,
             Contains("the machines are not described"));
}

TEST_CASE("predict draws a plot", "[cli][predict]") {
  const Shell shell;
  CHECK(shell.rollcall("predict all_reduce --cluster h100-8 --svg plot.svg").code == 0);
  CHECK_THAT(contents(shell.path("plot.svg")), StartsWith("<svg "));
}

TEST_CASE("predict of a scenario says what a step takes and what waits", "[cli][predict][fiber]") {
  const Shell shell;
  shell.write("train.json", training(R"(, "cluster": "h100-8")"));
  const Outcome text = shell.rollcall("predict train.json");
  CHECK(text.code == 0);
  CHECK_THAT(text.out, Contains("for 2 steps") && Contains("exposed") && Contains("0-15"));
  const Json json = Json::parse(shell.rollcall("predict train.json --format json").out);
  CHECK(json["steps"] == 2);
  CHECK(json["ranks"][0]["compute_us"] == 2000.0);
  CHECK(json["ranks"][0]["exposed_us"].get<double>() > 100);
  const Json fitted = Json::parse(shell.rollcall("predict train.json --format json --residuals").out);
  CHECK(fitted["time_us"].get<double>() > json["time_us"].get<double>());
  const Json slower = Json::parse(shell.rollcall("predict train.json --format json --cluster a100-2x8").out);
  CHECK(slower["time_us"].get<double>() > json["time_us"].get<double>());
}

TEST_CASE("predict of a scenario needs a cluster, and nccl", "[cli][predict][fiber]") {
  const Shell shell;
  shell.write("train.json", training(""));
  CHECK_THAT(shell.rollcall("predict train.json").err, Contains("names no cluster"));
  CHECK(shell.rollcall("predict train.json").code == 4);
  CHECK(shell.rollcall("predict train.json --cluster h100-8").code == 0);
  shell.write("gloo.json", training(R"(, "backend": "gloo")"));
  CHECK_THAT(shell.rollcall("predict gloo.json --cluster h100-8").err, Contains("runs on gloo"));
  shell.write("hang.json", training("", true));
  const Outcome hang = shell.rollcall("predict hang.json --cluster h100-8");
  CHECK(hang.code == 0);
  CHECK_THAT(hang.err, Contains("ends with verdict deadlock"));
}

TEST_CASE("traces of every kind are sound and the same each time", "[cli][fiber][trace]") {
  const Shell shell;
  shell.write("hang.json", training(R"(, "cluster": "h100-8")", true));
  const std::string run = "run hang.json -q --trace ";
  CHECK(shell.rollcall(run + "a.json --trace-dir traces").code == 0);
  CHECK(shell.rollcall(run + "a.json.gz").code == 0);
  CHECK(shell.rollcall(run + "b.json.gz").code == 0);
  CHECK(shell.rollcall(run + "a.pftrace").code == 0);
  namespace trace = viz::test;
  CHECK(trace::chrome_trace_problems(contents(shell.path("a.json"))) == Problems{});
  CHECK(trace::perfetto_trace_problems(contents(shell.path("a.pftrace"))) == Problems{});
  CHECK(trace::kineto_trace_problems(contents(shell.path("traces/rank7.json")), 7) == Problems{});
  CHECK_FALSE(std::filesystem::exists(shell.path("traces/rank16.json")));
  CHECK_THAT(contents(shell.path("a.json.gz")), StartsWith("\x1f\x8b"));
  CHECK(contents(shell.path("a.json.gz")) == contents(shell.path("b.json.gz")));
}

TEST_CASE("ranks and time choose a part of a trace", "[cli][fiber][trace]") {
  const Shell shell;
  shell.write("hang.json", training(R"(, "cluster": "h100-8")", true));
  CHECK(shell.rollcall("run hang.json --trace-dir d --trace-ranks 2-3 --trace-window 0ms:1ms --trace-time us")
            .code == 0);
  CHECK(std::filesystem::exists(shell.path("d/rank2.json")));
  CHECK_FALSE(std::filesystem::exists(shell.path("d/rank4.json")));
  const std::pair<const char*, const char*> cases[] = {
      {"--trace-ranks 0-99", "--trace-ranks:"},
      {"--trace-window 1ms", "expected two times"},
      {"--trace-window 2ms:1ms", "later than the second"},
      {"--trace-window 1:2", "--trace-window:"},
      {"--ascii", "--timeline"},
  };
  for (const auto& [arguments, message] : cases) {
    CAPTURE(arguments);
    const Outcome outcome = shell.rollcall("run hang.json --trace t.json " + std::string(arguments));
    CHECK(outcome.code == 4);
    CHECK_THAT(outcome.err, Contains(message));
    CHECK_FALSE(std::filesystem::exists(shell.path("t.json")));
  }
}

TEST_CASE("files of a larger run in the folder are not mixed with this one's", "[cli][fiber][trace]") {
  const Shell shell;
  shell.write("hang.json", training(R"(, "cluster": "h100-8")", true));
  shell.write("d/rank16.json", "{}");
  const Outcome outcome = shell.rollcall("run hang.json --trace-dir d");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("rank16.json of another run"));
  CHECK_FALSE(std::filesystem::exists(shell.path("d/rank0.json")));
}

TEST_CASE("with --timeline the report has a chart", "[cli][fiber]") {
  const Shell shell;
  shell.write("hang.json", training(R"(, "cluster": "h100-8")", true));
  const Outcome outcome = shell.rollcall("run hang.json --timeline");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("◀ culprit") && Contains("█ computing") && Contains("never returned"));
  CHECK_THAT(shell.rollcall("run hang.json --timeline --ascii").out, Contains("< culprit") && !Contains("█"));
  CHECK_THAT(shell.rollcall("run hang.json").out, !Contains("culprit\n"));
  CHECK_THAT(shell.rollcall("run hang.json --timeline --format json").err,
             Contains("--timeline prints text"));
  CHECK_THAT(shell.rollcall("run hang.json --trace-ranks 1").err, Contains("need --trace"));
}

TEST_CASE("predict says what a training step takes before there is a cluster", "[cli][predict]") {
  const Shell shell;
  const std::string step =
      "predict --model llama3-8b --layout fsdp=8,microbatch=2,recompute=full --cluster h100-8";
  const Outcome text = shell.rollcall(step + " --what-if float8 --what-if slow=5%");
  CHECK(text.code == 0);
  CHECK_THAT(text.out,
             Contains("tokens/s for each GPU") && Contains("GiB on the fullest GPU") && Contains("slow=5%"));
  const Json json = Json::parse(shell.rollcall(step + " --format json").out);
  CHECK(json["gpus"] == 8);
  CHECK(json["fits"] == true);
  CHECK(json["pipeline"].size() == 1);
  CHECK(shell.rollcall("predict").code == 4);
  CHECK(shell.rollcall("predict --model llama3-8b").code == 4);
  CHECK(shell.rollcall("predict all_reduce --model llama3-8b --cluster h100-8").code == 4);
  const Json varied =
      Json::parse(shell.rollcall(step + " --format json --what-if float8 --what-if slow=5%").out);
  CHECK(varied["what_if"][0]["step_us"] < json["step_us"]);
  CHECK(varied["what_if"][1]["lost_gpu_seconds"] > 0);
  const Outcome large = shell.rollcall("predict --model llama3-70b --layout ddp=8 --cluster h100-8");
  CHECK(large.code == 1);
  CHECK_THAT(large.out, StartsWith("error[does_not_fit]: the fullest rank needs"));
  CHECK_THAT(shell.rollcall("predict --model llama3-8b --gpu x --cluster h100-8").err,
             Contains("--gpu: nothing is known"));
}

TEST_CASE("predict says what a scenario would take otherwise, in text, JSON, a page and traces",
          "[cli][predict]") {
  const Shell shell;
  shell.write("train.json", R"({"world_size": 4, "cluster": "h100-4", "objects": {"m": {"kind": "ddp",
    "parameters": [{"bytes": "100MiB", "count": 4, "dtype": "bfloat16"}], "tokens": 16384}}, "inputs": 2,
    "program": [{"for_each_input": "i", "do": [{"forward": "m"}, {"backward": "m"}]}],
    "expect": {"verdict": "ok"}})");
  const std::string asked =
      "predict train.json --tokens-per-step 65536 --what-if slow=0:10% --what-if world_size=2 --what-if "
      "cluster=a100-4 ";
  const Outcome text =
      shell.rollcall(asked + "--report html=step.html --trace step.pftrace --trace-dir traces");
  CAPTURE(text.err);
  CHECK(text.code == 0);
  CHECK_THAT(text.out, Contains("tokens per second") && Contains("what if\n") && Contains("rank 0"));
  CHECK_THAT(contents(shell.path("step.html")), Contains("What if") && Contains("slow=0:10%"));
  CHECK(viz::test::kineto_trace_problems(contents(shell.path("traces/rank3.json")), 3) ==
        Problems{});
  const Json json = Json::parse(shell.rollcall(asked + "--format json").out);
  REQUIRE(json["what_if"].size() == 3);
  const Json& slow = json["what_if"][0];
  CHECK(slow["slowest"] == "0");
  CHECK(slow["verdict"] == "ok");
  CHECK(slow["lost_gpu_seconds"] ==
        Approx((slow["step_us"].get<double>() - json["step_us"].get<double>()) * 4e-6));
  CHECK(json["what_if"][2]["step_us"] > slow["step_us"]);  // an A100
  CHECK_THAT(shell.rollcall("predict train.json --what-if microbatches=4").err,
             Contains("microbatches= changes objects of kind pipeline"));
  CHECK_THAT(shell.rollcall("predict train.json --what-if slwo=4").err, Contains("did you mean 'slow='"));
  CHECK_THAT(shell.rollcall("predict train.json --what-if slow=4:5%").err, Contains("ranks are 0 to 3"));
}

TEST_CASE("predict says where the times of kernels come from, and when only a host computes",
          "[cli][predict]") {
  const Shell shell;
  const auto predicted = [&](const std::string& computing) {
    shell.write("step.json", R"({"world_size": 8, "cluster": "h100-8", "program": [{"repeat": 2, "do": [)" +
                                 computing + R"(, {"all_reduce": {"numel": 1000000}}]}]})");
    return shell.rollcall("predict step.json").out;
  };
  CHECK_THAT(predicted(R"({"kernel": {"flops": 1e12}})"),
             Contains("16 kernels, 16 of them timed by the work"));
  CHECK_THAT(predicted(R"({"kernel": "1ms"})"), Contains("16 kernels, 0 of them"));
  CHECK_THAT(predicted(R"({"compute": "1ms"})"), Contains("compute is the host's time"));
}

TEST_CASE("predict refuses options that are about another question", "[cli][predict]") {
  const Shell shell;
  const auto refused = [&](const std::string& asked) {
    const Outcome outcome = shell.rollcall("predict " + asked);
    CHECK(outcome.code == 4);
    return outcome.err;
  };
  CHECK_THAT(refused("all_reduce --cluster h100-8 --gpu h200"), Contains("--gpu is about a model"));
  CHECK_THAT(refused("all_reduce --cluster h100-8 --what-if ranks=4"),
             Contains("--what-if is about a model, "));
  CHECK_THAT(refused("all_reduce --cluster h100-8 --report html=times.html"),
             Contains("--report is about a model, "));
  CHECK_THAT(refused("all_reduce --cluster h100-8 --trace times.json"),
             Contains("--trace is about a scenario or a script"));
  CHECK_THAT(refused("--model layers=2,hidden=64,heads=2,vocab=100,sequence=8 --layout ddp=8 --cluster "
                     "h100-8 --bytes 8B"),
             Contains("--bytes is about a collective"));
}

}  // namespace rollcall::test::cli_predict_test
