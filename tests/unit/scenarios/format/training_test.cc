// Models, optimizers and datasets in scenario files: what is accepted, what is refused, and what a run does.

#include <map>
#include <string>

#include "scenarios/run/runner.h"
#include "sim/report/report.h"
#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::training_test {

using test::problem;

namespace {

const std::string objects = R"("objects": {
  "model": {"kind": "ddp", "parameters": [{"name": "w", "numel": 4}, {"name": "b", "numel": 2}]},
  "optimizer": {"kind": "zero", "of": "model", "lr": 0.5}},)";

std::string quartet(const std::string& statements, const std::string& more = "") {
  return test::quartet(statements, more + objects);
}

Report run_text(const std::string& text) { return run(parse_scenario(text, "test.json")); }

std::string word(const std::string& text) { return std::string(verdict_word(run_text(text).verdict)); }

}  // namespace

TEST_CASE("a model's description is checked where it stands", "[scenarios]") {
  const auto model = [](const std::string& keys) {
    return problem(test::quartet("", R"("objects": {"m": {"kind": "ddp")" + keys + "}},"));
  };
  CHECK(model("") == "/objects/m: a model needs \"parameters\", such as [1000, \"25MiB\"]");
  CHECK(model(R"(, "parameters": [{"numel": 1, "bytes": "1MiB"}])") ==
        "/objects/m/parameters/0: give one of \"numel\", \"shape\" and \"bytes\"");
  CHECK(model(R"(, "parameters": [1], "of": "x")") ==
        "/objects/m/of: an object of kind \"ddp\" has no \"of\"; it takes kind, group, parameters, buffers, "
        "bucket_cap, bucket_cap_mb_list, first_bucket, broadcast_buffers, forward_sync_buffers, "
        "find_unused_parameters, skip_all_reduce_unused_params, gradient_as_bucket_view, static_graph, "
        "comm_hook, forward_time, backward_time, tokens");
  CHECK(model(R"(, "parameters": [1], "bucket_cap": "25")").starts_with("/objects/m/bucket_cap: "));
}

TEST_CASE("a model of an older PyTorch has no newer arguments", "[scenarios]") {
  for (const std::string argument : {R"("bucket_cap_mb_list": [1, 25])", R"("forward_sync_buffers": true)",
                                     R"("skip_all_reduce_unused_params": true)"}) {
    const std::string key = argument.substr(1, argument.find(':') - 2);
    const auto found = problem(test::quartet("", R"("torch": "2.6", "objects": {"m": {"kind": "ddp",
        "parameters": [1], )" + argument + "}},"));
    CHECK(found == "/objects/m/" + key + ": DistributedDataParallel of PyTorch 2.6 has no argument \"" + key +
                       "\"; 2.14 has it");
  }
}

TEST_CASE("a list of caps makes buckets, and a bucket of unused parameters is skipped",
          "[scenarios][fiber]") {
  const auto makes = [](int reductions, const std::string& keys) {
    const Report report = run_text(
        test::quartet(R"({"forward": "m", "unused": ["b"]}, {"backward": "m", "unused": ["b"]})",
                      R"("expect": {"counts": {"0": {"all_reduce": )" + std::to_string(reductions) + R"(}}},
           "objects": {"m": {"kind": "ddp", "find_unused_parameters": true, )" +
                          keys + R"(
           "parameters": [{"name": "a", "numel": 4}, {"name": "b", "numel": 4}]}},)"));
    return report.expected == true;
  };
  CHECK(makes(3, R"("bucket_cap_mb_list": [0.000001], )"));  // two buckets and the map
  CHECK(makes(2, R"("bucket_cap_mb_list": [25], )"));
  CHECK(makes(2, R"("bucket_cap_mb_list": [0.000001], "skip_all_reduce_unused_params": true,)"));
}

TEST_CASE("an optimizer belongs to a model that stands before it", "[scenarios]") {
  CHECK(problem(test::quartet("", R"("objects": {"o": {"kind": "zero"}},)")) ==
        "/objects/o: \"of\" is missing: the model whose parameters are optimized");
  CHECK(problem(test::quartet("", R"("objects": {"o": {"kind": "zero", "of": "o"}},)")) ==
        "/objects/o/of: \"o\" is not a model defined before this object");
}

