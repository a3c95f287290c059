#include "sim/base/scope_table.h"

#include <algorithm>

namespace rollcall {

ScopeTable::ScopeTable() {
  nodes_.emplace_back();     // scope 0: outside every scope
  pairings_.emplace_back();  // pairing 0: unlabeled
}

ScopeId ScopeTable::enter(ScopeId parent, std::string_view name) {
  const ScopeId latest = nodes_[parent].latest;
  if (latest != no_scope && nodes_[latest].name == name) [[likely]] {
    return latest;
  }
  const Pairing outer = pairing(parent);
  const ScopeId scope = add(parent, name, outer.strict ? outer : Pairing{pairing_id(name), false});
  return nodes_[parent].latest = scope;
}

ScopeId ScopeTable::enter_paired(ScopeId parent, std::string_view name, std::string_view pairing) {
  const ScopeId latest = nodes_[parent].latest_paired;
  if (latest != no_scope && nodes_[latest].name == name && pairing_name(nodes_[latest].pairing) == pairing)
      [[likely]] {
    return latest;
  }
  const ScopeId scope = add(parent, name, Pairing{pairing_id(pairing), true});
  return nodes_[parent].latest_paired = scope;
}

ScopeId ScopeTable::add(ScopeId parent, std::string_view name, Pairing pairing) {
  // The key's parts cannot run together: the numbers come first and end in a blank.
  std::string key = std::to_string(parent) + ' ' + std::to_string(pairing.id) + (pairing.strict ? "! " : " ");
  key += name;
  auto [entry, is_new] = children_.try_emplace(std::move(key), static_cast<ScopeId>(nodes_.size()));
  if (is_new) {
    nodes_.push_back({.name = std::string(name), .parent = parent, .pairing = pairing});
  }
  return entry->second;
}

std::uint32_t ScopeTable::pairing_id(std::string_view name) {
  auto [entry, is_new] =
      pairing_ids_.try_emplace(std::string(name), static_cast<std::uint32_t>(pairings_.size()));
  if (is_new) {
    pairings_.emplace_back(name);
  }
  return entry->second;
}

std::string ScopeTable::path(ScopeId scope) const {
  std::string text;
  for (; scope != no_scope; scope = parent(scope)) {
    text = std::string(name(scope)) + (text.empty() ? "" : "/") + text;
  }
  return text;
}

bool ScopeTable::has_entered(std::string_view name) const {
  return std::ranges::any_of(nodes_, [name](const Node& node) { return node.name == name; });
}

}  // namespace rollcall
