// A predicted step, for people and for programs.

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/predict/shortage.h"
#include "scenarios/predict/step_time.h"
#include "viz/rows/phrases.h"

namespace rollcall::predict {

namespace {

using Json = nlohmann::ordered_json;

struct Column {
  const char* title;
  const char* key;
  Duration StageTime::*part;
};
constexpr Column columns[] = {
    {"compute", "compute_us", &StageTime::compute},
    {"again", "recompute_us", &StageTime::recompute},
    {"optim", "optimizer_us", &StageTime::optimizer},
    {"tensor", "tensor_parallel_us", &StageTime::tensor},
    {"context", "context_parallel_us", &StageTime::context},
    {"gather", "gather_us", &StageTime::gathers},
    {"reduce", "reduce_us", &StageTime::reduces},
    {"bubble", "bubble_us", &StageTime::pipeline},
};

std::string with_tenths(Duration time) { return fmt::format("{:.1f}", static_cast<double>(time) / 1e6); }
double gib_of(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

const StageMemory& fullest(const StepPrediction& prediction) {
  return *std::ranges::max_element(prediction.memory, {}, &StageMemory::bytes);
}

std::string shortage_text(const StageMemory& most, const cost::Gpu& gpu) {
  constexpr std::size_t shown = 3;
  std::string text = shortage_line("the fullest rank", most.bytes(), gpu);
  for (std::size_t i = 0; i < std::min(shown, most.holders.size()); ++i) {
    text += fmt::format("              {:>12}  {}\n", viz::bytes_phrase(most.holders[i].bytes),
                        most.holders[i].what);
  }
  return text;
}

}  // namespace

std::string step_text(const StepQuestion& question, const StepPrediction& prediction) {
  const Layout& layout = question.layout;
  const cost::Gpu& gpu = *gpu_of(question);
  const StageMemory& most = fullest(prediction);
  std::string text = prediction.fits() ? "" : shortage_text(most, gpu);
  text += fmt::format("{}: {:.1f}B parameters on {} GPUs ({})\n",
                      question.model.name.empty() ? "model" : question.model.name,
                      static_cast<double>(question.model.parameters()) / 1e9, prediction.gpus, gpu.name);
  text += fmt::format("  step       {} ms, {} tokens\n", with_tenths(prediction.step), prediction.tokens);
  text += fmt::format("  speed      {:.0f} tokens/s for each GPU, MFU {:.1f} %\n",
                      prediction.tokens_per_second_per_gpu(), 100 * prediction.utilization());
  text += "\n# where the time goes, by rank of the pipeline; beside compute: what nothing hides\n# rank";
  for (const Column& column : columns) {
    text += fmt::format(" {:>8}", column.title);
  }
  text += fmt::format(" {:>7}\n#     ", "memory");
  for ([[maybe_unused]] const Column& column : columns) {
    text += fmt::format(" {:>8}", "(ms)");
  }
  text += fmt::format(" {:>7}\n", "(GiB)");
  for (std::size_t rank = 0; rank < prediction.stages.size(); ++rank) {
    text += fmt::format("{:>6}", rank);
    for (const Column& column : columns) {
      text += fmt::format(" {:>8}", with_tenths(prediction.stages[rank].*column.part));
    }
    text += fmt::format(" {:>7.1f}\n", gib_of(prediction.memory[rank].bytes()));
  }
  text += fmt::format("\n  memory     {:.1f} of {:.0f} GiB on the fullest GPU:", gib_of(most.bytes()),
                      gib_of(prediction.memory_there));
  for (std::size_t i = 0; i < most.holders.size() && most.holders[i].bytes > 0; ++i) {
    text += fmt::format("{}\n             {:.1f} {}", i == 0 ? "" : ",", gib_of(most.holders[i].bytes),
                        most.holders[i].what);
  }
  return text +
         fmt::format(
             "\n  from       a roofline of the {}; calls as NCCL's tuner and measurements say\n"
             "             (docs/step-time.md says how far off published steps are)\n",
             gpu.name) +
         (layout.pp > 1 ? "  assumed    all replicas do the same; stages of equal layers\n"
                        : "  assumed    all ranks do the same\n");
}

std::string step_json(const StepQuestion& question, const StepPrediction& prediction) {
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < prediction.stages.size(); ++rank) {
    Json row = {{"rank", rank}};
    for (const Column& column : columns) {
      row[column.key] = static_cast<double>(prediction.stages[rank].*column.part) / 1000;
    }
    Json holders = Json::object();
    for (const Holder& holder : prediction.memory[rank].holders) {
      holders[holder.what] = holder.bytes;
    }
    row["memory_bytes"] = prediction.memory[rank].bytes();
    row["memory"] = std::move(holders);
    ranks.push_back(std::move(row));
  }
  const Json object = {{"schema_version", 1},
                       {"model", question.model.name},
                       {"gpu", gpu_of(question)->name},
                       {"gpus", prediction.gpus},
                       {"verdict", prediction.fits() ? "ok" : shortage_verdict()},
                       {"step_us", static_cast<double>(prediction.step) / 1000},
                       {"tokens", prediction.tokens},
                       {"tokens_per_second_per_gpu", prediction.tokens_per_second_per_gpu()},
                       {"model_flops_utilization", prediction.utilization()},
                       {"memory_bytes", fullest(prediction).bytes()},
                       {"gpu_memory_bytes", prediction.memory_there},
                       {"fits", prediction.fits()},
                       {"pipeline", std::move(ranks)}};
  return object.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::predict
