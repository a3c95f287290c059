// The step times that follow from records with kernels, compared with PyTorch's own counters for the same steps.

#include "scenarios/predict/script_prediction.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/record/recorded_script.h"
#include "sim/cost/presets.h"
#include "tests/catch.h"
#include "tests/contents.h"

namespace rollcall::predict::script_prediction_test {
namespace {

using nlohmann::json;
using scenario::OrderedJson;
using test::contents;

const std::string data = ROLLCALL_SOURCE_DIR "/tests/data/torch_2_14/";
const OrderedJson h100 = "h100-8";

const std::string header =
    R"({"rollcall_record":1,"rank":0,"world_size":1,"mode":"fake","torch":"2.14.1","script":"train.py",)"
    R"("folder":"/job"})"
    "\n"
    R"({"init":{"backend":"nccl"}})"
    "\n"
    R"({"call":0,"op":"all_reduce","group":0,"numel":[4],"dtype":"float32","reduce":"SUM",)"
    R"("site":{"file":"/job/train.py","line":7,"function":"f","reason":"ddp.bucket"}})"
    "\n"
    R"({"call":1,"op":"all_reduce","group":0,"numel":[8],"dtype":"float32","reduce":"SUM",)"
    R"("site":{"file":"/job/train.py","line":7,"function":"f","reason":"ddp.bucket"}})"
    "\n"
    // Elementwise kernels reach 85 % of an H100 SXM's 3350 GB/s: each of these takes a millisecond.
    R"({"kernel":0,"kind":"elementwise","bytes":2847500000,"phase":"forward","count":3})"
    "\n"
    R"({"kernel":1,"kind":"elementwise","bytes":2847500000,"phase":"backward","count":3})"
    "\n"
    R"({"kernel":2,"kind":"elementwise","bytes":2847500000,"phase":"optimizer","count":3})"
    "\n"
    R"({"kernel":3,"kind":"matmul","dtype":"bfloat16","flops":794488200000,"bytes":8,"phase":"backward","count":1})"
    "\n";

traces::ScriptRecord job(const std::string& text, Rank world_size = 1) {
  traces::ScriptRecord record;
  for (Rank rank = 0; rank < world_size; ++rank) {
    record.ranks.push_back(traces::read_script_rank(text));
    record.ranks.back().rank = rank;
    record.ranks.back().world_size = world_size;
  }
  return record;
}

struct Run {
  scenario::RecordedScript script;
  ScriptPrediction prediction;
};

Run predicted(const traces::ScriptRecord& record) {
  Run run;
  run.script = scenario::recorded_script(record, "recorded.json", nullptr, true, &h100);
  run.prediction = script_prediction(run.script.report, record);
  return run;
}

json program_of(const std::string& scenario) {
  return json::parse(scenario, nullptr, true, true).at("program");
}

std::string words_of(const json& program) {
  std::string words;
  for (const json& statement : program) {
    const std::string name = statement.begin().key();
    words += " " + (name == "kernel" ? statement["kernel"].value("name", "") : name);
  }
  return words;
}

}  // namespace

TEST_CASE("a step is from one optimizer's end to the next, and every kernel counts", "[record][predict]") {
  const std::string step = "[\"k\",0]\n[\"k\",1]\n[\"k\",2]\n";
  const Run run = predicted(
      job(header + "[\"c\",0]\n" + step + step + step + "[\"k\",0]\n" + step + "{\"end\":\"finished\"}\n"));
  CHECK(run.prediction.steps == 2);
  CHECK(run.prediction.left_out == 2);
  CHECK(run.prediction.step == 3'500'000);  // the mean of 3 and 4 milliseconds
  CHECK(run.prediction.compute == 3'500'000);
  CHECK(run.prediction.idle == 0);
  CHECK(run.prediction.exposed_time() == 0);
  CHECK(run.prediction.kernels == 10.5);
}

TEST_CASE("a script that steps once has the time of its run", "[record][predict]") {
  const Run run = predicted(job(header + "[\"k\",0]\n[\"k\",1]\n[\"k\",2]\n{\"end\":\"finished\"}\n"));
  CHECK(run.prediction.steps == 0);
  CHECK(run.prediction.step == 3'000'000);
}

TEST_CASE("kernels between buckets stand between their calls, and what follows the backward waits",
          "[record][predict]") {
  const std::string backward =
      "[\"k\",3]\n[\"c\",0,1]\n[\"f\",1]\n[\"k\",3]\n[\"c\",1,2]\n[\"f\",2]\n[\"k\",1]\n";
  const Run run = predicted(job(header + "[\"k\",0]\n" + backward + "[\"k\",2]\n{\"end\":\"finished\"}\n"));
  CHECK(words_of(program_of(run.script.text)) ==
        " forward backward all_reduce backward all_reduce wait wait backward optimizer");
  CHECK(run.prediction.compute == 5'000'000);
}

TEST_CASE("a bucket that the backward computes beside is not waited for at once", "[record][predict]") {
  const std::string begin = header + "[\"k\",3]\n[\"c\",0,1]\n[\"f\",1]\n";
  const Run beside = predicted(job(begin + "[\"k\",3]\n[\"k\",2]\n{\"end\":\"finished\"}\n"));
  CHECK(words_of(program_of(beside.script.text)) == " backward all_reduce backward wait optimizer");
  const Run alone = predicted(job(begin + "[\"k\",1]\n[\"k\",2]\n{\"end\":\"finished\"}\n"));
  CHECK(words_of(program_of(alone.script.text)) == " backward all_reduce backward optimizer");
}

TEST_CASE("what a script queues on another stream runs beside its computing", "[record][predict]") {
  const std::string gather = "[\"s\",1]\n[\"c\",0]\n[\"e\",0,1]\n[\"s\",0]\n";
  const std::string end = "{\"end\":\"finished\"}\n";
  const Run beside = predicted(job(header + gather + "[\"k\",0]\n[\"v\",0,0]\n[\"k\",0]\n" + end, 8));
  CHECK(words_of(program_of(beside.script.text)) == " all_reduce record_event forward wait_event forward");
  CHECK(program_of(beside.script.text)[0]["all_reduce"]["stream"] == "s1");
  CHECK(beside.prediction.step == 2'000'000);
  const Run behind = predicted(job(header + gather + "[\"v\",0,0]\n[\"k\",0]\n[\"k\",0]\n" + end, 8));
  CHECK(behind.prediction.step > 2'000'000);
  CHECK(behind.prediction.step == 2'000'000 + behind.prediction.exposed_time());
}

TEST_CASE("a rank that computes longer is named, and the others' waiting is exposed", "[record][predict]") {
  const std::string step = "[\"k\",0]\n[\"c\",0]\n[\"k\",2]\n";
  traces::ScriptRecord record = job(header + step + step + step + "{\"end\":\"finished\"}\n", 2);
  const std::string late = "[\"k\",0]\n" + step;
  record.ranks[1] = job(header + late + late + late + "{\"end\":\"finished\"}\n", 2).ranks[1];
  const Run run = predicted(record);
  CHECK(run.prediction.slowest == RankSet{1});
  CHECK(run.prediction.slowest_compute == 3'000'000);
  REQUIRE(run.prediction.exposed.size() == 1);
  CHECK(run.prediction.exposed[0].what == "all_reduce at train.py:7");
  CHECK(run.prediction.exposed[0].waiting == 500'000);  // one of two ranks waits a millisecond
}

TEST_CASE("without a cluster a record with kernels is what it is without", "[record][predict]") {
  const std::string end = "[\"c\",0]\n{\"end\":\"finished\"}\n";
  const std::string with = scenario::recorded_script(job(header + "[\"k\",0]\n" + end), "recorded.json").text;
  CHECK(with == scenario::recorded_script(job(header + end), "recorded.json").text);
}

TEST_CASE("what does not fit a GPU says so, with who holds most", "[record][predict]") {
  const std::string memory =
      R"({"memory":{"peak":90000000000,"parts":{"activations":60000000000,"parameters":30000000000},"holders":)"
      R"([{"bytes":50000000000,"count":32,"part":"activations","site":{"file":"/job/model.py","line":16}}]}})"
      "\n";
  const traces::ScriptRecord record =
      job(header + "[\"k\",0]\n[\"k\",2]\n" + memory + "{\"end\":\"finished\"}\n");
  const Run run = predicted(record);
  const cost::Cluster small = *cost::find_cluster("h100-8").cluster;
  const cost::Cluster large = *cost::find_cluster("h200-8").cluster;
  CHECK(exceeds_memory(record, small));
  CHECK_FALSE(exceeds_memory(record, large));
  CHECK_THAT(
      text_of({run.prediction, run.script.report, record, small}),
      Contains(
          "error[does_not_fit]: rank 0 needs 83.81 GiB, and H100 SXM has 80 GiB: 3.81 GiB are missing") &&
          Contains("46.56 GiB  of activations made at model.py:16 (32 tensors)"));
  const json told = json::parse(json_of({run.prediction, run.script.report, record, small}));
  CHECK(told["verdict"] == "does_not_fit");
  CHECK(told["memory"]["holders"][0]["site"] == "model.py:16");
}

TEST_CASE("recorded steps have the operations that torch's FlopCounterMode counts", "[record][predict]") {
  const json costs = json::parse(contents(data + "step_costs.json"));
  for (const std::string name : {"mlp_sgd_ddp", "convolution_sgd_ddp", "attention_sgd_ddp",
                                 "transformer_adam_ddp", "transformer_sgd_fsdp"}) {
    INFO(name);
    const bool is_sharded = name.ends_with("fsdp");
    const Run run = predicted(job(contents(data + "steps/" + name + ".jsonl"), is_sharded ? 8 : 1));
    CHECK(run.prediction.steps == 1);
    CHECK(run.prediction.flops == costs["flops"].at(name.substr(0, name.find('_'))).get<double>());
  }
}

TEST_CASE("recorded steps take the memory that torch's MemTracker counts", "[record][predict]") {
  const json costs = json::parse(contents(data + "step_costs.json"));
  for (const auto& [name, peak] : costs["peaks"].items()) {
    INFO(name);
    std::string file = name;
    std::ranges::replace(file, ' ', '_');
    const traces::ScriptRank rank = traces::read_script_rank(contents(data + "steps/" + file + ".jsonl"));
    CHECK(static_cast<double>(rank.memory.peak) == Approx(peak.get<double>()).epsilon(0.01));
  }
}

}  // namespace rollcall::predict::script_prediction_test
