// Who should have set a key that ranks wait for. Programs often let each rank set a key with its own number
// ("ready0", "ready1"), and wait for all of them: a barrier made by hand. If others have set theirs, the rank whose
// number is in the missing key is to blame, wherever it waits itself.

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <string>
#include <string_view>

#include "sim/base/ascii.h"
#include "sim/base/parse_number.h"
#include "sim/judge/judge_parts.h"
#include "sim/judge/suspects.h"
#include "sim/wording/wording_host.h"

namespace rollcall::check {
namespace {

using State = RankStatus::State;

// A key around one number in it.
struct Pattern {
  std::string_view before;
  std::string_view number;
  std::string_view after;
};

// The rank that a text names. Empty for "007": a program that pads its numbers pads those of all ranks alike.
std::optional<Rank> rank_in(const Evidence& evidence, std::string_view number) {
  const auto rank = parse_number<Rank>(number);
  const bool is_plain = number.size() == 1 || (!number.empty() && number.front() != '0');
  return rank && is_plain && *rank >= 0 && static_cast<std::size_t>(*rank) < evidence.ranks.size()
             ? rank
             : std::nullopt;
}

std::vector<Pattern> patterns_of(std::string_view key) {
  constexpr std::string_view digits = "0123456789";
  std::vector<Pattern> patterns;
  std::size_t end = 0;
  for (std::size_t at = key.find_first_of(digits); at != key.npos; at = key.find_first_of(digits, end)) {
    end = std::min(key.find_first_not_of(digits, at), key.size());
    patterns.push_back({key.substr(0, at), key.substr(at, end - at), key.substr(end)});
  }
  return patterns;
}

// True if ranks have set keys of this pattern, each with its own number.
bool is_set_by_each(const Evidence& evidence, const Pattern& pattern) {
  constexpr int most_looked_at = 10'000;  // of a store with many keys: enough to see a rule
  bool proves = false;
  int looked_at = 0;
  for (auto entry = evidence.key_setters->lower_bound(std::string(pattern.before));
       entry != evidence.key_setters->end() && looked_at < most_looked_at; ++entry, ++looked_at) {
    std::string_view rest = entry->first;
    if (!rest.starts_with(pattern.before)) {
      break;
    }
    rest.remove_prefix(pattern.before.size());
    if (rest.size() <= pattern.after.size() || !rest.ends_with(pattern.after)) {
      continue;
    }
    rest.remove_suffix(pattern.after.size());
    if (!std::ranges::all_of(rest, is_digit)) {
      continue;
    }
    if (rank_in(evidence, rest) != entry->second) {
      return false;
    }
    proves = proves || entry->second > 0;  // rank 0 alone may count from 0
  }
  return proves;
}

// The ranks that wait for a key, or gave up on one.
RankSet ranks_in_store(const Evidence& evidence) {
  RankSet ranks;
  for (std::size_t at = 0; at < evidence.store_waits.size(); ++at) {
    const auto rank = static_cast<Rank>(at);
    const RankStatus& status = evidence.ranks[at];
    if ((status.state == State::waiting && status.channel == Channel::store) ||
        gave_up_in_store(evidence, RankSet{rank})) {
      ranks.insert(rank);
    }
  }
  return ranks;
}

bool is_about_keys(const Evidence& evidence, const Verdict& verdict) {
  const Finding* finding = finding_of(verdict);
  return finding != nullptr &&
         (finding->kind == FindingKind::store_cycle || finding->kind == FindingKind::store_never_served ||
          (finding->kind == FindingKind::raised && gave_up_in_store(evidence, finding->culprits)));
}

// The rank whose number is in `key`, where other ranks have set the key with theirs, and no rank one with another's
// number. Empty if no rank is, if several are, or if what was set is as likely to be a count from 0.
std::optional<Rank> owner_of(const Evidence& evidence, const std::string& key) {
  if (evidence.key_deleters != nullptr && evidence.key_deleters->contains(key)) {
    return std::nullopt;
  }
  std::optional<Rank> owner;
  for (const Pattern& pattern : patterns_of(key)) {
    const auto rank = rank_in(evidence, pattern.number);
    if (!rank || !is_set_by_each(evidence, pattern)) {
      continue;
    }
    if (owner) {
      return std::nullopt;
    }
    owner = rank;
  }
  return owner;
}

}  // namespace

void blame_key_owners(const Evidence& evidence, Verdict& verdict) {
  if (!is_about_keys(evidence, verdict) || evidence.key_setters == nullptr || evidence.key_setters->empty()) {
    return;
  }
  constexpr std::size_t most_asked = 64;  // of many keys, the first tell as much
  std::map<std::string, std::optional<Rank>> owner_by_key;
  RankSet owners;
  RankSet waiting;
  for (const Rank rank : ranks_in_store(evidence).to_vector()) {
    for (const std::string& key : evidence.store_waits[static_cast<std::size_t>(rank)].keys) {
      if (owner_by_key.size() < most_asked && !owner_by_key.contains(key)) {
        owner_by_key.emplace(key, owner_of(evidence, key));
      }
      const auto known = owner_by_key.find(key);
      if (known != owner_by_key.end() && known->second) {
        owners.insert(*known->second);
        waiting.insert(rank);
      }
    }
  }
  if (owners.empty()) {
    return;
  }
  std::erase_if(owner_by_key, [](const auto& entry) { return !entry.second; });
  Finding& finding = *finding_of(verdict);
  blame_alone(owners, finding);
  std::vector<std::string> missing;
  std::ranges::copy(owner_by_key | std::views::keys, std::back_inserter(missing));
  word_key_owners(evidence, missing, waiting, finding);
  if (const auto* deadlock = std::get_if<Deadlock>(&verdict)) {
    const auto in_store = std::ranges::find_if(deadlock->blocked, [&](const Place& place) {
      return !place.call.key.empty() && waiting.contains(place.waiting);
    });
    finding.at = in_store != deadlock->blocked.end() ? *in_store : *finding.at;
    finding.at->missing = owners;
  }
}

}  // namespace rollcall::check
