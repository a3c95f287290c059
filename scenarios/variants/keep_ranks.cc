#include "scenarios/variants/keep_ranks.h"

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/program/rank_sets.h"

namespace rollcall::scenario {
namespace {

// Members of statements that hold a rank, and those that hold several.
const std::set<std::string> rank_keys = {"src", "dst"};
const std::set<std::string> rank_set_keys = {"ranks", "culprits", "waiting", "missing"};

class Renumbering {
 public:
  Renumbering(Rank world_size, const RankSet& kept) : world_size_(world_size), kept_(kept.to_vector()) {}

  Rank size() const { return static_cast<Rank>(kept_.size()); }
  Rank world_size() const { return world_size_; }

  std::optional<Rank> of(std::int64_t rank) const {
    const auto found = std::ranges::lower_bound(kept_, rank);
    return found != kept_.end() && *found == rank ? std::optional(position(found)) : std::nullopt;
  }
  // The number of kept ranks before `rank`.
  Rank below(std::int64_t rank) const { return position(std::ranges::lower_bound(kept_, rank)); }

  RankSet of(const RankSet& ranks) const {
    RankSet result;
    for (const Rank rank : ranks.to_vector()) {
      if (const std::optional<Rank> own = of(rank)) {
        result.insert(*own);
      }
    }
    return result;
  }

 private:
  Rank position(std::vector<Rank>::const_iterator place) const {
    return static_cast<Rank>(place - kept_.begin());
  }

  Rank world_size_;
  std::vector<Rank> kept_;
};

// A set in any of its three forms; nothing if it is not one.
std::optional<RankSet> ranks_in(const OrderedJson& value, Rank world_size) {
  if (value.is_string()) {
    return parse_ranks(value.get<std::string>(), world_size).value;
  }
  RankSet ranks;
  for (const OrderedJson& each : value.is_array() ? value : OrderedJson::array({value})) {
    if (!each.is_number_integer()) {
      return std::nullopt;
    }
    ranks.insert(each.get<Rank>());
  }
  return ranks;
}

// Renumbers such a set. Returns false if it is none.
bool renumber_set(OrderedJson& value, const Renumbering& numbers) {
  const std::optional<RankSet> ranks = ranks_in(value, numbers.world_size());
  if (ranks) {
    value = numbers.of(*ranks).to_vector();
  }
  return ranks.has_value();
}

// Renumbers `rank == 63` and similar comparisons. The rest of an expression stays unchanged.
std::string in_expression(const std::string& text, const Renumbering& numbers) {
  static const std::regex comparison(R"(\brank\s*(==|!=|<=|>=|<|>)\s*(\d{1,9})\b)");
  std::string result;
  auto from = text.cbegin();
  for (std::sregex_iterator match(text.begin(), text.end(), comparison), end; match != end; ++match) {
    const std::string op = (*match)[1];
    const std::int64_t rank = std::stol((*match)[2]);
    const bool is_equality = op == "==" || op == "!=";
    const bool is_after = op == "<=" || op == ">";  // includes this rank itself
    const Rank own =
        is_equality ? numbers.of(rank).value_or(numbers.size()) : numbers.below(is_after ? rank + 1 : rank);
    result.append(from, (*match)[0].first);
    result += fmt::format("rank {} {}", is_after ? (op == "<=" ? "<" : ">=") : op, own);
    from = (*match)[0].second;
  }
  return result.append(from, text.cend());
}

bool renumber_keys(OrderedJson& object, const Renumbering& numbers) {
  OrderedJson result = OrderedJson::object();
  for (const auto& [key, value] : object.items()) {
    const std::optional<RankSet> ranks = parse_ranks(key, numbers.world_size()).value;
    if (!ranks) {
      return false;
    }
    if (const RankSet own = numbers.of(*ranks); !own.empty()) {
      result[to_string(own)] = value;
    }
  }
  object = result;
  return !object.empty();
}

// For groups and hosts: names with sets of ranks, or objects that have one.
bool renumber_values(OrderedJson& object, const Renumbering& numbers) {
  std::vector<std::string> empty;
  for (auto& [name, value] : object.items()) {
    OrderedJson& set = value.is_object() && value.contains("ranks") ? value["ranks"] : value;
    if (!renumber_set(set, numbers)) {
      return false;
    }
    if (set.empty()) {
      empty.push_back(name);
    }
  }
  for (const std::string& name : empty) {
    object.erase(name);
  }
  return true;
}

bool renumber_faults(OrderedJson& faults, const Renumbering& numbers) {
  OrderedJson result = OrderedJson::array();
  for (OrderedJson fault : faults) {
    const bool has_ranks = fault.contains("ranks");
    if (has_ranks && !renumber_set(fault["ranks"], numbers)) {
      return false;
    }
    if (!has_ranks || !fault["ranks"].empty()) {
      result.push_back(fault);
    }
  }
  faults = result;
  return true;
}

OrderedJson inputs_of(const OrderedJson& inputs, const Renumbering& numbers) {
  if (!inputs.is_array()) {
    return inputs;
  }
  OrderedJson result = OrderedJson::array();
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    if (numbers.of(static_cast<std::int64_t>(rank))) {
      result.push_back(inputs[rank]);
    }
  }
  return result;
}

bool renumber_statement(OrderedJson& value, const Renumbering& numbers);

bool renumber_member(const std::string& key, OrderedJson& value, const Renumbering& numbers) {
  if (rank_keys.contains(key) && value.is_number_integer()) {
    const std::optional<Rank> own = numbers.of(value.get<std::int64_t>());
    value = own.value_or(-1);
    return own.has_value();
  }
  if (rank_set_keys.contains(key) && renumber_set(value, numbers)) {
    return true;
  }
  if (value.is_string()) {
    value = in_expression(value.get<std::string>(), numbers);
    return true;
  }
  return renumber_statement(value, numbers);
}

bool renumber_statement(OrderedJson& value, const Renumbering& numbers) {
  if (value.is_array()) {
    return std::ranges::all_of(value, [&](OrderedJson& each) { return renumber_statement(each, numbers); });
  }
  if (!value.is_object()) {
    return true;
  }
  for (auto& [key, member] : value.items()) {
    if (!renumber_member(key, member, numbers)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<OrderedJson> keep_ranks(const OrderedJson& scenario, const RankSet& kept) {
  const Renumbering numbers(scenario.at("world_size").get<Rank>(), kept);
  OrderedJson result = scenario;
  result["world_size"] = numbers.size();
  bool fits = true;
  for (auto& [key, value] : result.items()) {
    if (key == "programs") {
      fits = fits && renumber_keys(value, numbers);
      for (auto& [ranks, program] : value.items()) {
        fits = fits && renumber_statement(program, numbers);
      }
    } else if (key == "devices") {
      fits = fits && renumber_keys(value, numbers);
    } else if (key == "groups" || key == "hosts") {
      fits = fits && renumber_values(value, numbers);
    } else if (key == "faults") {
      fits = fits && renumber_faults(value, numbers);
    } else if (key == "inputs") {
      value = inputs_of(value, numbers);
    } else if (key == "program" || key == "objects") {
      fits = fits && renumber_statement(value, numbers);
    }
  }
  return fits ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace rollcall::scenario
