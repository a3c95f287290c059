// Compares published training throughputs with predictions from FLOPs, and writes docs/step-time.md.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/predict/step_time.h"
#include "scenarios/predict/step_words.h"
#include "sim/cost/presets.h"
#include "tests/catch.h"
#include "tests/contents.h"

namespace rollcall::latency::step_report_test {
namespace {

using nlohmann::json;
using predict::StepPrediction;
using predict::StepQuestion;

// A published row and its prediction.
struct StepRow {
  std::string table;
  std::string model;
  std::string layout;
  double measured = 0;  // seconds of a step
  double predicted = 0;
  double memory = -1;  // GiB, the fullest rank; -1: not published
  double predicted_memory = 0;
  double calibrated = -1;  // seconds, if the first row of this model is known; -1: this is that row

  double error() const { return predicted / measured - 1; }
};

struct StepSystem {
  std::string name;
  std::string source;
  std::string assumed;
  std::vector<StepRow> rows;
};

// Throughputs are counted in tokens, or in floating point operations of the model: as Megatron-LM counts them, with all
// of attention, or with forward twice.
double measured_step(const json& row, const StepQuestion& question, const StepPrediction& prediction) {
  const double tokens = static_cast<double>(prediction.tokens) / prediction.gpus;
  if (row.contains("tokens_per_second_per_gpu")) {
    return tokens / row["tokens_per_second_per_gpu"].get<double>();
  }
  double flops = question.model.model_flops(false);
  if (row["counts"] == "recomputed") {
    const double head = 6 * static_cast<double>(question.model.embedding_parameters());
    flops = head + (flops - head) * 4 / 3;
  }
  return tokens * flops / (row["teraflops"].get<double>() * 1e12);
}

StepRow judged(const json& row, const json& file) {
  const auto text = [&](const char* key) { return row[key].get<std::string>(); };
  StepQuestion question{.model = predict::parse_transformer(text("model")),
                        .layout = predict::parse_layout(text("layout")),
                        .cluster = *cost::find_cluster(file["cluster"].get<std::string>()).cluster};
  if (file.contains("gpu")) {
    question.gpu = cost::find_gpu(std::string_view(file["gpu"].get_ref<const std::string&>()));
  }
  const StepPrediction prediction = predict::predict_step(question);
  std::int64_t fullest = 0;
  for (const predict::StageMemory& rank : prediction.memory) {
    fullest = std::max(fullest, rank.bytes());
  }
  return {.table = row["table"].is_string() ? text("table") : row["table"].dump(),
          .model = text("model"),
          .layout = text("layout"),
          .measured = measured_step(row, question, prediction),
          .predicted = static_cast<double>(prediction.step) / 1e9,
          .memory = row.value("memory_gib", -1.0),
          .predicted_memory = static_cast<double>(fullest) / (1 << 30)};
}

std::string model_of(const StepRow& row) { return row.model.substr(0, row.model.find(',')); }

// Models that are given by their sizes have one row each.
bool has_other_rows(const std::string& model) { return !model.starts_with("layers="); }

// With one row of a model known, all its other rows are assumed to be slower or faster than predicted by the same
// factor.
void calibrate(StepSystem& system) {
  std::map<std::string, double> factors;
  for (StepRow& row : system.rows) {
    const std::string model = model_of(row);
    const auto [factor, is_first] = factors.try_emplace(model, row.measured / row.predicted);
    row.calibrated = is_first || !has_other_rows(model) ? -1 : row.predicted * factor->second;
  }
}

const std::vector<StepSystem>& systems() {
  static const std::vector<StepSystem> all = [] {
    std::vector<StepSystem> systems;
    for (const char* name : {"torchtitan_2024_12", "torchtitan_2025_06", "torchtitan_2025_06_h200",
                             "megatron_2024_h100", "megatron_2022_a100", "megatron_2021_a100"}) {
      const json file = json::parse(
          test::contents(std::string(ROLLCALL_SOURCE_DIR) + "/tests/data/steps/" + name + ".json"));
      StepSystem system{
          .name = file["system"], .source = file["source"], .assumed = file.value("assumed", ""), .rows = {}};
      for (const json& row : file["rows"]) {
        system.rows.push_back(judged(row, file));
      }
      calibrate(system);
      systems.push_back(std::move(system));
    }
    return systems;
  }();
  return all;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

struct Summary {
  std::size_t rows = 0;
  double signed_median = 0;
  double median = 0;
  double worst = 0;
};

Summary summary_of(const std::vector<StepSystem>& systems) {
  std::vector<double> signed_errors;
  std::vector<double> errors;
  for (const StepSystem& system : systems) {
    for (const StepRow& row : system.rows) {
      signed_errors.push_back(row.error());
      errors.push_back(std::fabs(row.error()));
    }
  }
  return {errors.size(), median(signed_errors), median(errors), *std::ranges::max_element(errors)};
}

std::vector<StepSystem> only(std::string_view word) {
  std::vector<StepSystem> chosen;
  for (const StepSystem& system : systems()) {
    if (system.name.find(word) != std::string::npos) {
      chosen.push_back(system);
    }
  }
  return chosen;
}

std::vector<StepSystem> without(std::vector<StepSystem> chosen, std::string_view word) {
  std::erase_if(chosen, [word](const StepSystem& each) { return each.name.find(word) != std::string::npos; });
  return chosen;
}

std::vector<double> calibrated_errors() {
  std::vector<double> errors;
  for (const StepSystem& system : systems()) {
    for (const StepRow& row : system.rows) {
      if (row.calibrated > 0) {
        errors.push_back(std::fabs(row.calibrated / row.measured - 1));
      }
    }
  }
  return errors;
}

// Returns the part of an error that the rows of one model share: the mean product of the errors of two of them, divided
// by the mean square of one. `model` is left out, so that a row is corrected only by the known row of its own model.
double shared_part(const std::string& model) {
  double products = 0;
  double squares = 0;
  std::size_t pairs = 0;
  std::size_t rows = 0;
  for (const StepSystem& system : systems()) {
    std::map<std::string, std::vector<double>> errors;
    for (const StepRow& row : system.rows) {
      if (has_other_rows(model_of(row)) && model_of(row) != model) {
        errors[model_of(row)].push_back(std::log(row.predicted / row.measured));
      }
    }
    for (const auto& [other, own] : errors) {
      for (std::size_t i = 0; i < own.size() && own.size() > 1; ++i, ++rows) {
        squares += own[i] * own[i];
        for (std::size_t j = 0; j < i; ++j, ++pairs) {
          products += own[i] * own[j];
        }
      }
    }
  }
  return std::clamp((products / static_cast<double>(pairs)) / (squares / static_cast<double>(rows)), 0.0,
                    1.0);
}

// Like calibrated_errors, but corrected only by the shared part of the known row's error.
std::vector<double> partly_calibrated_errors() {
  std::vector<double> errors;
  for (const StepSystem& system : systems()) {
    for (const StepRow& row : system.rows) {
      if (row.calibrated > 0) {
        const double factor = std::pow(row.calibrated / row.predicted, shared_part(model_of(row)));
        errors.push_back(std::fabs(row.predicted * factor / row.measured - 1));
      }
    }
  }
  return errors;
}

std::string percent(double fraction) { return fmt::format("{:+.1f}", 100 * fraction); }

constexpr const char* introduction = R"(# How long a training step takes

## Kernels in scenarios

What a GPU computes is a `kernel` in a scenario, and `launch_kernel` in C++. It occupies one stream of the rank's GPU,
in line with the calls on that stream. `compute` is the host's time: on nccl the GPU goes on beside it, so that a call
before a `compute` looks hidden. Three times 10 ms and an all_reduce of 1.5 ms take a GPU 34.5 ms; with `compute` they
take 31.5 ms. Use `compute` for what a host does (a data loader, Python), and `kernel` for what a model does.
[step_times_test.cc](../tests/unit/scenarios/run/step_times_test.cc) has 29 small programs, with the arithmetic of each.

A kernel with `flops` and `bytes` takes the longer of computing and moving them. Peaks are those of NVIDIA's data
sheets; kernels reach the part of them that others have measured. [roofline.cc](../sim/cost/roofline.cc) has both, GPU
by GPU, with their sources. Products (`matmul`, `attention`) are computed in the kernel's `dtype`, everything else in
float32.

## Steps of a transformer

    rollcall predict --model llama3-8b --layout fsdp=128,microbatch=2,recompute=selective,compile --cluster h100-8

gives the step time, tokens per second, MFU, exposed communication, and memory. A layer is its matrix products,
attention, and passes over memory ([transformer.cc](../scenarios/predict/transformer.cc)). What happens at once is
simulated: every stage of the pipeline is a rank, and stands for all GPUs that do the same, so a collective of tensor
or data parallel groups is a kernel on a stream that takes what the call takes in such a group. That is exact as long as
all of them do the same. A step of many microbatches is simulated with 2 and with 3 rounds of them, and continued. MFU
counts attention without what is masked. `--what-if slow=5%` is one rank whose kernels take 5 % longer, `longer=5%` one
with longer sequences: all others wait for it, and the table says how many seconds of GPUs a step loses by that.

Not modeled: the host's launches, kernels that share multiprocessors or memory with NCCL's, networks with other traffic,
waves of tiles that do not fill a GPU, experts.

## What was chosen, and where

Peaks, the parts of them that single kernels reach, and the times of collectives come from other sources than the rows
below. Two numbers do not:

- `reached_in_training` (0.77): the part of the best speed of a product, or of flash attention, that a training step
  reaches. It was chosen on the rows of A100, which have no flash attention; the rows of H100 and H200 are the test of
  it.
- `seen_of_overlapped` (0.5): the part of a collective that stays exposed with asynchronous tensor parallelism. It was
  chosen on torchtitan's pairs with and without it, of June 2025.

Three more were decided after seeing these rows: that attention on H100 reaches alone what PyTorch's own kernel was
measured at (300 of 989 teraflops) and not what FlashAttention-2's authors reach (350); that attention, like products,
is slower in training than alone; and that a replica without a pipeline has microbatches of 4 sequences where nobody
says how many. Context parallel is PyTorch's ring attention, read from its source: parts that are merged, a gather of
keys and values that are repeated for every head, also when attention is computed again, and gradients that go around a
ring.

)";

std::string summary_section() {
  std::string text =
      "## Errors, in percent\n\n| rows | number | median of errors | median, absolute | worst "
      "|\n|---|---|---|---|---|\n";
  const auto line = [&](const std::string& name, const std::vector<StepSystem>& chosen) {
    const Summary summary = summary_of(chosen);
    text += fmt::format("| {} | {} | {} | {:.1f} | {:.1f} |\n", name, summary.rows,
                        percent(summary.signed_median), 100 * summary.median, 100 * summary.worst);
  };
  line("all", systems());
  line("A100, where a number was chosen", only("A100"));
  line("H100 and H200", only("H"));
  line("of these, where no number was chosen", without(only("H"), "async TP"));
  for (const StepSystem& system : systems()) {
    line(system.name, {system});
  }
  const std::vector<double> calibrated = calibrated_errors();
  const std::vector<double> partly = partly_calibrated_errors();
  text += fmt::format(
      "\nWith the first row of each model and system known, {} other rows of these models can be corrected.\n"
      "Corrected by all of the known row's error, they have a median error of {:.1f} %; the worst is {:.1f} "
      "%. That is worse\nthan no correction: most of an error is a row's own. What rows of one model share "
      "is estimated from the other\nmodels ({:.0f} % of the error for Llama 3 8B, {:.0f} % for 70B, {:.0f} % "
      "for 405B). Corrected by this part, they have a\nmedian error of {:.1f} %; the worst is {:.1f} %.\n\n",
      calibrated.size(), 100 * median(calibrated), 100 * *std::ranges::max_element(calibrated),
      100 * shared_part("llama3-8b"), 100 * shared_part("llama3-70b"), 100 * shared_part("llama3-405b"),
      100 * median(partly), 100 * *std::ranges::max_element(partly));
  return text;
}

std::string rows_section(const StepSystem& system) {
  std::string text = fmt::format("## {}\n\n{}.\n{}\n", system.name, system.source,
                                 system.assumed.empty() ? "" : "Assumed: " + system.assumed + "\n");
  text +=
      "| row | model, layout | measured (s) | predicted (s) | error (%) | with one row (%) | memory (GiB) | "
      "predicted |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const StepRow& row : system.rows) {
    text += fmt::format("| {} | {}; {} | {:.3f} | {:.3f} | {} | {} | {} | {:.1f} |\n", row.table, row.model,
                        row.layout, row.measured, row.predicted, percent(row.error()),
                        row.calibrated > 0 ? percent(row.calibrated / row.measured - 1) : "",
                        row.memory > 0 ? fmt::format("{:.1f}", row.memory) : "", row.predicted_memory);
  }
  return text + "\n";
}

std::string step_page() {
  std::string page =
      introduction + summary_section() +
      "Every row that was published is below, but those that their authors call defective.\nThis page is "
      "written from `tests/data/steps` by\n\n    ROLLCALL_BLESS=1 build/dev/rollcall_tests "
      "'[steps]'\n\nand a test fails when it is out of date.\n\n";
  for (const StepSystem& system : systems()) {
    page += rows_section(system);
  }
  page.pop_back();
  return page;
}

}  // namespace

