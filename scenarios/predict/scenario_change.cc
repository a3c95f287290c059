#include "scenarios/predict/scenario_change.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/json/suggest.h"
#include "scenarios/predict/step_words.h"
#include "scenarios/program/units.h"
#include "sim/base/parse_number.h"
#include "sim/cost/roofline.h"
#include "sim/tensor/dtype.h"

namespace rollcall::predict {

namespace {

using Tree = scenario::OrderedJson;

[[noreturn]] void reject(std::string reason) { throw std::invalid_argument(std::move(reason)); }

std::int64_t whole_number(std::string_view key, std::string_view text) {
  const auto value = parse_number<std::int64_t>(text);
  if (!value || *value < 0) {
    reject(fmt::format("{}= takes a whole number, not '{}'", key, text));
  }
  return *value;
}

template <typename Change>
std::size_t change_objects(Tree& tree, std::string_view kind, const Change& change) {
  std::size_t changed = 0;
  if (tree.contains("objects")) {
    for (auto& [name, object] : tree["objects"].items()) {
      if (object.value("kind", "") == kind) {
        change(object);
        ++changed;
      }
    }
  }
  return changed;
}

void set_bucket(Tree& tree, std::string_view size) {
  if (const scenario::Quantity bytes = scenario::parse_bytes(size); !bytes.value) {
    reject(fmt::format("bucket= takes a size such as 50MiB: {}", bytes.problem));
  }
  const std::size_t changed = change_objects(tree, "ddp", [size](Tree& model) {
    model["bucket_cap"] = size;
    model.erase("bucket_cap_mb_list");
  });
  if (changed == 0) {
    reject(
        "bucket= changes objects of kind ddp, and there is none; a recorded script has its buckets as they "
        "were");
  }
}

void set_microbatches(Tree& tree, std::string_view count) {
  const std::int64_t value = whole_number("microbatches", count);
  if (change_objects(tree, "pipeline", [value](Tree& pipeline) { pipeline["microbatches"] = value; }) == 0) {
    reject("microbatches= changes objects of kind pipeline, and there is none");
  }
}

bool is_product(const Tree& arguments) {
  if (!arguments.contains("flops")) {
    return false;
  }
  const std::string kind = arguments.value("kind", "matmul");
  return kind == "matmul" || kind == "attention";
}

// A statement's arguments are next to its name, or below it.
std::size_t set_kernels(Tree& node, std::string_view dtype) {
  std::size_t changed = 0;
  if (node.is_object() && node.contains("kernel")) {
    Tree& arguments = node["kernel"].is_object() ? node["kernel"] : node;
    if (is_product(arguments)) {
      arguments["dtype"] = dtype;
      ++changed;
    }
  }
  if (node.is_structured()) {
    for (auto& child : node) {
      changed += set_kernels(child, dtype);
    }
  }
  return changed;
}

// A parameter keeps its number of elements.
void set_parameter(Tree& parameter, Dtype dtype) {
  const auto elements = [](std::string_view size, Dtype of) {
    const auto width = static_cast<std::int64_t>(size_of(of));
    return (scenario::parse_bytes(size).value.value_or(0) + width - 1) / width;
  };
  if (parameter.is_number()) {
    parameter = {{"numel", parameter}};
  } else if (parameter.is_string()) {
    parameter = {{"numel", elements(parameter.get<std::string>(), Dtype::float32)}};
  } else if (parameter.contains("bytes")) {
    const Dtype before = parse_dtype(parameter.value("dtype", "float32")).value_or(Dtype::float32);
    parameter["numel"] = elements(parameter["bytes"].get<std::string>(), before);
    parameter.erase("bytes");
  }
  parameter["dtype"] = to_string(dtype);
}

void set_precision(Tree& tree, std::string_view word) {
  const auto precision = cost::parse_precision(word);
  if (!precision) {
    reject(
        fmt::format("precision= takes one of {}, not '{}'", fmt::join(cost::precision_names(), ", "), word));
  }
  std::size_t changed = set_kernels(tree, word);
  if (const auto dtype = parse_dtype(word)) {
    changed += change_objects(tree, "ddp", [&](Tree& model) {
      for (Tree& parameter : model["parameters"]) {
        set_parameter(parameter, *dtype);
      }
    });
    changed +=
        change_objects(tree, "fsdp", [&](Tree& model) { model["mixed_precision"]["param_dtype"] = word; });
    changed +=
        change_objects(tree, "fully_shard", [&](Tree& model) { model["mp_policy"]["param_dtype"] = word; });
  }
  if (changed == 0) {
    reject("precision= changes kernels with flops, and models; there is none");
  }
}

void slow_down(Tree& tree, std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::int64_t ranks = tree.value("world_size", std::int64_t{1});
  const std::int64_t rank =
      colon == std::string_view::npos ? ranks - 1 : whole_number("slow", text.substr(0, colon));
  const std::string_view share = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const scenario::Quantity parsed = scenario::parse_fraction(share);
  if (!parsed.value) {
    reject(fmt::format("slow= takes a share such as 5%, or a rank and a share such as 3:5%: {}",
                       parsed.problem));
  }
  if (rank >= ranks) {
    reject(fmt::format("slow={}: ranks are 0 to {}", text, ranks - 1));
  }
  tree["faults"].push_back({{"kind", "slow"},
                            {"ranks", std::to_string(rank)},
                            {"factor", 1 + static_cast<double>(*parsed.value) / 1e6}});
}

constexpr std::array<std::string_view, 6> known_keys{"cluster",      "world_size", "bucket",
                                                     "microbatches", "precision",  "slow"};

}  // namespace

ScenarioChange changed_scenario(Tree tree, std::string_view words) {
  ScenarioChange change;
  tree.erase("expect");
  std::vector<std::string_view> slow;  // applied after changes of the number of ranks
  for (std::string_view rest = words; !rest.empty();) {
    const std::string_view word = next_word(rest);
    const std::string_view key = word.substr(0, word.find('='));
    const std::string_view value = word.substr(std::min(word.size(), key.size() + 1));
    if (std::ranges::find(known_keys, key) == known_keys.end() || value.empty()) {
      const std::string_view meant = scenario::suggest(key, {known_keys.begin(), known_keys.end()});
      reject(fmt::format("unknown '{}'{}; use {}=", word,
                         meant.empty() || meant == key ? "" : fmt::format(" (did you mean '{}='?)", meant),
                         fmt::join(known_keys, "=, ")));
    }
    if (key == "cluster") {
      change.cluster = value;
    } else if (key == "world_size") {
      tree["world_size"] = whole_number(key, value);
    } else if (key == "bucket") {
      set_bucket(tree, value);
    } else if (key == "microbatches") {
      set_microbatches(tree, value);
    } else if (key == "precision") {
      set_precision(tree, value);
    } else {
      slow.push_back(value);
    }
  }
  for (const std::string_view each : slow) {
    slow_down(tree, each);
    change.slows_rank = true;
  }
  change.text = tree.dump();
  return change;
}

}  // namespace rollcall::predict