TEST_CASE("training statements want objects of the right kind and parameters that exist", "[scenarios]") {
  CHECK(problem(quartet(R"({"backward": "optimizer"})")) ==
        "/program/0/backward: \"backward\" needs an object of kind \"ddp\", \"fsdp\" or \"fully_shard\"");
  CHECK(problem(quartet(R"({"step": "model"})")) ==
        "/program/0/step: \"step\" needs an object of kind \"zero\", \"optimizer\", \"pipeline\" or "
        "\"tensor_parallel\"");
  CHECK(problem(quartet(R"({"backward": "model", "unused": ["ww"]})")) ==
        "/program/0/unused/0: \"model\" has no parameter \"ww\" that requires a gradient -> w");
}

TEST_CASE("a fully_shard's units are found by name, and mistakes in it are shown where they stand",
          "[scenarios]") {
  const auto with = [](const std::string& object, const std::string& statement) {
    return problem(test::quartet(statement, R"("objects": {"m": {"kind": "fully_shard")" + object + "}},"));
  };
  const std::string units = R"(, "units": [{"name": "layers.0", "parameters": [4]}, [8]])";
  CHECK(with(units, R"({"unshard": "m", "unit": "layers.0"})") == "0 problems: ");
  CHECK(with(units, R"({"forward": "m", "unused": ["1"]})") == "0 problems: ");
  CHECK(with(units, R"({"unshard": "m", "unit": "layer.0"})") ==
        "/program/0/unit: \"m\" has no unit \"layer.0\" -> layers.0");
  CHECK(with(units, R"({"forward": "m", "unused": ["2"]})") ==
        "/program/0/unused/0: \"m\" has no unit \"2\"");
  CHECK(with(units, R"({"set_is_last_backward": "m"})") ==
        "/program/0: \"set_is_last_backward\" needs \"value\"");
  CHECK(with("", "") ==
        "/objects/m: a sharded model needs \"units\", such as [[1000], [\"25MiB\"]], or a \"root\"");
  CHECK(with(R"(, "units": [{"name": "a", "parameters": [4]}, {"name": "a", "parameters": [4]}])", "") ==
        "/objects/m/units/1: there is a unit called \"a\" already");
  CHECK(with(R"(, "units": [{"name": "a"}])", "") ==
        "/objects/m/units/0: a unit needs \"parameters\", such as [1000, \"25MiB\"]");
  CHECK(problem(quartet(R"({"unshard": "model"})")) ==
        "/program/0/unshard: \"unshard\" needs an object of kind \"fully_shard\"");
  CHECK(
      problem(test::quartet("", R"("objects": {"m": {"kind": "fsdp", "units": [{"parameters": [4]}]}},)")) ==
      "/objects/m/units/0: a unit of an object of kind \"fsdp\" is a list of parameters");
}

TEST_CASE("a fully_shard gathers units in their order, one ahead in backward, and averages gradients",
          "[fiber][scenarios][fsdp]") {
  const std::string objects = R"("objects": {
    "m": {"kind": "fully_shard", "units": [[4], [8], [12]]}, "o": {"kind": "optimizer", "of": "m", "lr": 1}},)";
  const Scenario scenario = parse_scenario(
      test::quartet(R"({"forward": "m"}, {"backward": "m", "value": "rank"}, {"clip_grad_norm": "m"},
                       {"step": "o"}, {"state_dict": "m"})",
                    objects),
      "test.json");
  const Report report = run(scenario, {.timeline = true});
  std::map<std::int64_t, std::string> labels;
  for (const Span& span : report.timeline.spans()) {
    if (span.rank == 0 && span.moves_data()) {
      labels[span.seq] = report.timeline.name(span.label);
    }
  }
  std::string sequence;
  for (const auto& [seq, label] : labels) {
    sequence += label + "; ";
  }
  CHECK(verdict_word(report.verdict) == "ok");
  CHECK(sequence ==
        "FSDP::all_gather (0); FSDP::all_gather (1); FSDP::all_gather (2); FSDP::all_gather (2); "
        "FSDP::all_gather (1); FSDP::post_backward_reduce (2); FSDP::all_gather (0); "
        "FSDP::post_backward_reduce (1); FSDP::post_backward_reduce (0); DTensor.clip_grad_norm_; "
        "DTensor.full_tensor; DTensor.full_tensor; DTensor.full_tensor; ");
}

TEST_CASE("sharded parameters of complex types are refused by the ranks", "[fiber][scenarios][fsdp]") {
  for (const std::string kind : {"fsdp", "fully_shard"}) {
    const Report report = run_text(test::quartet(
        R"({"forward": "m"})", R"("objects": {"m": {"kind": ")" + kind +
                                   R"(", "units": [[{"name": "w", "numel": 4, "dtype": "complex64"}]]}},)"));
    CHECK(verdict_word(report.verdict) == "rank_failed");
    CHECK_THAT(finding_of(report.verdict)->headline, Contains("sharded parameters of complex types"));
  }
}

