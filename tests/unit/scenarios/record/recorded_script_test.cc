// Handmade records, which become scenarios and reports.

#include "scenarios/record/recorded_script.h"

#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/report/rank_set.h"
#include "tests/catch.h"

namespace rollcall::scenario::recorded_script_test {
namespace {

constexpr const char* call_site = R"("site":{"file":"/job/train.py","line":7,"function":"train"})";

// Returns the record of one rank with these lines, after the usual beginning.
std::string record_of(Rank rank, Rank world_size, const std::vector<std::string>& lines,
                      const std::string& backend = "gloo") {
  std::string text = fmt::format(
      R"({{"rollcall_record":1,"rank":{},"world_size":{},"mode":"simulator","torch":"2.6.0","script":"train.py",)"
      R"("folder":"/job"}})"
      "\n"
      R"({{"init":{{"backend":"{}"}}}})"
      "\n",
      rank, world_size, backend);
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

std::string call(int number, const std::string& op,
                 const std::string& more = R"("numel":[4],"dtype":"float32")") {
  return fmt::format(R"({{"call":{},"op":"{}",{},{}}})", number, op, more, call_site);
}

// The same, made by a function of torch that the line calls; empty if the line makes it itself.
std::string call_at(int line, const std::string& op, const std::string& reason = "", int number = 0) {
  return fmt::format(R"({{"call":{},"op":"{}","numel":[4],"dtype":"float32","root":0,)"
                     R"("site":{{"file":"/job/train.py","line":{},"function":"<module>","reason":"{}"}}}})",
                     number, op, line, reason);
}

// Returns the line of a rank whose optimizers have stepped 40 times.
std::string updated(const std::string& digest) {
  return fmt::format(R"({{"updated":{{"parameters":124,"steps":40,"digest":"{}",{}}}}})", digest, call_site);
}

const std::string finished = R"({"end":"finished"})";
const std::string stuck = R"({"stack":[["/job/train.py",7,"train"]]})";

traces::ScriptRecord job(const std::vector<std::string>& ranks) {
  traces::ScriptRecord record;
  for (const std::string& text : ranks) {
    record.ranks.push_back(traces::read_script_rank(text));
  }
  return record;
}

RecordedScript scripted(const std::vector<std::string>& ranks, const Report* run = nullptr) {
  return recorded_script(job(ranks), "recorded.json", run);
}

const Finding& finding(const RecordedScript& script) {
  REQUIRE(finding_of(script.report.verdict) != nullptr);
  return *finding_of(script.report.verdict);
}

}  // namespace

// ---- Calls that torch refused ----

TEST_CASE("a call that was refused and caught is an exception that nobody else notices",
          "[scenarios][record]") {
  const std::string scatter = call(0, "scatter", R"("numel":[],"out_numel":[1],"dtype":"float32","root":0)");
  const RecordedScript script = scripted(
      {record_of(0, 2, {scatter, R"(["c",0])", R"(["x","RuntimeError","list too short",true])", finished}),
       record_of(1, 2, {scatter, R"(["c",0])", stuck})});
  CHECK_THAT(script.text,
             Contains(R"({"try": {"do": [{"raise": {"type": "RuntimeError", "message": "list too short")"));
  CHECK(verdict_word(script.report.verdict) == "deadlock");
  CHECK(script.report.of(1).state == RankClass::State::waiting);
}

TEST_CASE("where every rank's own call was refused, nothing is left of it", "[scenarios][record]") {
  std::vector<std::string> ranks;
  for (const Rank rank : {0, 1}) {
    const std::string scatter =
        call(0, "scatter", fmt::format(R"("numel":[],"out_numel":[1],"dtype":"float32","root":{})", rank));
    ranks.push_back(record_of(rank, 2,
                              {scatter, R"(["c",0])", R"(["x","ValueError","bad list",true])",
                               call(1, "barrier", R"("tag":0)"), R"(["c",1])", finished}));
  }
  CHECK(verdict_word(scripted(ranks).report.verdict) == "ok");
}

TEST_CASE("a refusal that ended the script leaves the others waiting", "[scenarios][record]") {
  const std::string scatter = call(0, "scatter", R"("numel":[1],"out_numel":[1],"dtype":"float32","root":0)");
  const RecordedScript script =
      scripted({record_of(0, 2,
                          {scatter, R"(["c",0,0])", R"(["w",0])", R"(["x","RuntimeError","no",true])",
                           R"({"end":"raised","type":"RuntimeError","message":"no"})"}),
                record_of(1, 2, {scatter, R"(["c",0])", stuck})});
  CHECK(script.report.of(0).state == RankClass::State::raised);
  CHECK(script.report.of(1).state == RankClass::State::waiting);
}

TEST_CASE("lists that torch refuses are found in the record of a rank that ran alone",
          "[scenarios][record]") {
  const auto scatters = [](Rank rank, const std::string& given) {
    return record_of(
        rank, 2,
        {call(0, "scatter", fmt::format(R"("numel":[{}],"out_numel":[1],"dtype":"float32","root":0)", given)),
         R"(["c",0])", finished});
  };
  CHECK(refused_places(job({scatters(0, "1"), scatters(1, "")})) == std::vector<std::string>{"train.py:7"});
  CHECK(refused_places(job({scatters(0, "1,1"), scatters(1, "")})).empty());

  const auto gathers = [](const std::string& group, const std::string& filled) {
    const std::string made = call(0, "new_group", R"("group":1,"ranks":[0,1,2])");
    const std::string gather =
        call(1, "all_gather",
             fmt::format(R"("group":{},"numel":[1],"out_numel":[{}],"dtype":"float32")", group, filled));
    return record_of(0, 4, {made, R"(["c",0])", gather, R"(["c",1])", finished});
  };
  CHECK(refused_places(job({gathers("0", "1,1,1,1")})).empty());
  CHECK(refused_places(job({gathers("0", "1,1,1")})).size() == 1);
  CHECK(refused_places(job({gathers("1", "1,1,1")})).empty());
}

// ---- Labels ----

TEST_CASE("lines that meet have one label with all of them, and no rank is said to be at another's line",
          "[scenarios][record]") {
  const auto broadcasts = [](Rank rank, int line) {
    return record_of(rank, 2,
                     {call_at(line, "broadcast"), R"(["c",0])",
                      fmt::format(R"({{"call":1,"op":"all_reduce","numel":[{}],"dtype":"float32",{}}})",
                                  rank + 1, call_site),
                      R"(["c",1])", stuck});
  };
  const RecordedScript script = scripted({broadcasts(0, 3), broadcasts(1, 4)});
  CHECK_THAT(script.text, Contains(R"("label": "train.py:3 or 4", "site": "train.py:3")") &&
                              Contains(R"("label": "train.py:3 or 4", "site": "train.py:4")"));
}

TEST_CASE("calls of different functions of torch do not belong together", "[scenarios][record]") {
  const auto gathers = [](Rank rank, const std::string& function) {
    return record_of(rank, 2,
                     {call_at(3 + rank, "all_gather", function), R"(["c",0])", call_at(9, "barrier", "", 1),
                      R"(["c",1])", stuck});
  };
  const std::string last = call_at(12, "barrier", "", 2);
  const auto with_more = [&](Rank rank, const std::string& function) {
    std::string text = gathers(rank, function);
    return rank == 0 ? text.insert(text.find(R"({"stack")"), last + "\n[\"c\",2]\n") : text;
  };
  const RecordedScript apart = scripted({with_more(0, "gather_object"), with_more(1, "all_gather_object")});
  CHECK_THAT(apart.text, Contains(R"text("label": "gather_object (train.py:3)")text") &&
                             Contains(R"text("label": "all_gather_object (train.py:4)")text"));
  const RecordedScript same = scripted({with_more(0, "gather_object"), with_more(1, "gather_object")});
  CHECK_THAT(same.text, Contains(R"text("label": "gather_object (train.py:3 or 4)")text"));
}

// ---- device_id and split_group ----

TEST_CASE("a job that is bound to its devices has eager communicators, and may split groups",
          "[scenarios][record]") {
  const auto splits = [](Rank rank, const std::string& own, int numel) {
    const std::string split =
        call(0, "split_group", fmt::format(R"("group":1,"parent":0,"parts":[[0,1],[2,3]],"ranks":{})", own));
    const std::string reduce =
        call(1, "all_reduce", fmt::format(R"("group":1,"numel":[{}],"dtype":"float32")", numel));
    std::string text = record_of(rank, 4, {split, R"(["c",0])", reduce, R"(["c",1])", finished}, "nccl");
    return text.replace(text.find(R"("backend":"nccl")"), 0, R"("eager":true,)");
  };
  const RecordedScript script =
      scripted({splits(0, "[0,1]", 4), splits(1, "[0,1]", 4), splits(2, "[2,3]", 5), splits(3, "[2,3]", 5)});
  CHECK_THAT(script.text, Contains(R"("communicators": "eager")") &&
                              Contains(R"({"split_group": {"split_ranks": [[0, 1], [2, 3]], "as": "g1")"));
  CHECK(verdict_word(script.report.verdict) == "ok");
}

// ---- Interrupted recordings ----

TEST_CASE("nobody is blamed for what an interrupted recording does not have", "[scenarios][record]") {
  const std::string barrier = call(0, "barrier", R"("tag":0)");
  const std::string asked = R"({"stack":[["/job/train.py",3,"train"]]})";
  const std::string waits = R"({"stack":[["/job/train.py",7,"train"]],"waits":true})";
  traces::ScriptRecord record =
      job({record_of(0, 2, {asked}), record_of(1, 2, {barrier, R"(["c",0])", waits})});
  CHECK(finding(recorded_script(record, "recorded.json")).kind == FindingKind::stalled);
  record.was_interrupted = true;
  const RecordedScript script = recorded_script(record, "recorded.json");
  CHECK_THAT(script.text, Contains("// The recording was interrupted") && Contains(R"("interrupted": "0")"));
  CHECK(verdict_word(script.report.verdict) == "limit_reached");
  CHECK(finding(script).kind == FindingKind::interrupted);
  CHECK(finding(script).culprits.empty());
}

// ---- How the recorded run ended ----

TEST_CASE("where the scenario does not do what the script did, the report is the recorded run's",
          "[scenarios][record]") {
  const std::vector<std::string> ranks = {record_of(0, 2, {call(0, "all_reduce"), R"(["c",0])", finished}),
                                          record_of(1, 2, {call(0, "all_reduce"), R"(["c",0])", stuck})};
  Report run;
  run.world_size = 2;
  Finding hang;
  hang.kind = FindingKind::missing_participant;
  hang.headline = "rank 0 never came";
  run.verdict = Deadlock{hang, {}};
  const RecordedScript script = scripted(ranks, &run);
  CHECK(finding(script).headline == "rank 0 never came");
  CHECK(script.report.scenario == "train.py");
  CHECK_THAT(script.text,
             Contains("// This scenario does not do what the script did: rank 1 waited in vain"));
  CHECK_THAT(script.reservation,
             Contains("in the scenario it went on") && Contains("that of the recorded run"));
}

TEST_CASE("two runs that end alike with different verdicts contradict each other", "[scenarios][record]") {
  const std::vector<std::string> ranks = {
      record_of(0, 2, {call(0, "all_reduce"), R"(["c",0])", finished}),
      record_of(1, 2, {call(0, "all_reduce", R"("numel":[4],"dtype":"int32")"), R"(["c",0])", finished})};
  Report run;
  run.world_size = 2;
  CHECK(verdict_word(scripted(ranks, &run).report.verdict) == "ok");
  run.verdict = Mismatch{};
  const RecordedScript script = scripted(ranks, &run);
  CHECK(verdict_word(script.report.verdict) == "mismatch");
  CHECK_THAT(script.text, !Contains("does not do"));
}

TEST_CASE("both the recorded run and the scenario wait for ranks that never begin the job",
          "[scenarios][record]") {
  std::string absent = record_of(1, 2, {finished});
  absent.erase(absent.find(R"({"init")"), absent.find(finished) - absent.find(R"({"init")"));
  Report run;
  run.world_size = 2;
  run.verdict = Deadlock{};
  const RecordedScript script =
      scripted({record_of(0, 2, {call(0, "all_reduce"), R"(["c",0])", stuck}), absent}, &run);
  CHECK(verdict_word(script.report.verdict) == "deadlock");
  CHECK_THAT(script.text, !Contains("does not do"));
  CHECK(to_string(finding(script).culprits) == "1");
}

TEST_CASE("a rank that waits for the end of the job has come to its end", "[scenarios][record]") {
  const std::string reduce = call(0, "all_reduce");
  const std::string destroy = call(1, "destroy_process_group", R"("group":0)");
  const std::vector<std::string> ranks = {
      record_of(0, 2, {reduce, R"(["c",0])", destroy, R"(["c",1])", finished}, "nccl"),
      record_of(1, 2, {reduce, R"(["c",0])", R"(["c",0])", stuck}, "nccl")};
  Report run;
  run.world_size = 2;
  run.verdict = Deadlock{};
  const RecordedScript script = scripted(ranks, &run);
  CHECK_THAT(script.text, !Contains("does not do"));
  CHECK(to_string(finding(script).culprits) == "0");
}

// ---- Ranks that trained apart ----

TEST_CASE("ranks that trained without a word to each other are no green run", "[scenarios][record]") {
  const std::string step = R"({"step":1})";
  const auto trained = [&](Rank rank, const std::string& digest) {
    return record_of(
        rank, 2,
        {call(0, "broadcast"), R"(["c",0])", step, call(1, "all_reduce", R"("numel":[1],"dtype":"int64")"),
         R"(["c",1])", finished, updated(digest)});
  };
  const RecordedScript apart = scripted({trained(0, "aa"), trained(1, "bb")});
  CHECK(verdict_word(apart.report.verdict) == "wrong_result");
  CHECK(finding(apart).kind == FindingKind::trained_apart);
  CHECK(finding(apart).headline == "rank 1 updated 124 parameters that rank 0 never saw");
  CHECK(finding(apart).at->call.site == "train.py:7");
  CHECK_THAT(finding(apart).advice, Contains("DistributedDataParallel") && Contains("found no GPU"));
  CHECK_THAT(apart.text, Contains("// Not in this scenario: rank 1 updated 124 parameters"));

  const RecordedScript alike = scripted({trained(0, "aa"), trained(1, "aa")});
  CHECK(verdict_word(alike.report.verdict) == "ok");
  CHECK(alike.remarks ==
        std::vector<std::string>{
            "no call carried gradients or parameters; 2 ranks trained the same model on the same data"});
}

TEST_CASE("gradients, parameters and messages between the steps are a word", "[scenarios][record]") {
  for (const std::string op : {"all_reduce", "all_gather", "broadcast"}) {
    INFO(op);
    const auto trained = [&](Rank rank) {
      return record_of(rank, 2,
                       {R"({"step":1})", call(0, op, R"("numel":[4],"out_numel":[2,2],"dtype":"bfloat16")"),
                        R"(["c",0])", finished, updated(rank == 0 ? "aa" : "bb")});
    };
    CHECK(verdict_word(scripted({trained(0), trained(1)}).report.verdict) == "ok");
  }
}

TEST_CASE("ranks on GPUs are not told to look for one", "[scenarios][record]") {
  const auto trained = [&](Rank rank) {
    return record_of(rank, 2,
                     {call(0, "barrier", R"("tag":0)"), R"(["c",0])", R"({"step":1})", finished,
                      updated(rank == 0 ? "aa" : "bb")},
                     "nccl");
  };
  CHECK_THAT(finding(scripted({trained(0), trained(1)})).advice, !Contains("GPU"));
}

// ---- Devices and DETAIL ----

TEST_CASE("a tensor on another device than the rank's own is in the scenario", "[scenarios][record]") {
  const auto reduces_on = [&](Rank rank, const std::string& device) {
    return record_of(
        rank, 2,
        {call(0, "all_reduce", fmt::format(R"("numel":[4],"dtype":"float32","device":"{}")", device)),
         R"(["c",0])", finished},
        "nccl");
  };
  const RecordedScript own = scripted({reduces_on(0, "cuda:0"), reduces_on(1, "cuda:1")});
  CHECK(verdict_word(own.report.verdict) == "ok");
  CHECK_THAT(own.text, !Contains("device"));

  const RecordedScript host = scripted({reduces_on(0, "cuda:0"), reduces_on(1, "cpu")});
  CHECK(finding(host).kind == FindingKind::cpu_tensor);
  CHECK(to_string(finding(host).culprits) == "1");
  CHECK_THAT(host.text, Contains(R"("device": "cpu")"));

  const RecordedScript same = scripted({reduces_on(0, "cuda:0"), reduces_on(1, "cuda:0")});
  CHECK(finding(same).kind == FindingKind::duplicate_gpu);
  CHECK(to_string(finding(same).culprits) == "1");
}

TEST_CASE("a rank's own GPU has its number on its host", "[scenarios][record]") {
  const auto reduces_on = [&](Rank rank, const std::string& device) {
    std::string text = record_of(
        rank, 4,
        {call(0, "all_reduce", fmt::format(R"("numel":[4],"dtype":"float32","device":"{}")", device)),
         R"(["c",0])", finished},
        "nccl");
    return text.replace(text.find(R"("mode")"), 0, R"("ranks_per_host":2,)");
  };
  const auto run = [&](const std::string& third) {
    return scripted(
        {reduces_on(0, "cuda:0"), reduces_on(1, "cuda:1"), reduces_on(2, third), reduces_on(3, "cuda:1")});
  };
  const RecordedScript own = run("cuda:0");
  CHECK(verdict_word(own.report.verdict) == "ok");
  CHECK_THAT(own.text, !Contains("device") && Contains(R"("hosts": {"node0": "0-1", "node1": "2-3"})"));
  const RecordedScript same = run("cuda:1");
  CHECK(finding(same).kind == FindingKind::duplicate_gpu);
  CHECK(to_string(finding(same).culprits) == "2");
}

TEST_CASE("tensors on the CPU are gloo's own", "[scenarios][record]") {
  const std::string reduce = call(0, "all_reduce", R"("numel":[4],"dtype":"float32","device":"cpu")");
  const RecordedScript script = scripted(
      {record_of(0, 2, {reduce, R"(["c",0])", finished}), record_of(1, 2, {reduce, R"(["c",0])", finished})});
  CHECK(verdict_word(script.report.verdict) == "ok");
  CHECK_THAT(script.text, !Contains("device"));
}

TEST_CASE("a script that ran under DETAIL becomes a scenario under DETAIL", "[scenarios][record]") {
  std::vector<std::string> ranks;
  for (const Rank rank : {0, 1}) {
    std::string text =
        record_of(rank, 2,
                  {call(0, "all_reduce", fmt::format(R"("numel":[{}],"dtype":"float32")", rank + 1)),
                   R"(["c",0])", finished});
    text.insert(1, R"("debug":"DETAIL",)");
    ranks.push_back(text);
  }
  const RecordedScript script = scripted(ranks);
  CHECK_THAT(script.text, Contains(R"("debug": "DETAIL")"));
  CHECK(script.report.of(0).state == RankClass::State::raised);
}

TEST_CASE("a release of PyTorch that is not known is taken for the one before it, and the user is told",
          "[record]") {
  const auto remarks_on = [](const std::string& torch) {
    std::string text = record_of(0, 1, {call(0, "all_reduce"), finished});
    text.replace(text.find("2.6.0"), 5, torch);
    return scripted({text}).remarks;
  };
  CHECK(remarks_on("2.6.0").empty());
  CHECK(remarks_on("2.14.1+cu130").empty());
  CHECK(remarks_on("2.9.1+cu130") ==
        std::vector<std::string>{
            "PyTorch 2.9.1+cu130 is not known here; the run is taken for one of 2.6 (known: 1.13, "
            "2.6, 2.11 and 2.14)"});
  CHECK(remarks_on("3.0.0a0") ==
        std::vector<std::string>{
            "PyTorch 3.0.0a0 is not known here; the run is taken for one of 2.14 (known: 1.13, 2.6, "
            "2.11 and 2.14)"});
}

TEST_CASE("a backend that is not known runs by the rules of Gloo, and the user is told", "[record]") {
  const auto remarks_on = [](const std::string& backend) {
    return scripted({record_of(0, 1, {call(0, "all_reduce"), finished}, backend)}).remarks;
  };
  CHECK(remarks_on("gloo").empty());
  CHECK(remarks_on("nccl").empty());
  CHECK(remarks_on("mpi") ==
        std::vector<std::string>{
            "warning: the script asks for the backend mpi, whose rules are not known here: the ranks ran by "
            "those of gloo; what mpi lets pass, refuses or reports may differ"});
}

}  // namespace rollcall::scenario::recorded_script_test
