#include "scenarios/compare/times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "real/nccl/gpu_probe.h"
#include "scenarios/measured/median.h"
#include "sim/c10d/backend_traits.h"
#include "sim/cost/group_cost.h"
#include "viz/rows/phrases.h"

namespace rollcall::compare {

namespace {

constexpr std::size_t repeats_least = 3;

// A collective, with all its members.
struct Met {
  Op op;
  std::vector<Rank> ranks;  // global ranks on which it completed
  Duration least = std::numeric_limits<Duration>::max();
};
using Calls = std::map<std::pair<GroupId, std::int64_t>, Met>;  // by number in the group

void add_calls(const std::vector<real::Record>& log, Rank rank, std::map<GroupId, std::size_t>& members,
               Calls& calls) {
  std::map<GroupId, std::int64_t> issued;
  std::map<std::int64_t, std::pair<GroupId, std::int64_t>> keys;  // by number in the log
  for (const real::Record& record : log) {
    const Op& op = record.op.op;
    if (record.kind == real::Record::Kind::issue && row_of(op.kind).family == Family::collective) {
      const std::int64_t number = issued[op.group]++;
      members[op.group] += number == 0 ? 1 : 0;
      keys[record.call] = {op.group, number};
      calls.try_emplace({op.group, number}).first->second.op = op;
    } else if (record.kind == real::Record::Kind::complete && record.ran_from >= 0 &&
               record.ran_to > record.ran_from && keys.contains(record.call)) {
      Met& met = calls.at(keys.at(record.call));
      met.least = std::min(met.least, record.ran_to - record.ran_from);
      met.ranks.push_back(rank);
    }
  }
}

Claim claim_of(const CallTimes& times, const cost::Cluster& cluster) {
  const cost::GroupCost group(cost::communicator_of(cluster, times.ranks, times.nodes));
  const auto expected = group.predict({.kind = times.kind,
                                       .bytes = times.bytes,
                                       .dtype = times.dtype,
                                       .reduce = times.reduce,
                                       .same_node = times.nodes == 1});
  const auto [least, most] = std::ranges::minmax(times.times);
  const double middle = measured::median(times.times);
  Claim claim{fmt::format("time of {} of {} on {} ranks", to_string(times.kind),
                          viz::exact_bytes_phrase(times.bytes), times.ranks),
              expected ? fmt::format("{:.1f} us, 9 of 10 from {:.1f} to {:.1f}", expected->fitted,
                                     expected->low, expected->high)
                       : "none",
              fmt::format("{:.1f} us, the median of {} from {:.1f} to {:.1f}", middle, times.times.size(),
                          least, most),
              Claim::Judgement::agrees,
              {}};
  if (!expected || times.times.size() < repeats_least) {
    claim.judgement = Claim::Judgement::cannot_be_judged;
    claim.because = !expected ? "the cluster's NCCL settings leave no algorithm"
                              : fmt::format("it ran {} after its group's first call, and a median needs {}",
                                            times.times.size() == 1 ? "once" : "twice", repeats_least);
  } else if (middle < expected->low || middle > expected->high) {
    claim.judgement = Claim::Judgement::differs;
    claim.because = fmt::format("the median is {:.2f} times what is expected, outside its interval",
                                middle / expected->fitted);
  } else {
    claim.because = fmt::format("the median is {:.2f} times what is expected, inside its interval",
                                middle / expected->fitted);
  }
  return claim;
}

std::string of_cpus(const std::string& backend) {
  const BackendTraits& traits = traits_of(backend);
  return traits.device == DeviceType::cpu
             ? fmt::format("{}'s times over loopback say nothing about a cluster", traits.title)
             : "";
}

}  // namespace

std::vector<CallTimes> times_of(const std::vector<std::vector<real::Record>>& logs, Rank ranks_per_node) {
  Calls calls;
  std::map<GroupId, std::size_t> members;
  for (std::size_t rank = 0; rank < logs.size(); ++rank) {
    add_calls(logs[rank], static_cast<Rank>(rank), members, calls);
  }
  std::map<std::tuple<OpKind, std::int64_t, int, int, Dtype, ReduceOp>, std::vector<double>> by_kind;
  for (const auto& [key, met] : calls) {
    const auto& [group, number] = key;
    if (number == 0 || met.ranks.size() != members.at(group) || met.ranks.size() < 2) {
      continue;
    }
    std::set<Rank> nodes;
    for (const Rank rank : met.ranks) {
      nodes.insert(rank / std::max(1, ranks_per_node));
    }
    const auto ranks = static_cast<int>(met.ranks.size());
    const std::int64_t input =
        has_tensor(met.op.kind) ? met.op.numel * static_cast<std::int64_t>(size_of(met.op.dtype)) : 0;
    by_kind[{met.op.kind, cost::bytes_of_call(met.op.kind, input, ranks), ranks,
             static_cast<int>(nodes.size()), met.op.dtype, met.op.reduce}]
        .push_back(viz::in_microseconds(met.least));
  }
  std::vector<CallTimes> times;
  for (auto& [key, of_kind] : by_kind) {
    const auto& [kind, bytes, ranks, nodes, dtype, reduce] = key;
    times.push_back({kind, dtype, reduce, bytes, ranks, nodes, std::move(of_kind)});
  }
  return times;
}

NoTimes why_no_times(const std::string& backend, Rank ranks_on_this_host) {
  if (std::string because = of_cpus(backend); !because.empty()) {
    return {std::move(because)};
  }
  const real::GpuProbe gpus = real::probe_gpus();
  if (gpus.gpus < ranks_on_this_host) {
    return {std::string(shared_gpu)};
  }
  return gpus.is_stand_in
             ? NoTimes{"the libraries are the stand-in of rollcall's tests, whose times say nothing about GPUs",
                       true}
             : NoTimes{};
}

std::vector<Claim> time_claims(const Facts& real, const std::optional<cost::Cluster>& cluster) {
  std::string because = real.no_times.empty() ? of_cpus(real.backend) : real.no_times;
  const char* const missing = !cluster ? "the scenario has no cluster whose times could be predicted"
                              : real.times.empty() ? "no collective completed after its group's first one"
                                                   : "";
  because = because.empty() ? missing : because;
  if (!because.empty()) {
    return {{"time", "simulated", "measured", Claim::Judgement::cannot_be_judged, because}};
  }
  std::vector<Claim> claims;
  for (const CallTimes& times : real.times) {
    claims.push_back(claim_of(times, *cluster));
  }
  return claims;
}

std::string calibration_file(const std::vector<CallTimes>& times, const std::string& remark) {
  using Json = nlohmann::ordered_json;
  std::map<std::tuple<OpKind, int, int>, Json> rows;
  for (const CallTimes& each : times) {
    rows[{each.kind, each.ranks, each.nodes}].push_back(
        {{"bytes", each.bytes}, {"time_us", measured::median(each.times)}, {"repeats", each.times.size()}});
  }
  Json document{{"rollcall_times", 1}, {"remark", remark}, {"tables", Json::array()}};
  for (auto& [key, of_table] : rows) {
    const auto& [kind, ranks, nodes] = key;
    document["tables"].push_back(
        {{"collective", to_string(kind)}, {"ranks", ranks}, {"nodes", nodes}, {"rows", std::move(of_table)}});
  }
  return document.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::compare