TEST_CASE("steps that others measured are predicted from FLOPs within 6 % in the median, and 25 % each",
          "[steps][fiber]") {
  std::size_t rows = 0;
  for (const StepSystem& system : systems()) {
    CAPTURE(system.name);
    rows += system.rows.size();
    CHECK(summary_of({system}).median < 0.06);
    for (const StepRow& row : system.rows) {
      CAPTURE(row.layout, row.predicted, row.measured);
      CHECK(std::fabs(row.error()) < 0.25);
    }
  }
  CHECK(rows == 51);
}

TEST_CASE("what was chosen on A100 holds on H100", "[steps][fiber]") {
  CHECK(std::fabs(summary_of(only("A100")).signed_median) < 0.02);
  CHECK(summary_of(only("H")).median < 0.05);
  CHECK(std::fabs(summary_of(only("H")).signed_median) < 0.03);
}

TEST_CASE("with one row of a model known, its other rows are predicted within 5 % in the median",
          "[steps][fiber]") {
  const std::vector<double> errors = partly_calibrated_errors();
  CHECK(errors.size() == 22);
  CHECK(median(errors) < 0.05);
}

TEST_CASE("docs/step-time.md says what the published rows say", "[steps][fiber]") {
  const std::string path = std::string(ROLLCALL_SOURCE_DIR) + "/docs/step-time.md";
  const std::string page = step_page();
  if (std::getenv("ROLLCALL_BLESS") != nullptr) {
    std::ofstream(path, std::ios::binary) << page;
  }
  CHECK(test::contents(path) == page);
}

}  // namespace rollcall::latency::step_report_test