TEST_CASE("a norm is a number", "[scenarios][fsdp]") {
  const auto clip = [](const std::string& keys) {
    return problem(test::quartet(R"({"clip_grad_norm": "m")" + keys + "}",
                                 R"("objects": {"m": {"kind": "fully_shard", "units": [[4]]}},)"));
  };
  CHECK(clip(R"(, "max_norm": "big")") ==
        "/program/0/max_norm: expected the largest norm as a number, found a string");
  CHECK(clip(R"(, "max_norm": [1])") ==
        "/program/0/max_norm: expected the largest norm as a number, found an array");
  CHECK(clip(R"(, "max_norm": "nan")") ==
        "/program/0/max_norm: expected the largest norm as a number, found a string");
  CHECK(clip(R"(, "max_norm": -1)") == "/program/0/max_norm: the largest norm cannot be negative");
  CHECK(clip(R"(, "norm_type": {})") ==
        "/program/0/norm_type: expected the type of the norm as a number, found an object");
}

TEST_CASE("inputs follow from a data set, a batch size and a sampler", "[scenarios]") {
  const auto inputs = [](const std::string& text) {
    const Scenario scenario = parse_scenario(test::quartet("", R"("inputs": )" + text + ","), "test.json");
    std::vector<std::int64_t> list;
    for (Rank rank = 0; rank < 4; ++rank) {
      list.push_back(scenario.inputs.of(rank));
    }
    return list;
  };
  using List = std::vector<std::int64_t>;
  CHECK(inputs(R"({"dataset": 103, "batch_size": 4})") == List{7, 7, 7, 7});
  CHECK(inputs(R"({"dataset": 103, "batch_size": 4, "drop_last": true})") == List{6, 6, 6, 6});
  CHECK(inputs(R"({"dataset": 103, "batch_size": 5, "sampler": {"drop_last": true}})") == List{5, 5, 5, 5});
  CHECK(inputs(R"({"dataset": 101, "batch_size": 5, "sampler": {"kind": "shard"}})") == List{6, 5, 5, 5});
  CHECK(problem(test::quartet("", R"("inputs": {"dataset": 1, "base": 2},)")) ==
        "/inputs/base: give either \"dataset\" or \"base\"");
  CHECK(problem(test::quartet("", R"("inputs": {"base": 2, "batch_size": 2},)")) ==
        "/inputs/batch_size: \"batch_size\" needs \"dataset\"");
}

TEST_CASE("a data set of more samples than any has is refused at once", "[scenarios]") {
  const auto inputs = [](const std::string& samples) {
    return problem(test::quartet(
        "", R"("inputs": {"dataset": )" + samples + R"(, "sampler": {"seed": [0, 1, 2, 3]}},)"));
  };
  CHECK(inputs("9223372036854775807") == "/inputs/dataset: must be at most 1000000000000");
  CHECK(inputs("1000000000") ==
        "/inputs/sampler/seed: with a seed per rank, at most 10000000 samples are supported, found "
        "1000000000; scale the dataset down, and the batches with it");
}

TEST_CASE("a sharded optimizer under Join goes on with old gradients where inputs are uneven",
          "[fiber][scenarios]") {
  const std::string loop = R"("do": [{"for_each_input": "i", "do": [
      {"forward": "model"}, {"backward": "model"}, {"step": "optimizer"}]}]})";
  const std::string inputs = R"("inputs": [1, 3, 2, 2],)";
  const std::string both = R"({"join": ["model", "optimizer"], )" + loop;
  CHECK(word(quartet(both, R"("inputs": 2,)")) == "ok");
  const Report report = run_text(quartet(both, inputs));
  const auto& wrong = std::get<WrongResult>(report.verdict);
  CHECK(wrong.finding.kind == FindingKind::stale_shard);
  CHECK_FALSE(wrong.finding.culprits.empty());
  CHECK_FALSE(wrong.finding.culprits.contains(1));  // the last to join
  CHECK(word(quartet(R"({"join": ["optimizer", "model"], )" + loop, inputs)) != "ok");
  CHECK(word(quartet(R"({"join": ["model"], )" + loop, inputs)) != "ok");
}

