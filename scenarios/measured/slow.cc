#include "scenarios/measured/slow.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "scenarios/measured/median.h"
#include "sim/cost/group_cost.h"

namespace rollcall::measured {

namespace {

// A table is called ill if half of its rows take this many times as long as expected, or half of its large ones, which
// are predicted better. Of the published tables of healthy machines, the worst has 2.2 and 1.6; the suspect one has 6.7
// and 2.3 (tests/latency).
constexpr double ill_table = 3;
constexpr double ill_large = 1.7;
constexpr std::int64_t large = std::int64_t{16} << 20;  // more bytes than this
// A part is called slow if the calls that use it take this many times as long as those of its peers.
constexpr double slow_part = 1.25;
// They must also exceed chance: this many times the usual spread of calls, and more if fewer calls use the part.
constexpr double slow_spreads = 5;
// The part must also explain this share of the excess of all calls.
constexpr double explained_share = 0.5;
// The number of groups of one kind that make a median worth comparing with.
constexpr std::size_t peers_least = 4;
// A rank is late if it arrives this many microseconds after the others, and by this share of the usual time of calls.
constexpr double late_least = 25;
constexpr double late_share = 0.15;
constexpr double spreads = 6;  // and by this many times the usual difference between ranks
constexpr std::size_t findings_max = 4;

std::vector<int> hosts_of(const Timings& timings, const Timing& call) {
  std::vector<int> hosts;
  for (const int member : call.members) {
    const int host = timings.ranks[static_cast<std::size_t>(member)].host;
    if (hosts.empty() || hosts.back() != host) {
      hosts.push_back(host);
    }
  }
  return hosts;
}

// ---- Ranks that arrive late.

// A rank that arrives late waits less than the others do. Returns how much less, as the median over its calls.
std::vector<double> lateness_of(const Timings& timings) {
  std::vector<std::vector<double>> of_rank(timings.ranks.size());
  for (const Timing& call : timings.calls) {
    const double usual = median(call.waited);
    for (std::size_t i = 0; i < call.waited.size(); ++i) {
      of_rank[static_cast<std::size_t>(call.members[i])].push_back(usual - call.waited[i]);
    }
  }
  std::vector<double> result;
  for (const auto& values : of_rank) {
    result.push_back(median(values));
  }
  return result;
}

double usual_time(const Timings& timings) {
  std::vector<double> times;
  for (const Timing& call : timings.calls) {
    if (!call.waited.empty()) {
      times.push_back(call.time);
    }
  }
  return median(times);
}

std::vector<Illness> late_parts(const Timings& timings) {
  const std::vector<double> late = lateness_of(timings);
  std::vector<double> deviations;
  const double middle = median(late);
  for (const double each : late) {
    deviations.push_back(std::abs(each - middle));
  }
  const double threshold =
      std::max({late_least, late_share * usual_time(timings), spreads * median(deviations)});
  std::map<int, std::vector<int>> late_on_host;
  std::map<int, int> ranks_on_host;
  for (std::size_t rank = 0; rank < late.size(); ++rank) {
    const int host = timings.ranks[rank].host;
    ++ranks_on_host[host];
    if (late[rank] > threshold) {
      late_on_host[host].push_back(static_cast<int>(rank));
    }
  }
  std::vector<Illness> found;
  for (const auto& [host, ranks] : late_on_host) {
    std::vector<double> own;
    for (const int rank : ranks) {
      own.push_back(late[static_cast<std::size_t>(rank)]);
    }
    const std::string& host_name = timings.hosts[static_cast<std::size_t>(host)];
    if (ranks_on_host[host] > 1 && 2 * static_cast<int>(ranks.size()) > ranks_on_host[host]) {
      found.push_back({Part::host, host_name, 1, median(own),
                       fmt::format("{} of its {} ranks come {:.0f} us later to their calls than the others",
                                   ranks.size(), ranks_on_host[host], median(own))});
      continue;
    }
    for (const int rank : ranks) {
      const double own_late = late[static_cast<std::size_t>(rank)];
      found.push_back(
          {Part::gpu, fmt::format("rank {}", timings.ranks[static_cast<std::size_t>(rank)].name), 1, own_late,
           fmt::format("it comes {:.0f} us later to its calls than the others, and its host's other ranks do "
                       "not: its GPU is slow, or its process",
                       own_late)});
    }
  }
  return found;
}

// ---- Parts that carry less.

// A call compared with its peers.
struct Compared {
  const Timing* call = nullptr;
  std::vector<int> hosts;
  double log_ratio = 0;
};

using Kind = std::tuple<OpKind, std::int64_t, std::size_t, std::size_t>;  // bytes, ranks, nodes

std::optional<double> expected_time(const cost::Cluster* cluster, const Timing& call, std::size_t hosts) {
  if (cluster == nullptr) {
    return std::nullopt;
  }
  const cost::GroupCost group(cost::communicator_of(*cluster, static_cast<int>(call.members.size()),
                                                    static_cast<int>(std::min(hosts, call.members.size()))));
  const auto prediction = group.predict({.kind = call.op, .bytes = call.bytes, .same_node = hosts == 1});
  // Only time beyond the interval counts as excess.
  return prediction ? std::optional(std::clamp(call.time, prediction->low, prediction->high)) : std::nullopt;
}

std::vector<Compared> compare(const Timings& timings, const cost::Cluster* cluster) {
  std::map<Kind, std::map<std::vector<int>, std::vector<const Timing*>>> kinds;
  for (const Timing& call : timings.calls) {
    const std::size_t hosts = hosts_of(timings, call).size();
    kinds[{call.op, call.bytes, call.members.size(), hosts}][call.members].push_back(&call);
  }
  std::vector<Compared> compared;
  for (const auto& [kind, groups] : kinds) {
    std::vector<double> times;
    std::vector<std::pair<const Timing*, double>> of_groups;
    for (const auto& [members, calls] : groups) {
      std::vector<double> own;
      for (const Timing* call : calls) {
        own.push_back(call->time);
      }
      of_groups.emplace_back(calls.front(), median(own));
      times.push_back(median(own));
    }
    // If there are many peers, few of them are slow: the lower half's median is what healthy ones take.
    std::ranges::sort(times);
    const double usual = times[(times.size() - 1) * 2 / 5];
    for (const auto& [call, time] : of_groups) {
      Timing typical = *call;
      typical.time = time;
      const std::size_t hosts = std::get<3>(kind);
      const auto reference =
          groups.size() >= peers_least ? std::optional(usual) : expected_time(cluster, typical, hosts);
      if (reference) {
        compared.push_back({call, hosts_of(timings, *call), std::log(time / *reference)});
      }
    }
  }
  return compared;
}

// A part that could be slow.
struct Suspect {
  Part part;
  int first;
  int second;

