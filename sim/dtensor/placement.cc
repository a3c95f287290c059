#include "sim/dtensor/placement.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "sim/base/parse_number.h"

namespace rollcall {
namespace {

struct ReduceWord {
  ReduceOp reduce;
  std::string_view word;
};
constexpr std::array<ReduceWord, 5> reduce_words{{{ReduceOp::sum, "sum"},
                                                  {ReduceOp::avg, "avg"},
                                                  {ReduceOp::min, "min"},
                                                  {ReduceOp::max, "max"},
                                                  {ReduceOp::product, "product"}}};

// "Shard(0)" to "Shard" and "0". A name alone counts as one with empty parentheses.
struct Call {
  std::string_view name;
  std::string_view argument;
};
std::optional<Call> split_call(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) {
    return Call{text, {}};
  }
  if (text.back() != ')') {
    return std::nullopt;
  }
  std::string_view argument = text.substr(open + 1, text.size() - open - 2);
  if (argument.starts_with("dim=")) {
    argument.remove_prefix(4);
  }
  return Call{text.substr(0, open), argument};
}

std::optional<Placement> parse_shard(std::string_view argument) {
  const std::optional<int> dim = parse_number<int>(argument);
  return dim ? std::optional(Shard(*dim)) : std::nullopt;
}

std::optional<Placement> parse_partial(std::string_view argument) {
  for (const ReduceWord& row : reduce_words) {
    if (argument.empty() || argument == row.word) {
      return Partial(row.reduce);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string to_string(const Placement& placement) {
  switch (placement.kind) {
    case Placement::Kind::replicate:
      return "R";
    case Placement::Kind::shard:
      return fmt::format("S({})", placement.dim);
    case Placement::Kind::partial:
      break;
  }
  const auto found = std::ranges::find(reduce_words, placement.reduce, &ReduceWord::reduce);
  return fmt::format("P({})", found == reduce_words.end() ? "?" : found->word);
}

std::optional<Placement> parse_placement(std::string_view text) {
  const std::optional<Call> call = split_call(text);
  if (!call) {
    return std::nullopt;
  }
  if (call->name == "Shard" || call->name == "S") {
    return parse_shard(call->argument);
  }
  if (call->name == "Partial" || call->name == "P") {
    return parse_partial(call->argument);
  }
  const bool is_replicate = (call->name == "Replicate" || call->name == "R") && call->argument.empty();
  return is_replicate ? std::optional(Replicate()) : std::nullopt;
}

Placement normalized(Placement placement, std::size_t dims) {
  if (placement.is_shard() && placement.dim < 0) {
    placement.dim += static_cast<int>(dims);
  }
  return placement;
}

}  // namespace rollcall
