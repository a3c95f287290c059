#pragma once

// Pieces of sentences that several findings share.

#include <algorithm>
#include <iterator>
#include <string>

#include "sim/base/expects.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// The row for this kind in a table of words.
template <typename Rows>
const auto& row_of(const Rows& rows, FindingKind kind) {
  const auto row = std::ranges::find_if(rows, [kind](const auto& each) { return each.kind == kind; });
  expects(row != std::end(rows), "a kind of finding has its row among the words of its verdict");
  return *row;
}

bool is_plural(const RankSet& ranks);

// For ranks whose calls on several groups cross.
inline constexpr const char* groups_in_one_order = "use the groups in one order on all ranks";

// "rank 0 waits", "ranks 1-3 wait".
std::string with_verb(const RankSet& ranks, const char* singular, const char* plural);

// " in save_checkpoint at train.json:12:5", " in 'data' at train.json:9:5": where a call is made, with a leading blank;
// empty when nothing is known.
std::string origin_of(const Call& call);

// "save_checkpoint", or the site of a call without a label, or "unlabeled code".
std::string place_name(const Call& call);

// "1 element", "17 elements".
std::string elements(std::int64_t count);

}  // namespace rollcall::check
