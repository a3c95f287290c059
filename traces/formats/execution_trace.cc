#include "traces/formats/execution_trace.h"

#include <algorithm>

#include "traces/formats/call_recorder.h"
#include "traces/formats/host_operators.h"
#include "traces/values/json_value.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

// A request is [seq, is_p2p], or a number in older files. Tensors are also lists, of six numbers or of lists.
bool is_request(const Value& value) {
  if (value.is(Value::Kind::integer)) {
    return true;
  }
  const std::span<const Value> items = items_of(&value);
  return items.size() == 2 && items[0].is(Value::Kind::integer) && !items[1].is(Value::Kind::list);
}

class Reader {
 public:
  Reader(const Value& file, Rank rank) : file_(file), rank_(rank) {}

  RankRecording read() {
    const std::span<const Value> nodes = items_of(find(file_, "nodes"));
    Nodes chosen;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      const std::string_view name = text_or_empty(find(nodes[i], "name"));
      if (name == "## process_group:init ##") {
        read_groups(nodes[i]);
      } else if (name == "record_param_comms") {
        chosen.emplace_back(number_or(find(nodes[i], "id"), i), &nodes[i]);
      }
    }
    for (const auto& [id, node] : in_order(chosen)) {
      add(*node);
    }
    if (chosen.empty()) {
      read_host_operators(nodes);
    }
    return calls_.finish(false);
  }

 private:
  using Nodes = std::vector<std::pair<std::int64_t, const Value*>>;  // by id

  static Nodes& in_order(Nodes& nodes) {
    std::ranges::stable_sort(nodes, {}, &Nodes::value_type::first);
    return nodes;
  }

  // Reads traces of Gloo, and of torch before 2.0, which kept these fields in the node itself.
  void read_host_operators(std::span<const Value> nodes) {
    Nodes operators;
    Nodes ranges;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      const std::string_view name = text_or_empty(find(nodes[i], "name"));
      if (is_host_operator(name) || is_backend_range(name)) {
        (is_host_operator(name) ? operators : ranges)
            .emplace_back(number_or(find(nodes[i], "id"), i), &nodes[i]);
      }
    }
    for (const auto& [id, node] : in_order(operators.empty() ? ranges : operators)) {
      const Value* inputs = find(*node, "inputs");
      const bool is_nested = inputs != nullptr && inputs->is(Value::Kind::dict);
      RecordedCall call =
          call_of({text_or_empty(find(*node, "name")), is_nested ? find(*inputs, "values") : inputs,
                   is_nested ? find(*inputs, "shapes") : find(*node, "input_shapes"),
                   is_nested ? find(*inputs, "types") : find(*node, "input_types")});
      call.group = calls_.only_group();
      calls_.add(call, rank_);
    }
  }

  static std::span<const Value> inputs_of(const Value& node) {
    const Value* inputs = find(node, "inputs");
    return inputs == nullptr ? std::span<const Value>() : items_of(find(*inputs, "values"));
  }

  // The groups are JSON inside a string.
  void read_groups(const Value& node) {
    const std::span<const Value> values = inputs_of(node);
    if (values.empty() || !values[0].is(Value::Kind::text)) {
      return;
    }
    const Value table = read_json(values[0].as_text(), arena_);
    calls_.add_groups(&table);
  }

  static const Value* attribute(const Value& node, std::string_view name) {
    for (const Value& attribute : items_of(find(node, "attrs"))) {
      if (text_or_empty(find(attribute, "name")) == name) {
        return find(attribute, "value");
      }
    }
    return nullptr;
  }

  void add(const Value& node) {
    RecordedCall call;
    call.name = text_or_empty(attribute(node, "collective_name"));
    if (call.name.empty()) {
      return;
    }
    call.group = calls_.group(text_or_empty(attribute(node, "pg_name")),
                              text_or_empty(attribute(node, "pg_desc")), {});
    call.numel_in = count_or(attribute(node, "in_msg_nelems"), -1);
    call.numel_out = count_or(attribute(node, "out_msg_nelems"), -1);
    call.dtype = text_or_empty(attribute(node, "dtype"));
    read_request(node, call);
    calls_.add(call, rank_);
  }

  // The values are request, group, and the root or peer inside the group; tensors may come first.
  static void read_request(const Value& node, RecordedCall& call) {
    const std::span<const Value> values = inputs_of(node);
    const std::size_t place = !values.empty() && is_request(values[0]) ? 0 : 1;
    if (place >= values.size() || !is_request(values[place])) {
      return;
    }
    const Value& request = values[place];
    const bool is_list = request.is(Value::Kind::list);
    call.seq = count_or(is_list ? &request.node->items[0] : &request, -1);
    if (place + 2 < values.size()) {
      call.peer =
          static_cast<Rank>(std::clamp<std::int64_t>(number_or(&values[place + 2], -1), -1, ranks_max));
    }
  }

  const Value& file_;
  Rank rank_;
  Arena arena_{std::size_t{64} << 20};
  CallRecorder calls_;
};

}  // namespace

bool looks_like_execution_trace(const Value& value) {
  return find(value, "schema") != nullptr && find(value, "nodes") != nullptr;
}

RankRecording decode_execution_trace(const Value& value, Rank rank) { return Reader(value, rank).read(); }

}  // namespace rollcall::traces
