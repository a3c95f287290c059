#include "viz/rows/roles.h"

#include <algorithm>
#include <numeric>

namespace rollcall::viz {

namespace {

std::size_t at(Rank rank) { return static_cast<std::size_t>(rank); }

bool has_peer(const Span& span, const Report& report) {
  return span.kind == Span::Kind::message && span.peer >= 0 && span.peer < report.world_size;
}

}  // namespace

Roles::Roles(const Report& report) {
  find_parties(report);
  find_peers(report);
  find_roles();
}

void Roles::find_parties(const Report& report) {
  std::vector<Rank> parent(at(report.world_size));
  std::iota(parent.begin(), parent.end(), Rank{0});
  const auto find = [&parent](Rank rank) {
    while (parent[at(rank)] != rank) {
      rank = parent[at(rank)] = parent[at(parent[at(rank)])];
    }
    return rank;
  };
  for (const Span& span : report.timeline.spans()) {
    if (has_peer(span, report)) {
      parent[at(find(span.peer))] = find(span.rank);
    }
  }
  std::map<Rank, std::size_t> numbers;
  for (Rank rank = 0; rank < report.world_size; ++rank) {
    const std::size_t number = numbers.try_emplace(find(rank), parties_.size()).first->second;
    parties_.resize(std::max(parties_.size(), number + 1));
    parties_[number].push_back(rank);
    party_.push_back(number);
  }
}

std::size_t Roles::position(Rank rank) const {
  const std::vector<Rank>& all = members(rank);
  return static_cast<std::size_t>(std::ranges::lower_bound(all, rank) - all.begin());
}

void Roles::find_peers(const Report& report) {
  peers_.resize(party_.size());
  for (const Span& span : report.timeline.spans()) {
    if (has_peer(span, report)) {
      Peers& peers = peers_[at(span.rank)];
      (report.timeline.name(span.name) == "send" ? peers.first : peers.second).insert(position(span.peer));
    }
  }
}

// In a ring, every rank sends to the neighbor on the same side, including the last rank to the first. One rank may have
// left the send out.
bool Roles::is_ring(const std::vector<Rank>& members) const {
  struct Step {
    std::size_t senders = 0;
    bool goes_around = false;  // from the end to the beginning, or the reverse
  };
  const std::size_t size = members.size();
  std::map<std::size_t, Step> steps;  // by the distance from the sender to the receiver
  for (std::size_t place = 0; place < size; ++place) {
    for (const std::size_t peer : peers_[at(members[place])].first) {
      const std::size_t way = (peer + size - place) % size;
      const std::size_t apart = peer > place ? peer - place : place - peer;
      ++steps[way].senders;
      steps[way].goes_around = steps[way].goes_around || apart != std::min(way, size - way);
    }
  }
  return std::ranges::all_of(
      steps, [size](const auto& step) { return step.second.goes_around && step.second.senders + 1 >= size; });
}

void Roles::find_roles() {
  roles_.resize(party_.size());
  shares_partners_.resize(party_.size(), false);
  for (const std::vector<Rank>& all : parties_) {
    rings_.push_back(all.size() > 1 && is_ring(all));
    std::map<Peers, std::size_t> places;  // the first rank with these partners
    for (std::size_t place = 0; place < all.size(); ++place) {
      const auto [entry, is_new] = places.try_emplace(peers_[at(all[place])], place);
      roles_[at(all[place])] = {rings_.back() ? 0 : entry->second, all.size()};
      if (!is_new && !rings_.back()) {
        shares_partners_[at(all[place])] = shares_partners_[at(all[entry->second])] = true;
      }
    }
  }
}

RankSet Roles::comparable(const RankSet& ranks, const RankSet& culprits) const {
  const std::vector<Rank> all = ranks.to_vector();
  if (std::ranges::all_of(all, [&](Rank rank) { return role(rank) == role(all.front()); })) {
    return ranks;
  }
  for (const Rank culprit : culprits.to_vector()) {
    std::vector<Rank> alike;
    for (std::size_t rank = 0; rank < roles_.size(); ++rank) {
      if (roles_[rank] == role(culprit)) {
        alike.push_back(static_cast<Rank>(rank));
      }
    }
    RankSet found = RankSet::of(std::move(alike));
    if (!culprits.contains(found)) {
      return found;
    }
  }
  return {};
}

std::int64_t Roles::partner(const Span& span) const {
  if (span.kind != Span::Kind::message || span.peer < 0 || at(span.peer) >= roles_.size()) {
    return 0;
  }
  const auto place = static_cast<std::int64_t>(position(span.peer));
  if (shares_partners_[at(span.rank)]) {
    return place;
  }
  const std::int64_t way = place - static_cast<std::int64_t>(position(span.rank));
  const auto size = static_cast<std::int64_t>(members(span.rank).size());
  return rings_[party_[at(span.rank)]] ? (way + size) % size : way;
}

}  // namespace rollcall::viz