TEST_CASE("inside no_sync a backward communicates nothing", "[fiber][scenarios]") {
  const auto ops = [](const std::string& statements) { return run_text(quartet(statements)).ops; };
  const std::string pass = R"({"forward": "model"}, {"backward": "model"})";
  const std::int64_t construction = ops("");
  CHECK(ops(R"({"no_sync": "model", "do": [)" + pass + "]}") == construction);
  CHECK(ops(pass) == construction + 4);
}

TEST_CASE("a module's own collectives run inside its forward", "[fiber][scenarios]") {
  const Report report = run_text(quartet(
      R"({"forward": "model", "do": [{"all_reduce": "t", "value": 1}]}, {"check": "t", "value": 4})"));
  CHECK(verdict_word(report.verdict) == "ok");
}

TEST_CASE("a sharded model gathers and reduces its units, and cannot be joined", "[fiber][scenarios]") {
  const auto sharded = [](const std::string& statements, const std::string& strategy) {
    return run_text(test::quartet(statements, R"("objects": {"m": {"kind": "fsdp", "strategy": ")" +
                                                  strategy +
                                                  R"(", "units": [[1000], [3, "1MiB"]]},
      "o": {"kind": "optimizer", "of": "m"}},)"));
  };
  const std::string step = R"({"forward": "m"}, {"backward": "m"}, {"step": "o"}, {"zero_grad": "o"})";
  CHECK(sharded(step, "FULL_SHARD").ops == 4 * (2 + 1 + 2));  // the root is gathered once
  CHECK(sharded(step, "SHARD_GRAD_OP").ops == 4 * (2 + 2));
  CHECK(sharded(step, "NO_SHARD").ops == 4 * 2);
  CHECK(sharded(R"({"no_sync": "m", "do": [)" + step + "]}", "NO_SHARD").ops == 0);
  const Report joined = sharded(R"({"join": ["m"], "do": [)" + step + "]}", "FULL_SHARD");
  CHECK(joined.of(0).exception ==
        "AttributeError: 'FullyShardedDataParallel' object has no attribute 'join_hook'");
}

TEST_CASE("a hybrid model shards inside one group and reduces across the other", "[fiber][scenarios][fsdp]") {
  const auto hybrid = [](const std::string& keys, const std::string& mesh = "[2, 2]") {
    return run_text(test::quartet(R"({"forward": "m"}, {"backward": "m"})",
                                  R"("mesh": {"shape": )" + mesh + R"(, "dim_names": ["replicate", "shard"]},
      "objects": {"m": {"kind": "fsdp", "units": [[1000], [3, "1MiB"]], )" +
                                      keys + "}},"));
  };
  const std::string groups = R"("group": "shard", "replicate_group": "replicate")";
  // One all_gather of the root, two of the unit, and two calls for each gradient.
  CHECK(hybrid(R"("strategy": "HYBRID_SHARD", )" + groups).ops == 4 * (1 + 2 + 4));
  CHECK(hybrid(R"("strategy": "_HYBRID_SHARD_ZERO2", )" + groups).ops == 4 * (2 + 4));
}

TEST_CASE("mixed precision of a sharded model is that of its calls", "[fiber][scenarios][fsdp]") {
  // Rank 0 reaches the reduce_scatter when the others have left.
  const auto waiting_in = [](const std::string& policy) {
    const Report report = run_text(test::quartet(
        R"({"forward": "m"}, {"if": "rank == 0", "do": [{"backward": "m"}]})",
        R"("objects": {"m": {"kind": "fsdp", "strategy": "SHARD_GRAD_OP", "units": [[8]], "mixed_precision": )" +
            policy + "}},"));
    return report.of(0).call->dtype;
  };
  CHECK(waiting_in(R"({"param_dtype": "bfloat16"})") == "bfloat16");
  CHECK(waiting_in(R"({"param_dtype": "bfloat16", "reduce_dtype": "float32"})") == "float32");
  CHECK(waiting_in(R"({"reduce_dtype": "float16"})") == "float16");
}

TEST_CASE("a rank outside a model's group has no such model", "[fiber][scenarios]") {
  const Report report = run_text(test::quartet(R"({"forward": "m"})", R"("groups": {"pair": [0, 1]},
      "objects": {"m": {"kind": "ddp", "group": "pair", "parameters": [1]}},)"));
  CHECK(report.of(0).state == RankClass::State::finished);
  CHECK(report.of(2).exception == "NameError: name 'm' is not defined: rank 2 does not belong to its group");
}

}  // namespace rollcall::scenario::training_test
