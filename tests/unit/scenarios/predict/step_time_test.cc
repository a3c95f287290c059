// Training steps of transformers: which times add up, what has to be slower or larger, and what is refused.

#include "scenarios/predict/step_time.h"

#include <algorithm>
#include <string>

#include "scenarios/predict/step_words.h"
#include "sim/cost/presets.h"
#include "tests/catch.h"

namespace rollcall::predict::step_time_test {
namespace {

StepQuestion question(const std::string& layout, const std::string& model = "llama3-8b",
                      const char* cluster = "h100-8") {
  return {.model = parse_transformer(model),
          .layout = parse_layout(layout),
          .cluster = *cost::find_cluster(cluster).cluster};
}
StepPrediction step(const std::string& layout, const std::string& model = "llama3-8b",
                    const char* cluster = "h100-8") {
  return predict_step(question(layout, model, cluster));
}

std::string problem(const std::string& layout, const std::string& model = "llama3-8b") {
  try {
    step(layout, model);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("sizes of known models are those of their papers", "[predict]") {
  CHECK(parse_transformer("llama3-8b").parameters() == Approx(8.03e9).epsilon(0.001));
  CHECK(parse_transformer("llama3-70b").parameters() == Approx(70.55e9).epsilon(0.001));
  CHECK(parse_transformer("llama3-405b").parameters() == Approx(405.8e9).epsilon(0.001));
  CHECK(parse_transformer("gpt3-175b").parameters() == Approx(174.6e9).epsilon(0.005));
  CHECK(parse_transformer("llama3-8b,sequence=4096").sequence == 4096);
}

TEST_CASE("a step is what its rank spends it on", "[predict][fiber]") {
  for (const char* layout : {"fsdp=8", "zero1=4,tp=2,microbatches=3", "fsdp=2,tp=2,pp=4,microbatches=8",
                             "ddp=1,pp=8,schedule=Interleaved1F1B,stages=2,microbatches=40"}) {
    const StepPrediction prediction = step(layout);
    CAPTURE(layout);
    for (const StageTime& stage : prediction.stages) {
      CHECK(stage.compute + stage.recompute + stage.optimizer + stage.tensor + stage.context + stage.gathers +
                stage.reduces + stage.pipeline ==
            prediction.step);
    }
  }
}

TEST_CASE("a long step is continued as the simulator would go on", "[predict][fiber]") {
  // 3 rounds are simulated completely. If there are more, 2 and 3 rounds are simulated; each further round takes as
  // long as the one before.
  const auto at = [](int microbatches) {
    return step("ddp=1,pp=4,microbatches=" + std::to_string(microbatches)).step;
  };
  CHECK(at(20) - at(16) == at(16) - at(12));
  CHECK(at(16) - at(12) == at(12) - at(8));
}

TEST_CASE("less memory, more work: recomputing is slower and smaller", "[predict][fiber]") {
  const StepPrediction none = step("fsdp=64");
  const StepPrediction selective = step("fsdp=64,recompute=selective");
  const StepPrediction full = step("fsdp=64,recompute=full");
  CHECK(none.step < selective.step);
  CHECK(selective.step < full.step);
  CHECK(none.memory.front().bytes() > selective.memory.front().bytes());
  CHECK(selective.memory.front().bytes() > full.memory.front().bytes());
}

TEST_CASE("float8, compiling and a later GPU make a step faster", "[predict][fiber]") {
  const Duration eager = step("fsdp=8,eager").step;
  CHECK(step("fsdp=8").step < eager);
  CHECK(step("fsdp=8,float8").step < step("fsdp=8").step);
  CHECK(step("fsdp=8", "llama3-8b", "b200-8").step < step("fsdp=8").step);
  CHECK(step("fsdp=8", "llama3-8b", "a100-8").step > step("fsdp=8").step);
}

TEST_CASE("the bubble is that of the schedule", "[predict][fiber]") {
  const auto bubble = [](const StepPrediction& prediction) {
    const auto& first = prediction.stages.front();
    return static_cast<double>(first.pipeline) / static_cast<double>(prediction.step);
  };
  // At least (p - 1) / (m + p - 1) of the step.
  CHECK(bubble(step("ddp=1,pp=4,microbatches=4")) > 3.0 / 7);
  CHECK(bubble(step("ddp=1,pp=4,microbatches=16")) < bubble(step("ddp=1,pp=4,microbatches=4")));
  CHECK(bubble(step("ddp=1,pp=4,schedule=Interleaved1F1B,stages=2,microbatches=4")) <
        bubble(step("ddp=1,pp=4,microbatches=4")));
}

TEST_CASE("a model that is too large does not fit, and the largest holder comes first", "[predict][fiber]") {
  const StepPrediction alone = step("ddp=1", "llama3-70b");
  CHECK_FALSE(alone.fits());
  CHECK(alone.memory.front().holders.front().what == "optimizer");
  CHECK_THAT(step_text(question("ddp=1", "llama3-70b"), alone),
             StartsWith("error[does_not_fit]: the fullest rank needs 1."));
  CHECK_THAT(step_json(question("ddp=1", "llama3-70b"), alone), Contains(R"("verdict": "does_not_fit")"));
  CHECK(step("fsdp=64,recompute=full").fits());
}

TEST_CASE("one slow rank, or one with longer sequences, costs all of them", "[predict][fiber]") {
  const StepQuestion many = question("fsdp=1024,microbatch=2,recompute=full");
  const StepPrediction even = predict_step(many);
  const StepVariant slow = predict_variant(many, "slow=5%");
  const StepVariant longer = predict_variant(many, "longer=5%");
  CHECK(static_cast<double>(slow.prediction.step) / static_cast<double>(even.step) ==
        Approx(1.05).margin(0.003));
  // Attention grows with the square of the length.
  CHECK(longer.prediction.step > slow.prediction.step);
  CHECK(longer.prediction.tokens == even.tokens);
  CHECK(slow.lost == Approx(static_cast<double>(slow.prediction.step - even.step) / 1e9 * 1024));
}

TEST_CASE("what does not go together is refused, with the reason", "[predict][fiber]") {
  CHECK(problem("pp=64") == "32 layers do not fill 64 stages");
  CHECK(problem("tp=3") == "32 heads cannot be divided by tp=3");
  CHECK(problem("cp=3") == "a sequence of 8192 cannot be divided by cp=3");
  CHECK_THAT(problem("fdsp=8"), StartsWith("unknown 'fdsp=8' (did you mean 'fsdp'?)"));
  CHECK_THAT(problem("tp=0"), StartsWith("tp= takes a whole number"));
  CHECK_THAT(problem("recompute=some"), StartsWith("recompute= takes none"));
  CHECK_THAT(problem("fsdp=8", "llama3-8"),
             StartsWith("unknown model 'llama3-8' (did you mean 'llama3-8b'?)"));
  CHECK(problem("fsdp=8", "layers=2,hidden=64,heads=4") == "a model needs vocab=");
  CHECK(problem("fsdp=8", "llama3-8b,heads=3") == "hidden=4096 cannot be divided by heads=3");
  CHECK(problem("pp=2,schedule=1F1B,stages=2,microbatches=4") != "nothing");
}

}  // namespace rollcall::predict::step_time_test
