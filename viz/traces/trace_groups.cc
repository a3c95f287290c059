#include "viz/traces/trace_groups.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/c10d/backend_traits.h"

namespace rollcall::viz {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t listed_max = 30;  // as in PyTorch, torch/csrc/distributed/c10d/ParamCommsUtils.cpp

std::string listed(const RankSet& ranks) {
  return ranks.size() > listed_max ? "" : fmt::format("[{}]", fmt::join(ranks.to_vector(), ", "));
}

}  // namespace

std::string distributed_info(const Report& report, Rank rank) {
  std::vector<ReportGroup> groups = report.groups;
  if (groups.empty()) {
    groups.push_back({"world", RankSet::range(0, report.world_size - 1)});
  }
  Json config = Json::array();
  for (const ReportGroup& group : groups) {
    const bool is_world = group.name == "world";
    config.push_back(
        {{"pg_name", group.name},
         {"pg_desc", is_world ? "default_pg" : group.name},
         {"backend_config",
          (traits_of(report.backend).device == DeviceType::cpu ? "cpu:" : "cuda:") + report.backend},
         {"pg_size", group.ranks.size()},
         {"ranks", group.ranks.to_vector()}});
  }
  Json info = {{"backend", report.backend}};
  if (rank >= 0) {
    info["rank"] = rank;
  }
  info["world_size"] = report.world_size;
  info["pg_count"] = groups.size();
  info["pg_config"] = std::move(config);
  std::string text = info.dump(-1, ' ', true, Json::error_handler_t::replace);
  // Holistic Trace Analysis finds the rank with a pattern that requires a space there.
  const std::string compact = "\"rank\":";
  if (const std::size_t at = text.find(compact); rank >= 0 && at != std::string::npos) {
    text.insert(at + compact.size(), " ");
  }
  return text;
}

std::vector<TraceGroup> trace_groups(const Report& report) {
  std::vector<RankSet> members;
  for (const Span& span : report.timeline.spans()) {
    if (span.moves_data()) {
      members.resize(std::max<std::size_t>(members.size(), span.group + 1));
      members[span.group].insert(span.rank);
    }
  }
  std::vector<TraceGroup> result(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto known = std::ranges::find(report.groups, report.timeline.name(static_cast<std::uint32_t>(i)),
                                         &ReportGroup::name);
    const RankSet& ranks = known == report.groups.end() ? members[i] : known->ranks;
    result[i] = {static_cast<std::int64_t>(ranks.size()), listed(ranks)};
  }
  return result;
}

std::int64_t numel_out(const std::string& op, std::int64_t numel, std::int64_t group_size) {
  const std::optional<OpKind> kind = parse_op_kind(op);
  const Sizes sizes = kind ? row_of(*kind).sizes : Sizes::equal;
  if (sizes == Sizes::gathered) {
    return numel * group_size;
  }
  if (sizes == Sizes::divided && group_size > 0) {
    return numel / group_size;
  }
  return numel;
}

}  // namespace rollcall::viz
