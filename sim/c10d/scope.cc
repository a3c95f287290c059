#include "sim/c10d/scope.h"

#include "sim/base/scope_table.h"
#include "sim/c10d/rank_context.h"

namespace rollcall {

Scope::Scope(std::string_view name) : outer_(this_rank().scope) {
  RankContext& rank = this_rank();
  rank.scope = rank.scopes->enter(outer_, name);
}

Scope::Scope(std::string_view name, std::string_view pairing) : outer_(this_rank().scope) {
  RankContext& rank = this_rank();
  rank.scope = rank.scopes->enter_paired(outer_, name, pairing);
}

Scope::~Scope() { this_rank().scope = outer_; }

}  // namespace rollcall
