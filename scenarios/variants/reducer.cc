#include "scenarios/variants/reducer.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace rollcall::scenario {
namespace {

using Pointer = OrderedJson::json_pointer;

// These are not shrunk: a format's version, the number of ranks, which is reduced separately, a seed, and the name.
const std::set<std::string> fixed_members = {"version", "world_size", "seed", "name"};

// Collects the places in a tree that satisfy `wanted`, from the outside in.
template <typename Wanted>
void collect(const OrderedJson& value, const Pointer& at, const Wanted& wanted,
             std::vector<Pointer>& places) {
  if (wanted(value)) {
    places.push_back(at);
  }
  if (!value.is_structured()) {
    return;
  }
  std::size_t index = 0;
  for (const auto& [key, member] : value.items()) {
    if (value.is_array()) {
      collect(member, at / index, wanted, places);
    } else if (!fixed_members.contains(key)) {
      collect(member, at / key, wanted, places);
    }
    ++index;
  }
}

template <typename Wanted>
std::vector<Pointer> places_of(const OrderedJson& tree, const Wanted& wanted) {
  std::vector<Pointer> places;
  collect(tree, Pointer(), wanted, places);
  return places;
}

// Visits the places one after the other. What a visit removes shifts later places, so they are searched for again.
template <typename Wanted, typename Visit>
bool for_each_place(const OrderedJson& tree, const Wanted& wanted, const Visit& visit) {
  bool changed = false;
  for (std::size_t next = 0;; ++next) {
    const std::vector<Pointer> places = places_of(tree, wanted);
    if (next >= places.size()) {
      return changed;
    }
    changed = visit(places[next]) || changed;
  }
}

bool is_list(const OrderedJson& value) { return value.is_array() && !value.empty(); }
bool is_object(const OrderedJson& value) { return value.is_object(); }
bool is_number(const OrderedJson& value) { return value.is_number_integer() && value != 0 && value != 1; }

// A list of statements, or of other objects.
bool is_block(const OrderedJson& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, is_object);
}

// Every block in a statement: `do`, `else`, the branches of a choice.
std::vector<OrderedJson> blocks_in(const OrderedJson& statement) {
  std::vector<OrderedJson> blocks;
  if (!statement.is_object()) {
    return blocks;
  }
  for (const OrderedJson& member : statement) {
    if (is_block(member)) {
      blocks.push_back(member);
    } else if (member.is_array()) {
      std::ranges::copy_if(member, std::back_inserter(blocks), is_block);
    }
  }
  return blocks;
}

}  // namespace

bool offer(OrderedJson& tree, OrderedJson candidate, const Accepts& accepts) {
  if (!accepts(candidate)) {
    return false;
  }
  tree = std::move(candidate);
  return true;
}

// From the end, by halves, quarters, and so on: later elements often depend on earlier ones.
bool shorten_lists(OrderedJson& tree, const Accepts& accepts) {
  return for_each_place(tree, is_list, [&](const Pointer& list) {
    bool changed = false;
    for (std::size_t chunk = tree.at(list).size(); chunk > 0; chunk /= 2) {
      std::size_t end = tree.at(list).size();
      while (end > 0) {
        const std::size_t begin = end > chunk ? end - chunk : 0;
        OrderedJson candidate = tree;
        OrderedJson& elements = candidate.at(list);
        elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(begin),
                       elements.begin() + static_cast<std::ptrdiff_t>(end));
        changed = offer(tree, std::move(candidate), accepts) || changed;
        end = begin;
      }
    }
    return changed;
  });
}

bool unwrap_blocks(OrderedJson& tree, const Accepts& accepts) {
  const auto unwrap = [&](const Pointer& list, std::size_t index) {
    for (const OrderedJson& block : blocks_in(tree.at(list)[index])) {
      OrderedJson candidate = tree;
      OrderedJson& elements = candidate.at(list);
      const auto place = elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(index));
      elements.insert(place, block.begin(), block.end());
      if (offer(tree, std::move(candidate), accepts)) {
        return true;
      }
    }
    return false;
  };
  return for_each_place(tree, is_block, [&](const Pointer& list) {
    bool changed = false;
    for (std::size_t index = 0; index < tree.at(list).size(); ++index) {
      changed = unwrap(list, index) || changed;
    }
    return changed;
  });
}

bool drop_members(OrderedJson& tree, const Accepts& accepts) {
  return for_each_place(tree, is_object, [&](const Pointer& object) {
    bool changed = false;
    const OrderedJson members = tree.at(object);
    for (const auto& [key, value] : members.items()) {
      if (!fixed_members.contains(key)) {
        OrderedJson candidate = tree;
        candidate.at(object).erase(key);
        changed = offer(tree, std::move(candidate), accepts) || changed;
      }
    }
    return changed;
  });
}

bool shrink_numbers(OrderedJson& tree, const Accepts& accepts) {
  return for_each_place(tree, is_number, [&](const Pointer& number) {
    const auto set = [&](std::int64_t value) {
      OrderedJson candidate = tree;
      candidate.at(number) = value;
      return offer(tree, std::move(candidate), accepts);
    };
    std::int64_t accepted = tree.at(number).get<std::int64_t>();
    if (set(0) || (accepted != 1 && set(1))) {
      return true;
    }
    const std::int64_t before = accepted;
    for (std::int64_t refused = 1; accepted - refused > 1;) {
      const std::int64_t middle = refused + (accepted - refused) / 2;
      (set(middle) ? accepted : refused) = middle;
    }
    return accepted != before;
  });
}

std::size_t count_statements(const OrderedJson& scenario) {
  std::size_t count = 0;
  for (const char* member : {"program", "programs", "objects"}) {
    if (scenario.contains(member)) {
      const OrderedJson& part = scenario.at(member);
      for (const Pointer& block : places_of(part, is_block)) {
        const std::string name = block.empty() ? "" : block.back();
        count += name == "parameters" || name == "buffers" ? 0 : part.at(block).size();
      }
    }
  }
  return count;
}

}  // namespace rollcall::scenario