  friend auto operator<=>(const Suspect&, const Suspect&) = default;
};

std::vector<Suspect> suspects_of(const Compared& each) {
  std::vector<Suspect> suspects;
  const bool crosses = each.hosts.size() > 1;
  for (const int member : each.call->members) {
    suspects.push_back({crosses ? Part::nic : Part::nvlink, member, -1});
    suspects.push_back({Part::gpu, member, -1});
  }
  for (std::size_t i = 0; crosses && i < each.hosts.size(); ++i) {
    suspects.push_back({Part::node, each.hosts[i], -1});
    const int next = each.hosts[(i + 1) % each.hosts.size()];
    if (each.hosts.size() > 2 || i == 0) {
      suspects.push_back({Part::link, std::min(each.hosts[i], next), std::max(each.hosts[i], next)});
    }
  }
  return suspects;
}

std::string name_of(const Timings& timings, const Suspect& suspect) {
  const auto rank = [&](int at) { return timings.ranks[static_cast<std::size_t>(at)].name; };
  const auto host = [&](int at) { return timings.hosts[static_cast<std::size_t>(at)]; };
  switch (suspect.part) {
    case Part::nic:
      return fmt::format("NIC of rank {} ({})", rank(suspect.first),
                         host(timings.ranks[static_cast<std::size_t>(suspect.first)].host));
    case Part::nvlink:
      return fmt::format("NVLink of rank {}", rank(suspect.first));
    case Part::gpu:
      return fmt::format("rank {}", rank(suspect.first));
    case Part::node:
      return fmt::format("{}", host(suspect.first));
    case Part::link:
      return fmt::format("link between {} and {}", host(suspect.first), host(suspect.second));
    case Part::host:
    case Part::machine:
      break;
  }
  return "the machine";
}

struct Explanation {
  Suspect suspect{};
  std::vector<std::size_t> covered;
  double log_factor = 0;
  double explained = 0;  // part of the excess of all calls
};

// Returns the log of how slow a part is, if it is the common cause of these calls.
Explanation explain(const Suspect& suspect, std::vector<std::size_t> covered,
                    const std::vector<Compared>& calls) {
  std::vector<double> logs;
  for (const std::size_t at : covered) {
    logs.push_back(calls[at].log_ratio);
  }
  Explanation explanation{suspect, std::move(covered), median(logs), 0};
  for (const double log : logs) {
    explanation.explained += std::abs(log) - std::abs(log - explanation.log_factor);
  }
  return explanation;
}

// The usual spread of the logarithms of calls.
double spread_of(const std::vector<Compared>& calls) {
  std::vector<double> logs;
  for (const Compared& each : calls) {
    logs.push_back(std::abs(each.log_ratio));
  }
  return 1.48 * median(std::move(logs));
}

// Returns the part that explains most, and others that explain the same calls equally well.
std::vector<Explanation> best_explanations(const std::vector<Compared>& calls) {
  std::map<Suspect, std::vector<std::size_t>> covered;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (const Suspect& suspect : suspects_of(calls[i])) {
      covered[suspect].push_back(i);
    }
  }
  std::vector<Explanation> best;
  const double spread = spread_of(calls);
  for (auto& [suspect, own] : covered) {
    Explanation each = explain(suspect, std::move(own), calls);
    const double by_chance = slow_spreads * spread / std::sqrt(static_cast<double>(each.covered.size()));
    if (each.log_factor < std::max(std::log(slow_part), by_chance)) {
      continue;
    }
    if (!best.empty() && each.explained < best.front().explained - 1e-9) {
      continue;
    }
    if (!best.empty() && each.explained > best.front().explained + 1e-9) {
      best.clear();
    }
    best.push_back(std::move(each));
  }
  return best;
}

// Names several parts that the same calls use: the calls cannot distinguish them.
std::string names_of(const Timings& timings, const std::vector<Explanation>& explanations) {
  constexpr std::size_t names_max = 4;
  std::string names;
  for (std::size_t i = 0; i < std::min(names_max, explanations.size()); ++i) {
    names += (i == 0 ? "" : ", or ") + name_of(timings, explanations[i].suspect);
  }
  return names + (explanations.size() > names_max ? ", or others" : "");
}

std::vector<Illness> slow_parts(const Timings& timings, const cost::Cluster* cluster) {
  std::vector<Compared> calls = compare(timings, cluster);
  std::vector<Illness> found;
  while (found.size() < findings_max) {
    double odd = 0;
    for (const Compared& each : calls) {
      odd += each.log_ratio > std::log(slow_part) ? each.log_ratio : 0;
    }
    std::vector<Explanation> best = odd > 0 ? best_explanations(calls) : std::vector<Explanation>();
    if (best.empty() || best.front().explained < explained_share * odd * (found.empty() ? 1 : 0.8)) {
      break;
    }
    // A GPU slows calls inside its node and calls that leave it; if it explains no more than a part for only one of
    // these, it is not the GPU.
    std::ranges::stable_sort(best, {},
                             [](const Explanation& each) { return each.suspect.part == Part::gpu; });
    if (best.front().suspect.part != Part::gpu) {
      std::erase_if(best, [](const Explanation& each) { return each.suspect.part == Part::gpu; });
    }
    const Explanation& first = best.front();
    const double factor = std::exp(first.log_factor);
    found.push_back(
        {first.suspect.part, names_of(timings, best), factor, 0,
         fmt::format("{} kinds of calls that pass it take {:.2f} times as long as those of peers do",
                     first.covered.size(), factor)});
    for (const std::size_t at : first.covered) {
      calls[at].log_ratio -= std::min(first.log_factor, std::max(0.0, calls[at].log_ratio));
    }
  }
  return found;
}

}  // namespace

