// Predicts a step with another layout, model, cluster, or rank.

#include <algorithm>
#include <stdexcept>

#include <fmt/core.h>

#include "scenarios/predict/step_time.h"
#include "scenarios/predict/step_words.h"
#include "scenarios/program/units.h"
#include "sim/cost/presets.h"

namespace rollcall::predict {

namespace {

// Returns 1.05 for "5%".
double factor_of(std::string_view key, std::string_view text) {
  const scenario::Quantity parsed = scenario::parse_fraction(text);
  if (!parsed.value) {
    throw std::invalid_argument(fmt::format("{}= takes a share such as 5%: {}", key, parsed.problem));
  }
  return 1 + static_cast<double>(*parsed.value) / 1e6;
}

}  // namespace

StepVariant predict_variant(StepQuestion question, std::string_view words) {
  StepVariant variant{.name = std::string(words), .prediction = {}};
  double longer = 1;
  for (std::string_view rest = words; !rest.empty();) {
    const std::string_view word = next_word(rest);
    const std::string_view key = word.substr(0, word.find('='));
    const std::string_view value = word.substr(std::min(word.size(), key.size() + 1));
    if (key == "slow") {
      question.slowest = factor_of(key, value);
      variant.is_straggler = true;
    } else if (key == "longer") {
      longer = factor_of(key, value);
      variant.is_straggler = true;
    } else if (key == "cluster") {
      const cost::NamedCluster named = cost::find_cluster(value);
      if (!named.cluster) {
        throw std::invalid_argument(named.problem);
      }
      question.cluster = *named.cluster;
      question.gpu = nullptr;
    } else if (is_transformer_word(word)) {
      change(question.model, word);
    } else {
      change(question.layout, word);
    }
  }
  const std::int64_t tokens = question.model.sequence;
  question.model.sequence = static_cast<std::int64_t>(static_cast<double>(tokens) * longer);
  variant.prediction = predict_step(question);
  if (variant.is_straggler) {
    StepQuestion even = question;
    even.model.sequence = tokens;
    even.slowest = 1;
    const Duration without = predict_step(even).step;
    variant.lost = static_cast<double>(variant.prediction.step - without) / 1e9 * variant.prediction.gpus;
  }
  if (longer > 1) {  // for one rank only
    question.model.sequence = tokens;
    variant.prediction.tokens = tokens_of(question);
    variant.prediction.model_flops = question.model.model_flops(true);
  }
  return variant;
}

}  // namespace rollcall::predict
