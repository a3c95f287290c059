#pragma once

// The time of a collective on a cluster, size by size: the table that nccl-tests would print there.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/group_cost.h"

namespace rollcall::predict {

struct SizeRange {
  std::int64_t first = 8;
  std::int64_t last = std::int64_t{1} << 30;
};

// Parses "1KiB:8GiB", or one size. A number without a unit counts bytes, as in nccl-tests.
struct ParsedSizes {
  std::optional<SizeRange> range;
  std::string problem;
};
ParsedSizes parse_sizes(std::string_view text);

struct SizeRow {
  std::int64_t bytes = 0;
  double time = 0;    // microseconds, to the nanosecond, from the model
  double fitted = 0;  // the expected time
  double low = 0;     // nine of ten measurements lie between these two
  double high = 0;
  double algbw = 0;  // GB/s, of `fitted`
  double busbw = 0;
  std::string_view algorithm;
  std::string_view protocol;
  int channels = 0;
  std::optional<double> measured{};  // microseconds, on this machine's GPUs
};

struct SizeTable {
  OpKind op = OpKind::all_reduce;
  cost::Cluster cluster;
  int ranks = 0;
  bool by_nccl = true;           // false: the model is ours, NCCL has none
  bool graphs_are_known = true;  // false: channels are estimated from the links
  bool is_calibrated = false;    // rows of this operation on this cluster were measured
  std::vector<SizeRow> rows;
};

// All GPUs of the cluster take part. Sizes double from the first to the last. `call.bytes` is ignored. Empty
// if the call's algorithm and protocol exclude everything.
std::optional<SizeTable> predict_sizes(const cost::Cluster& cluster, const cost::Call& call, SizeRange sizes);

// `times`: microseconds per call, by row.
void add_measured(SizeTable& table, const std::vector<double>& times);

std::string text_of(const SizeTable& table);
std::string json_of(const SizeTable& table);
// A plot of bus bandwidth over size, for reports and READMEs. Complete and self-contained.
std::string svg_of(const SizeTable& table);

// Explains the choice for one size: every algorithm and protocol with its time, or the reason it is excluded.
std::string explain_text(const cost::Cluster& cluster, const cost::Call& call);

}  // namespace rollcall::predict
