#pragma once

// The scopes of a run, as a tree (sim/c10d/scope.h enters them).
//
// Scopes answer the question no size or dtype can: *did these two calls belong together?* Each
// scope has a pairing. Calls that meet in one slot must have equal pairings; two barriers from
// different places pair silently in every real backend, and here that is a first divergence.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "sim/base/scope_id.h"

namespace rollcall {

// Decides which calls belong together. Weak pairings (a user's labels) are compared among labeled calls only; strict
// ones (the Join protocol) also against calls without any label.
struct Pairing {
  std::uint32_t id = 0;  // 0: unlabeled
  bool strict = false;

  friend bool operator==(const Pairing&, const Pairing&) = default;
};

// False when two calls in one slot provably came from different places.
constexpr bool may_pair(Pairing a, Pairing b) {
  if (a.id == b.id) {
    return true;
  }
  return !(a.strict || b.strict) && (a.id == 0 || b.id == 0);
}

// The scopes of one run, as a tree. Ids are indexes in order of first use and never change; scope 0
// is the empty one.
class ScopeTable {
 public:
  ScopeTable();

  // The scope `name` inside `parent`. A scope inherits its parent's strict pairing; otherwise it
  // pairs by its own name.
  ScopeId enter(ScopeId parent, std::string_view name);
  // The same, with an explicit strict pairing: "join.count" pairs as "join.presence".
  ScopeId enter_paired(ScopeId parent, std::string_view name, std::string_view pairing);

  std::string_view name(ScopeId scope) const { return nodes_[scope].name; }
  ScopeId parent(ScopeId scope) const { return nodes_[scope].parent; }
  Pairing pairing(ScopeId scope) const { return nodes_[scope].pairing; }
  std::string_view pairing_name(Pairing pairing) const { return pairings_[pairing.id]; }
  std::string path(ScopeId scope) const;  // "epoch/counter.forward"
  // True if any rank has entered a scope of this name. Scans every scope: for reports.
  bool has_entered(std::string_view name) const;

 private:
  struct Node {
    std::string name;
    ScopeId parent = no_scope;
    Pairing pairing;
    // The scopes inside this one that were entered last, by enter and by enter_paired. Ranks of one program reach the
    // same place one after another, so most entries need no lookup and no memory.
    ScopeId latest = no_scope;
    ScopeId latest_paired = no_scope;
  };
  ScopeId add(ScopeId parent, std::string_view name, Pairing pairing);
  std::uint32_t pairing_id(std::string_view name);

  std::deque<Node> nodes_;  // never shrinks: ids are indexes
  std::deque<std::string> pairings_;
  std::unordered_map<std::string, ScopeId> children_;           // looked up, never iterated
  std::unordered_map<std::string, std::uint32_t> pairing_ids_;  // likewise
};

}  // namespace rollcall
