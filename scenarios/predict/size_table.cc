#include "scenarios/predict/size_table.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/program/units.h"
#include "sim/base/parse_number.h"
#include "sim/cost/symmetric_kernels.h"
#include "viz/rows/phrases.h"

namespace rollcall::predict {

namespace {

using Json = nlohmann::ordered_json;

scenario::Quantity parse_size(std::string_view text) {
  const auto bare = parse_number<std::int64_t>(text);
  scenario::Quantity parsed = bare && *bare >= 0 ? scenario::Quantity{bare, {}} : scenario::parse_bytes(text);
  if (parsed.value && *parsed.value == 0) {
    return {{}, "a size of 0 bytes takes no time; start with at least 1B"};
  }
  return parsed;
}

cost::GroupCost cost_of_all(const cost::Cluster& cluster) {
  return cost::GroupCost(
      cost::communicator_of(cluster, cluster.nodes * cluster.gpus_per_node, cluster.nodes));
}

// Rounds as simulated time does, so that no table claims more precision than a run can show.
double whole_nanoseconds(double microseconds) {
  return static_cast<double>(cost::to_duration(microseconds)) / 1000;
}

SizeRow row_of(std::int64_t bytes, const cost::Prediction& prediction, double factor) {
  SizeRow row;
  row.bytes = bytes;
  row.time = whole_nanoseconds(prediction.time);
  row.fitted = whole_nanoseconds(prediction.fitted);
  row.low = whole_nanoseconds(prediction.low);
  row.high = whole_nanoseconds(prediction.high);
  row.algbw = row.fitted > 0 ? static_cast<double>(bytes) / (1000 * row.fitted) : 0;
  row.busbw = row.algbw * factor;
  row.algorithm = prediction.algorithm;
  row.protocol = to_string(prediction.protocol);
  row.channels = prediction.channels;
  return row;
}

std::string model_name(const SizeTable& table) {
  return table.by_nccl ? "the tuner of NCCL " + cost::release_name(table.cluster.release)
                       : "rollcall's own model, because NCCL has none for this call";
}

// "8 GPUs, 1 node of 8"; for a rack, says what a node is.
std::string size_of_cluster(const SizeTable& table) {
  const cost::Cluster& cluster = table.cluster;
  const bool is_rack = cluster.gpus_per_host > 0 && cluster.gpus_per_node > cluster.gpus_per_host;
  return fmt::format("{}, {} of {}", viz::count_phrase(table.ranks, "GPU"),
                     viz::count_phrase(cluster.nodes, is_rack ? "NVLink domain" : "node"),
                     cluster.gpus_per_node);
}

// Two decimals, as nccl-tests prints bandwidths; JSON should not show more either.
double hundredths(double value) {
  return static_cast<double>(static_cast<std::int64_t>(value * 100 + 0.5)) / 100;
}

bool is_measured(const SizeTable& table) {
  return !table.rows.empty() && table.rows.front().measured.has_value();
}

double measured_busbw(const SizeTable& table, const SizeRow& row) {
  const double time = row.measured.value_or(0);
  const double algbw = time > 0 ? static_cast<double>(row.bytes) / (1000 * time) : 0;
  return algbw * cost::busbw_factor(table.op, table.ranks);
}

std::string measured_columns(const SizeTable& table, const SizeRow& row) {
  return is_measured(table)
             ? fmt::format(" {:>12.2f} {:>9.2f}", row.measured.value_or(0), measured_busbw(table, row))
             : "";
}

// Says what NCCL does with registered memory in addition to its tuner, and which of it no model
// here covers.
std::string registered_memory_text(const cost::Communicator& communicator, const cost::Request& request) {
  if (!communicator.launch.symmetric_memory) {
    return {};
  }
  std::string text;
  if (const auto symmetric = cost::choose_symmetric(communicator, request)) {
    text = fmt::format("# registered memory: NCCL runs its kernel {} instead, and takes it for {:.2f} us\n",
                       symmetric->kernel, symmetric->time);
  } else {
    text =
        "# registered memory: NCCL has no kernel for it here that is modeled; the times are those without "
        "it\n";
  }
  constexpr int with_copy_engines = 22800;  // and GIN
  if (communicator.release < with_copy_engines) {
    return text;
  }
  if (communicator.nodes > 1) {
    return text + "# not modeled: kernels that reach other nodes themselves (GIN, NCCL 2.28 and later)\n";
  }
  return request.function == cost::Function::all_gather
             ? text + "# not modeled: copies by copy engines (NCCL_CTA_POLICY_ZERO, NCCL 2.28 and later)\n"
             : text;
}

}  // namespace

ParsedSizes parse_sizes(std::string_view text) {
  const std::size_t colon = text.find(':');
  const scenario::Quantity first = parse_size(text.substr(0, colon));
  const scenario::Quantity last =
      colon == std::string_view::npos ? first : parse_size(text.substr(colon + 1));
  if (!first.value || !last.value) {
    return {{}, first.value ? last.problem : first.problem};
  }
  if (*first.value > *last.value) {
    return {{},
            fmt::format("the first size is larger than the last; write {}:{}", text.substr(colon + 1),
                        text.substr(0, colon))};
  }
  return {SizeRange{*first.value, *last.value}, {}};
}

std::optional<SizeTable> predict_sizes(const cost::Cluster& cluster, const cost::Call& call,
                                       SizeRange sizes) {
  const cost::GroupCost group = cost_of_all(cluster);
  SizeTable table;
  table.op = call.kind;
  table.cluster = cluster;
  table.ranks = group.communicator().ranks;
  table.graphs_are_known = group.communicator().graphs_are_known;
  const double factor = cost::busbw_factor(call.kind, table.ranks);
  cost::Call sized = call;
  for (std::int64_t bytes = sizes.first; bytes <= sizes.last; bytes *= 2) {
    sized.bytes = bytes;
    const auto prediction = group.predict(sized);
    if (!prediction) {
      return std::nullopt;
    }
    table.by_nccl = prediction->by_nccl;
    table.is_calibrated = prediction->is_calibrated;
    table.rows.push_back(row_of(bytes, *prediction, factor));
    if (bytes > INT64_MAX / 2) {
      break;
    }
  }
  return table;
}

void add_measured(SizeTable& table, const std::vector<double>& times) {
  for (std::size_t i = 0; i < std::min(times.size(), table.rows.size()); ++i) {
    table.rows[i].measured = times[i];
  }
}

std::string text_of(const SizeTable& table) {
  std::string text =
      fmt::format("# {} on {}: {}\n", to_string(table.op), table.cluster.name, size_of_cluster(table));
  text += fmt::format(
      "# time: {}{}; expected: {} (docs/latency.md); nine of ten lie from low to high\n", model_name(table),
      table.graphs_are_known || !table.by_nccl ? "" : ", with channels estimated from the links",
      table.is_calibrated ? "corrected by rows measured here" : "corrected by measurements");
  const bool measured = is_measured(table);
  text += fmt::format("# {:>14} {:>12} {:>12} {:>12} {:>12} {:>9} {:>9}  {:<13} {:<6} {:>8}{}\n", "size",
                      "time", "expected", "low", "high", "algbw", "busbw", "algorithm", "proto", "channels",
                      measured ? fmt::format(" {:>12} {:>9}", "measured", "busbw") : "");
  text += fmt::format("# {:>14} {:>12} {:>12} {:>12} {:>12} {:>9} {:>9}  {:<13} {:<6} {:>8}{}\n", "(B)",
                      "(us)", "(us)", "(us)", "(us)", "(GB/s)", "(GB/s)", "", "", "",
                      measured ? fmt::format(" {:>12} {:>9}", "(us)", "(GB/s)") : "");
  for (const SizeRow& row : table.rows) {
    text += fmt::format(
        "  {:>14} {:>12.2f} {:>12.2f} {:>12.2f} {:>12.2f} {:>9.2f} {:>9.2f}  {:<13} {:<6} {:>8}{}\n",
        row.bytes, row.time, row.fitted, row.low, row.high, row.algbw, row.busbw, row.algorithm, row.protocol,
        row.channels, measured_columns(table, row));
  }
  return text;
}

std::string json_of(const SizeTable& table) {
  Json rows = Json::array();
  for (const SizeRow& row : table.rows) {
    rows.push_back({{"bytes", row.bytes},
                    {"time_us", row.time},
                    {"algbw", hundredths(row.algbw)},
                    {"busbw", hundredths(row.busbw)},
                    {"algorithm", row.algorithm},
                    {"protocol", row.protocol},
                    {"channels", row.channels},
                    {"fitted_us", row.fitted},
                    {"low_us", row.low},
                    {"high_us", row.high}});
    if (row.measured) {
      rows.back()["measured_us"] = *row.measured;
      rows.back()["measured_busbw"] = hundredths(measured_busbw(table, row));
    }
  }
  const Json object = {
      {"schema_version", 1},
      {"op", to_string(table.op)},
      {"cluster", table.cluster.name},
      {"ranks", table.ranks},
      {"nodes", table.cluster.nodes},
      {"model", table.by_nccl ? "nccl-" + cost::release_name(table.cluster.release) : "rollcall"},
      {"graphs", table.graphs_are_known ? "known" : "estimated"},
      {"calibrated", table.is_calibrated},
      {"rows", std::move(rows)}};
  return object.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string explain_text(const cost::Cluster& cluster, const cost::Call& call) {
  const cost::GroupCost group = cost_of_all(cluster);
  const auto function = cost::nccl_function(call.kind);
  if (!function || group.tuner() == nullptr) {
    return fmt::format(
        "NCCL has no model for {} on {}; rollcall uses its own: start, hop, and bytes over the narrowest "
        "port.\n",
        to_string(call.kind), viz::count_phrase(group.communicator().ranks, "GPU"));
  }
  const cost::Request request{.function = *function,
                              .bytes = call.bytes,
                              .dtype = call.dtype,
                              .reduce = call.reduce,
                              .algorithm = call.algorithm,
                              .protocol = call.protocol};
  const auto candidates = group.tuner()->explain(request);
  std::string text =
      fmt::format("# {} of {} on {}: time = latency + size / bandwidth; the smallest time wins\n",
                  to_string(call.kind), viz::exact_bytes_phrase(call.bytes, ""), cluster.name);
  text += fmt::format("# {:<13} {:<6} {:>10} {:>10} {:>12}\n", "algorithm", "proto", "latency", "bandwidth",
                      "time");
  text += fmt::format("# {:<13} {:<6} {:>10} {:>10} {:>12}\n", "", "", "(us)", "(GB/s)", "(us)");
  for (const cost::Candidate& each : candidates) {
    const std::string_view mark = &each == &candidates.front() && each.excluded.empty() ? ">" : " ";
    text += fmt::format("{} {:<13} {:<6} ", mark, to_string(each.algorithm), to_string(each.protocol));
    text += each.excluded.empty()
                ? fmt::format("{:>10.2f} {:>10.2f} {:>12.2f}\n", each.latency, each.bandwidth, each.time)
                : fmt::format("{}\n", each.excluded);
  }
  return text + registered_memory_text(group.communicator(), request);
}

}  // namespace rollcall::predict
