#include "scenarios/predict/step_words.h"

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "scenarios/json/suggest.h"
#include "sim/base/parse_number.h"

namespace rollcall::predict {

namespace {

constexpr std::int64_t number_max = 1'000'000'000;

[[noreturn]] void refuse(const std::string& reason) { throw std::invalid_argument(reason); }

std::int64_t number_of(std::string_view key, std::string_view word) {
  const auto value = parse_number<std::int64_t>(word);
  if (!value || *value < 1 || *value > number_max) {
    refuse(fmt::format("{}= takes a whole number from 1 to {}, not '{}'", key, number_max, word));
  }
  return *value;
}

// A word of the list: its name, whether it has a value, and what it sets.
template <typename Target>
struct Word {
  std::string_view key;
  bool has_value = true;
  std::function<void(Target& target, std::string_view value)> set;
};

template <typename Target, typename Number>
Word<Target> number(std::string_view key, Number Target::*where) {
  return {key, true, [key, where](Target& target, std::string_view value) {
            target.*where = static_cast<Number>(number_of(key, value));
          }};
}
template <typename Target>
Word<Target> flag(std::string_view key, bool Target::*where, bool value) {
  return {key, false, [where, value](Target& target, std::string_view) { target.*where = value; }};
}

template <typename Target>
void apply(const std::vector<Word<Target>>& words, std::string_view text, Target& target) {
  const std::size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  for (const Word<Target>& word : words) {
    if (word.key == key && word.has_value == (equals != std::string_view::npos)) {
      word.set(target, word.has_value ? text.substr(equals + 1) : std::string_view());
      return;
    }
  }
  std::vector<std::string> known;
  for (const Word<Target>& word : words) {
    known.push_back(std::string(word.key) + (word.has_value ? "=" : ""));
  }
  const std::string_view meant = scenario::suggest_from(key, words, &Word<Target>::key);
  refuse(fmt::format("unknown '{}'{}; use {}", text,
                     meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant),
                     fmt::join(known, ", ")));
}

const std::vector<Word<Transformer>>& transformer_words() {
  static const std::vector<Word<Transformer>> words{
      number("layers", &Transformer::layers),     number("hidden", &Transformer::hidden),
      number("ffn", &Transformer::ffn),           number("heads", &Transformer::heads),
      number("kv_heads", &Transformer::kv_heads), number("vocab", &Transformer::vocab),
      number("sequence", &Transformer::sequence), flag("gated", &Transformer::gated, true),
      flag("tied", &Transformer::tied, true),
  };
  return words;
}

Word<Layout> sharding(std::string_view key, Sharding sharding) {
  return {key, true, [key, sharding](Layout& layout, std::string_view value) {
            layout.dp = static_cast<int>(number_of(key, value));
            layout.sharding = sharding;
          }};
}

void set_recompute(Layout& layout, std::string_view value) {
  constexpr std::array<std::pair<std::string_view, Recompute>, 4> names{{{"none", Recompute::none},
                                                                         {"selective", Recompute::selective},
                                                                         {"attention", Recompute::attention},
                                                                         {"full", Recompute::full}}};
  const auto found = std::ranges::find(names, value, &std::pair<std::string_view, Recompute>::first);
  if (found == names.end()) {
    refuse(fmt::format("recompute= takes none, selective, attention or full, not '{}'", value));
  }
  layout.recompute = found->second;
}

void set_schedule(Layout& layout, std::string_view value) {
  const auto schedule = find_schedule(value);
  if (!schedule) {
    refuse(fmt::format("unknown schedule '{}'; use GPipe, 1F1B, Interleaved1F1B, ...", value));
  }
  layout.schedule = *schedule;
}

const std::vector<Word<Layout>>& layout_words() {
  static const std::vector<Word<Layout>> words{
      sharding("fsdp", Sharding::full),
      sharding("zero1", Sharding::optimizer),
      sharding("ddp", Sharding::replicas),
      number("tp", &Layout::tp),
      number("pp", &Layout::pp),
      number("cp", &Layout::cp),
      {"schedule", true, set_schedule},
      number("stages", &Layout::stages),
      number("microbatches", &Layout::microbatches),
      number("microbatch", &Layout::microbatch),
      {"recompute", true, set_recompute},
      number("gradient_bytes", &Layout::gradient_bytes),
      flag("float8", &Layout::float8, true),
      flag("compile", &Layout::fused, true),
      flag("eager", &Layout::fused, false),
      flag("async_tp", &Layout::overlaps_tp, true),
      flag("no_flash", &Layout::flash, false),
      flag("no_sequence_parallel", &Layout::sequence_parallel, false),
      flag("late_reduce", &Layout::overlaps_dp, false),
  };
  return words;
}

}  // namespace

std::string_view next_word(std::string_view& rest) {
  const std::size_t comma = rest.find(',');
  const std::string_view word = rest.substr(0, comma);
  rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  return word;
}

bool is_transformer_word(std::string_view word) {
  const std::string_view key = word.substr(0, word.find('='));
  return std::ranges::any_of(transformer_words(),
                             [key](const Word<Transformer>& known) { return known.key == key; });
}

void change(Transformer& model, std::string_view word) { apply(transformer_words(), word, model); }
void change(Layout& layout, std::string_view word) { apply(layout_words(), word, layout); }

Transformer parse_transformer(std::string_view text) {
  Transformer model;
  while (!text.empty()) {
    const std::string_view word = next_word(text);
    if (word.find('=') == std::string_view::npos && word != "gated" && word != "tied") {
      const Transformer* preset = find_transformer(word);
      if (preset == nullptr) {
        const std::vector<std::string_view> names = transformer_names();
        const std::string_view meant = scenario::suggest(word, names);
        refuse(fmt::format("unknown model '{}'{}; use {}, or sizes such as layers=32,hidden=4096,heads=32",
                           word, meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant),
                           fmt::join(names, ", ")));
      }
      model = *preset;
    } else {
      apply(transformer_words(), word, model);
    }
  }
  model.kv_heads = model.kv_heads == 0 ? model.heads : model.kv_heads;
  model.ffn = model.ffn == 0 ? 4 * model.hidden : model.ffn;
  for (const auto& [key, value] :
       {std::pair("layers", model.layers), std::pair("hidden", model.hidden), std::pair("heads", model.heads),
        std::pair("vocab", model.vocab), std::pair("sequence", model.sequence)}) {
    if (value == 0) {
      refuse(fmt::format("a model needs {}=", key));
    }
  }
  if (model.hidden % model.heads != 0) {
    refuse(fmt::format("hidden={} cannot be divided by heads={}", model.hidden, model.heads));
  }
  return model;
}

Layout parse_layout(std::string_view text) {
  Layout layout;
  while (!text.empty()) {
    apply(layout_words(), next_word(text), layout);
  }
  return layout;
}

}  // namespace rollcall::predict
