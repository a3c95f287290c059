#include "scenarios/recordings/recorded_statements.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/diagnose/dump_compare.h"
#include "traces/dumps/recorded_call.h"

namespace rollcall::scenario {
namespace {

using check::DumpCall;
using check::DumpOp;
using check::DumpRecord;
using check::RankOps;

// A recording may claim any size. Larger tensors than this would be refused by the scenario's reader.
constexpr std::int64_t numel_max = 100'000'000'000;

std::int64_t numel_of(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::int64_t total = 0;
  for (const std::vector<std::int64_t>& shape : shapes) {
    std::int64_t numel = 1;
    for (const std::int64_t extent : shape) {
      const std::int64_t factor = std::clamp<std::int64_t>(extent, 0, numel_max);
      numel = factor != 0 && numel > numel_max / factor ? numel_max : numel * factor;
    }
    total = std::min(numel_max, total + numel);
  }
  return total;
}

// "Float" is float32. Types that a scenario does not have become bytes.
std::string dtype_of(const DumpCall& call) {
  const std::vector<std::string>& names = call.input_dtypes.empty() ? call.output_dtypes : call.input_dtypes;
  return std::string(
      to_string(names.empty() ? Dtype::float32 : parse_scalar_type(names.front()).value_or(Dtype::uint8)));
}

// The elements that the call's argument `numel` counts; 0: the default.
std::int64_t own_numel(OpKind kind, const DumpCall& call) {
  if (row_of(kind).sizes == Sizes::exchanged) {
    return 0;  // the split is not recorded
  }
  return numel_of(gives_list(kind) ? call.outputs : call.inputs);
}

void add_tensor(const DumpCall& call, std::int64_t numel, OrderedJson& arguments) {
  if (numel > 0) {
    arguments["numel"] = numel;
  }
  if (const std::string dtype = dtype_of(call); dtype != "float32") {
    arguments["dtype"] = dtype;
  }
}

}  // namespace

// A file may have arbitrary bytes in place of text.
std::string plain_text(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

OrderedJson RecordedStatements::collective(const RankOps& ops, const DumpOp& op, bool over) const {
  const DumpRecord& record = ops.record_of(op);
  const DumpCall& call = job_.calls[record.call];
  const std::optional<OpKind> kind = traces::recorded_kind(call.op);
  const bool is_known = kind && !is_point_to_point(*kind) && row_of(*kind).given != Tensors::several;
  OrderedJson arguments = OrderedJson::object();
  if (!is_known) {
    const DumpRecord& part = ops.dump->records[ops.parts_of(op).front()];
    add_tensor(job_.calls[part.call], numel_of(job_.calls[part.call].inputs), arguments);
  } else if (has_tensor(*kind)) {
    add_tensor(call, own_numel(*kind, call), arguments);
  }
  tell_where(record, arguments);
  if (!is_known && options_.labels) {
    arguments["label"] = plain_text(call.op);
  }
  if (over && options_.async_when_over) {
    arguments["async_op"] = true;
  }
  if (is_known && has_root(*kind) && groups_[op.group] != "world") {
    arguments[std::string(root_argument(*kind))] = job_.groups[op.group].members.front();
  }
  return {{is_known ? to_string(*kind) : "all_reduce", arguments}};
}

void RecordedStatements::tell_where(const DumpRecord& record, OrderedJson& arguments) const {
  if (groups_[record.group] != "world") {
    arguments["group"] = groups_[record.group];
  }
  if (const std::string label = label_of(record); !label.empty()) {
    arguments["label"] = label;
  }
}

std::string RecordedStatements::label_of(const DumpRecord& record) const {
  const check::DumpFrame* frame = options_.labels ? check::user_frame(job_, record) : nullptr;
  if (frame == nullptr) {
    return {};
  }
  const std::size_t slash = frame->file.rfind('/');
  return plain_text(fmt::format("{} {}:{}", frame->function,
                                slash == std::string::npos ? frame->file : frame->file.substr(slash + 1),
                                frame->line));
}

OrderedJson RecordedStatements::message(const DumpRecord& record, Rank peer, bool waits) const {
  return message(record, job_.calls[record.call].op == "send", peer, waits);
}

OrderedJson RecordedStatements::message(const DumpRecord& record, bool sends, Rank peer, bool waits) const {
  OrderedJson arguments = OrderedJson::object();
  add_tensor(job_.calls[record.call], numel_of(job_.calls[record.call].inputs), arguments);
  arguments[sends ? "dst" : "src"] = peer;
  if (groups_[record.group] != "world") {
    arguments["group"] = groups_[record.group];
  }
  const char* blocking = sends ? "send" : "recv";
  const char* async = sends ? "isend" : "irecv";
  return {{waits ? blocking : async, arguments}};
}

OrderedJson RecordedStatements::batch(const std::vector<OrderedJson>& messages,
                                      const DumpRecord& record) const {
  OrderedJson statement = {{"batch_isend_irecv", messages}};
  statement["as"] = "batch";
  if (const std::string label = label_of(record); !label.empty()) {
    statement["label"] = label;
  }
  return statement;
}

}  // namespace rollcall::scenario