std::vector<Illness> ill_parts(const Timings& timings, const cost::Cluster* cluster) {
  std::vector<Illness> found = late_parts(timings);
  std::ranges::move(slow_parts(timings, cluster), std::back_inserter(found));
  return found;
}

std::vector<TableVerdict> judge_tables(const std::vector<BenchTable>& tables, const cost::Cluster& cluster) {
  std::vector<TableVerdict> verdicts;
  for (const BenchTable& table : tables) {
    TableVerdict verdict{.file = table.file, .op = table.op};
    std::vector<double> ratios;
    std::vector<double> large_ratios;
    for (const cost::Measurement& row : measurements_of({table}, cluster)) {
      const cost::GroupCost group(cost::communicator_of(cluster, row.ranks, row.nodes));
      const auto prediction =
          group.predict({.kind = row.kind, .bytes = row.bytes, .same_node = row.nodes == 1});
      if (!prediction) {
        continue;
      }
      ratios.push_back(row.time / prediction->fitted);
      if (row.bytes > large) {
        large_ratios.push_back(ratios.back());
      }
      if (ratios.back() > verdict.worst_ratio) {
        verdict.worst_ratio = ratios.back();
        verdict.worst_bytes = row.bytes;
      }
    }
    if (!ratios.empty()) {
      verdict.median_ratio = median(ratios);
      verdict.large_ratio = large_ratios.empty() ? 0 : median(large_ratios);
      verdict.is_ill = verdict.median_ratio >= ill_table || verdict.large_ratio >= ill_large;
      verdicts.push_back(verdict);
    }
  }
  return verdicts;
}

}  // namespace rollcall::measured
