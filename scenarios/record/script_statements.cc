#include "scenarios/record/script_statements.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/c10d/op_table.h"
#include "sim/cost/roofline.h"
#include "sim/report/stopped.h"
#include "sim/tensor/dtype.h"

namespace rollcall::scenario {
namespace {

using traces::ScriptCall;
using traces::ScriptEnd;
using traces::ScriptEvent;
using traces::ScriptRank;
using traces::ScriptSite;

using Handle = std::int64_t;

// A long line is cut after a whole word.
std::string first_line_of(const std::string& message) {
  constexpr std::size_t length_max = 300;
  std::string line = message.substr(0, message.find('\n'));
  if (line.size() > length_max) {
    line.resize(std::min(line.rfind(' ', length_max), length_max));
    line += " ...";
  }
  return line;
}

std::int64_t sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// The splits of a tensor's rows, as splits of the one dimension that tensors have in scenarios.
std::vector<std::int64_t> elements_of(std::vector<std::int64_t> splits, std::int64_t numel,
                                      const std::vector<std::vector<std::int64_t>>& shapes) {
  if (!shapes.empty() && !shapes.front().empty() && shapes.front().front() > 0) {
    const std::int64_t row = std::max<std::int64_t>(numel / shapes.front().front(), 1);
    for (std::int64_t& split : splits) {
      split = split > std::numeric_limits<std::int64_t>::max() / row ? split : split * row;
    }
  }
  return splits;
}

bool is_message(const ScriptCall& call) { return call.op == "send" || call.op == "recv"; }

bool sends_from_root(std::string_view op) { return op == "broadcast" || op == "scatter"; }

// A statement for calls that scenarios have no name for: the same bytes at the same time.
std::string statement_name(const std::string& op) {
  if (op == "all_reduce_coalesced") {
    return "all_reduce";
  }
  return op == "all_gather_coalesced" ? "all_gather" : op;
}

// Writes integers as integers, as far as JSON readers distinguish them.
OrderedJson whole_number(double value) {
  constexpr double exact_max = 9e15;
  return value < exact_max ? OrderedJson(std::llround(value)) : OrderedJson(value);
}

// Escapes text for use in a statement.
std::string without_holes(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    plain += c == '{' || c == '}' ? std::string(2, c) : std::string(1, c);
  }
  return plain;
}

// The reducer issues all buckets of a backward before it waits for the first.
bool is_of_backward(const ScriptCall& call) {
  return call.site.reason == "ddp.bucket" || call.site.reason == "ddp.unused_bitmap";
}

bool makes_group(const ScriptCall& call) { return call.op == "new_group" || call.op == "split_group"; }

std::size_t members_of(const ScriptRank& rank, std::int64_t group) {
  const auto made = std::ranges::find_if(
      rank.calls, [&](const ScriptCall& call) { return makes_group(call) && call.group == group; });
  const bool is_world = group == 0 || made == rank.calls.end();
  return is_world ? static_cast<std::size_t>(rank.world_size) : made->ranks.size();
}

// A convolution is a product of matrices, and types without tensor cores are computed as float32.
OrderedJson kernel_statement(const traces::ScriptKernel& kernel) {
  OrderedJson work = OrderedJson::object();
  if (kernel.time_ns > 0) {
    return {{"kernel", {{"time", fmt::format("{}ns", kernel.time_ns)}, {"name", to_string(kernel.phase)}}}};
  }
  if (kernel.flops > 0) {
    work["flops"] = whole_number(kernel.flops);
  }
  work["bytes"] = whole_number(kernel.bytes);
  if (kernel.flops > 0) {
    work["dtype"] = cost::parse_precision(kernel.dtype) ? kernel.dtype : "float32";
  }
  const std::string kind = kernel.kind == "convolution" ? "matmul" : kernel.kind;
  work["kind"] = cost::parse_kernel_kind(kind) ? kind : "elementwise";
  work["name"] = to_string(kernel.phase);
  return {{"kernel", work}};
}

class StatementWriter {
 public:
  StatementWriter(const ScriptRank& rank, const CallNotes& notes) : rank_(rank), notes_(notes) {
    for (std::size_t i = 0; i < rank.events.size(); ++i) {
      const ScriptEvent& event = rank.events[i];
      if (event.kind == ScriptEvent::Kind::wait || event.kind == ScriptEvent::Kind::future ||
          keeps_message(i)) {
        named_.insert(event.handle);
      }
      if (event.kind == ScriptEvent::Kind::touch) {
        touched_.emplace(event.handle, event.touch);
      }
    }
  }

  std::vector<OrderedJson> write() {
    for (std::size_t i = 0; i < rank_.events.size(); ++i) {
      const ScriptEvent& event = rank_.events[i];
      if (is_left_out(rank_, event)) {
        add_refusal(i);
        continue;
      }
      switch (event.kind) {
        case ScriptEvent::Kind::call:
          finish_backward(event.calls.front());
          if (waits_at_once(i)) {
            add_call(event, std::nullopt);
            i += event.handle < 0 ? 0 : 1;  // the wait
          } else {
            latest_ = event.calls.front();
            add_call(event, event.handle);
          }
          break;
        case ScriptEvent::Kind::batch:
          wait_for_buckets();
          add_batch(event);
          break;
        case ScriptEvent::Kind::wait:
          wait_for_buckets();
          add_wait(event.handle);
          break;
        case ScriptEvent::Kind::drop:
          add_drop(event.handle);
          break;
        case ScriptEvent::Kind::future:
          buckets_.push_back({event.handle, latest_});  // the reducer asks for it immediately
          break;
        case ScriptEvent::Kind::touch:
          add_touch(event);
          break;
        case ScriptEvent::Kind::kernel:
          add_kernel(i);
          break;
        case ScriptEvent::Kind::stream:
          stream_ = event.stream;
          break;
        case ScriptEvent::Kind::record_event:
        case ScriptEvent::Kind::wait_event:
        case ScriptEvent::Kind::wait_stream:
          add_stream_order(event);
          break;
        case ScriptEvent::Kind::returned:
          break;
      }
      if (was_caught(i)) {
        catch_last();
      }
    }
    wait_for_buckets();
    add_end();
    return std::move(statements_);
  }

 private:
  struct Bucket {
    Handle handle = -1;
    std::uint32_t call = 0;
  };

  // True for messages on gloo whose handle the script keeps, even if it never waits: without a name, a statement lets
  // go of it.
  bool keeps_message(std::size_t i) const {
    const ScriptEvent& event = rank_.events[i];
    const bool is_of_messages =
        event.kind == ScriptEvent::Kind::batch ||
        (event.kind == ScriptEvent::Kind::call && is_message(rank_.calls[event.calls.front()]));
    if (!is_of_messages || event.handle < 0 || rank_.backend != "gloo") {
      return false;
    }
    const bool is_dropped_at_once = i + 1 < rank_.events.size() &&
                                    rank_.events[i + 1].kind == ScriptEvent::Kind::drop &&
                                    rank_.events[i + 1].handle == event.handle;
    return !is_dropped_at_once;
  }

  // True for a call that is directly followed by its wait: it blocks. A bucket of a backward does so only if it is the
  // only one.
  bool waits_at_once(std::size_t i) const {
    const ScriptEvent& event = rank_.events[i];
    if (event.handle < 0 || i + 1 == rank_.events.size()) {
      return event.handle < 0;
    }
    const ScriptEvent& next = rank_.events[i + 1];
    if (next.handle != event.handle || next.kind == ScriptEvent::Kind::call ||
        next.kind == ScriptEvent::Kind::touch || next.kind == ScriptEvent::Kind::drop) {
      return false;
    }
    if (next.kind != ScriptEvent::Kind::future) {
      return true;
    }
    return buckets_.empty() && !backward_goes_on(i + 2, event.calls.front());
  }

  // True if its backward computes or calls from event `i` on, after this bucket. Its copies at the end come after the
  // waits: the reduced buckets go back to the gradients.
  bool backward_goes_on(std::size_t i, std::uint32_t bucket) const {
    for (; i < rank_.events.size(); ++i) {
      const ScriptEvent& event = rank_.events[i];
      if (!traces::is_of_gpu(event)) {
        return event.kind == ScriptEvent::Kind::call && is_another_bucket(bucket, event.calls.front());
      }
      if (event.kind != ScriptEvent::Kind::kernel) {
        continue;
      }
      const traces::ScriptKernel& kernel = rank_.kernels[event.kernel];
      if (kernel.phase != traces::ScriptKernel::Phase::backward) {
        return false;
      }
      if (kernel.flops > 0) {
        return true;
      }
    }
    return false;
  }

  // True if it raised, and the script continued.
  bool was_caught(std::size_t i) const {
    const ScriptEvent& event = rank_.events[i];
    const bool is_last = std::all_of(rank_.events.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                     rank_.events.end(), traces::is_of_gpu);
    const bool ends_the_rank = rank_.end.how == ScriptEnd::How::raised || event.was_last_resort;
    return event.has_raised && event.kind != ScriptEvent::Kind::future &&
           !(is_last && rank_.end.how != ScriptEnd::How::finished && ends_the_rank);
  }

  void catch_last() {
    OrderedJson raising = std::move(statements_.back());
    statements_.back() = {{"try", {{"do", {std::move(raising)}}, {"except", OrderedJson::array()}}}};
  }

  // No other rank has seen the call: only the exception is left of it, if the script caught it. An exception that ended
  // the script is its end.
  void add_refusal(std::size_t i) {
    const ScriptEvent& event = rank_.events[i];
    if (was_caught(i)) {
      statements_.push_back(raise_statement(event.type, event.message, site_of_call(i)));
      catch_last();
    }
  }

  // The site of the call that this event is about.
  const ScriptSite& site_of_call(std::size_t i) const {
    const Handle handle = rank_.events[i].handle;
    while (i > 0 && (rank_.events[i].calls.empty() || rank_.events[i].handle != handle)) {
      --i;
    }
    return rank_.events[i].calls.empty() ? rank_.end.site : rank_.calls[rank_.events[i].calls.front()].site;
  }

  // Each bucket is issued once per backward: if it is issued again, the next backward has begun.
  bool is_another_bucket(std::uint32_t bucket, std::uint32_t next) const {
    return next != bucket && is_of_backward(rank_.calls[next]);
  }

  void finish_backward(std::uint32_t next) {
    const auto goes_on = [&](const Bucket& bucket) { return is_another_bucket(bucket.call, next); };
    if (!std::ranges::all_of(buckets_, goes_on)) {
      wait_for_buckets();
    }
  }

  void wait_for_buckets() {
    for (const Bucket& bucket : std::exchange(buckets_, {})) {
      add_wait(bucket.handle);
    }
  }

  // ---- Statements ----

  void add_kernel(std::size_t i) {
    const traces::ScriptKernel& kernel = rank_.kernels[rank_.events[i].kernel];
    if (!buckets_.empty() && !backward_goes_on(i, buckets_.back().call)) {
      wait_for_buckets();
    }
    OrderedJson statement = kernel_statement(kernel);
    tell_stream(stream_, statement["kernel"]);
    statements_.push_back(std::move(statement));
  }

  static std::string stream_name(std::int64_t stream) {
    return stream == 0 ? "default" : fmt::format("s{}", stream);
  }

  static void tell_stream(std::int64_t stream, OrderedJson& arguments) {
    if (stream != 0) {
      arguments["stream"] = stream_name(stream);
    }
  }

  void add_stream_order(const ScriptEvent& event) {
    OrderedJson statement;
    if (event.kind == ScriptEvent::Kind::wait_stream) {
      statement = {{"wait_stream", stream_name(event.awaited)}};
    } else {
      const bool records = event.kind == ScriptEvent::Kind::record_event;
      statement = {{records ? "record_event" : "wait_event", fmt::format("e{}", event.awaited)}};
    }
    tell_stream(event.stream, statement);
    statements_.push_back(std::move(statement));
  }

  void add_call(const ScriptEvent& event, std::optional<Handle> handle) {
    const std::uint32_t number = event.calls.front();
    const ScriptCall& call = rank_.calls[number];
    OrderedJson arguments = OrderedJson::object();
    if (call.op == "new_group") {
      arguments = {{"ranks", call.ranks}, {"as", group_name(call.group)}};
      if (call.is_local) {
        arguments["use_local_synchronization"] = true;
      }
      if (call.is_on_gloo) {
        arguments["backend"] = "gloo";
      }
    } else if (call.op == "split_group") {
      arguments = {{"split_ranks", call.parts}, {"as", group_name(call.group)}};
      if (call.parent != 0) {
        arguments["group"] = group_name(call.parent);
      }
    } else if (call.op == "destroy_process_group") {
      if (call.group != 0) {
        arguments["group"] = group_name(call.group);
      }
    } else {
      fill(number, call, arguments);
    }
    if (call.timeout_s > 0 && !has_tensors(call)) {
      arguments["timeout"] = duration_text(call.timeout_s);
    }
    tell_where(number, arguments);
    if (handle) {
      name_touched(*handle, call, arguments);
    }
    const bool async = handle.has_value();
    if (async && !is_message(call)) {
      arguments["async_op"] = true;
    }
    if (async && named_.contains(*handle)) {
      arguments["as"] = name_handle(*handle);
    }
    const std::string message = call.op == "send" ? "isend" : "irecv";
    const std::string name = is_message(call) && async ? message : statement_name(call.op);
    statements_.push_back({{name, arguments}});
  }

  static bool has_tensors(const ScriptCall& call) {
    return call.op != "barrier" && call.op != "monitored_barrier" && !makes_group(call) &&
           call.op != "destroy_process_group";
  }

  void fill(std::uint32_t number, const ScriptCall& call, OrderedJson& arguments) const {
    if (has_tensors(call)) {
      const auto numel = notes_.numel.find(number);
      arguments["numel"] = numel != notes_.numel.end() ? numel->second : numel_of(call);
      const std::optional<Dtype> dtype = parse_dtype(call.dtype);
      if (!dtype || *dtype != Dtype::float32) {
        arguments["dtype"] = dtype ? call.dtype : "uint8";
      }
    }
    if (has_tensors(call) && rank_.backend == "nccl") {
      tell_stream(stream_, arguments);
    }
    if (!call.device.empty() && !traces::is_own_device(call.device, rank_.backend, local_rank(rank_))) {
      arguments["device"] = call.device;
    }
    if (!call.reduce_op.empty() && call.reduce_op != "SUM") {
      arguments["reduce_op"] = call.reduce_op;
      if (call.factor != 1) {
        arguments["factor"] = call.factor;
      }
    }
    if (call.root && *call.root != 0) {
      arguments[sends_from_root(call.op) ? "src" : "dst"] = *call.root;
    }
    if (is_message(call)) {
      add_peer(number, call, arguments);
    }
    if (!call.output_splits.empty() || !call.input_splits.empty()) {
      arguments["output_split_sizes"] = elements_of(call.output_splits, sum(call.filled), call.filled_shapes);
      arguments["input_split_sizes"] = elements_of(call.input_splits, sum(call.given), call.given_shapes);
    }
    if (call.wait_all_ranks) {
      arguments["wait_all_ranks"] = true;
    }
    if (call.group != 0) {
      arguments["group"] = group_name(call.group);
    }
  }

  void add_peer(std::uint32_t number, const ScriptCall& call, OrderedJson& arguments) const {
    const char* key = call.op == "send" ? "dst" : "src";
    const auto expression = notes_.peers.find(number);
    if (expression != notes_.peers.end()) {
      arguments[key] = expression->second;
    } else if (call.peer) {
      arguments[key] = *call.peer;
    }
    if (call.tag != 0) {
      arguments["tag"] = call.tag;
    }
  }

  void tell_where(std::uint32_t number, OrderedJson& arguments) const {
    if (const auto label = notes_.labels.find(number); label != notes_.labels.end()) {
      arguments["label"] = label->second;
    }
    tell_site(rank_.calls[number].site, arguments);
  }

  void tell_site(const ScriptSite& site, OrderedJson& arguments) const {
    if (const std::string place = place_text(rank_, site); !place.empty()) {
      arguments["site"] = place;
    }
  }

  // Names the tensor of a call that the script uses early, so that `read` and `write` can refer to it.
  void name_touched(Handle handle, const ScriptCall& call, OrderedJson& arguments) {
    const auto touch = touched_.find(handle);
    if (touch == touched_.end() || call.op == "all_to_all" || call.op == "reduce_scatter") {
      return;  // their lists have no names
    }
    const bool is_other = rank_.touches[touch->second].is_of_filled && !call.filled.empty() &&
                          call.op != "scatter" && call.op != "recv";
    buffers_.emplace(handle, fmt::format("buffer{}", buffers_.size()));
    arguments[is_other ? "output" : "tensor"] = buffers_.at(handle);
  }

  // A batch has one handle. If it has several messages of the kind, the record does not say which one it is.
  bool is_only_one_touched(const ScriptEvent& batch, std::uint32_t number) const {
    const auto touch = touched_.find(batch.handle);
    if (touch == touched_.end()) {
      return false;
    }
    const std::string op = rank_.touches[touch->second].is_of_filled ? "recv" : "send";
    const auto fits = [&](std::uint32_t other) { return rank_.calls[other].op == op; };
    return fits(number) && std::ranges::count_if(batch.calls, fits) == 1;
  }

  void add_touch(const ScriptEvent& event) {
    const auto buffer = buffers_.find(event.handle);
    if (buffer == buffers_.end()) {
      return;
    }
    const traces::ScriptTouch& touch = rank_.touches[event.touch];
    OrderedJson statement = {{touch.writes ? "write" : "read", buffer->second}};
    tell_site(touch.site, statement);
    statements_.push_back(std::move(statement));
    buffers_.erase(buffer);
  }

  void add_batch(const ScriptEvent& event) {
    OrderedJson messages = OrderedJson::array();
    for (const std::uint32_t number : event.calls) {
      OrderedJson arguments = OrderedJson::object();
      fill(number, rank_.calls[number], arguments);
      if (is_only_one_touched(event, number)) {
        name_touched(event.handle, rank_.calls[number], arguments);
      }
      messages.push_back({{rank_.calls[number].op == "send" ? "isend" : "irecv", arguments}});
    }
    OrderedJson statement = {{"batch_isend_irecv", messages}};
    if (named_.contains(event.handle)) {
      statement["as"] = name_handle(event.handle);
    }
    tell_where(event.calls.front(), statement);
    statements_.push_back(statement);
  }

  // Waiting for a call twice is the same as waiting once. A batch has one handle for several works.
  void add_wait(Handle handle) {
    if (const auto name = names_.extract(handle)) {
      OrderedJson statement = {{"wait", handle_name(name.mapped())}};
      tell_stream(stream_, statement);
      statements_.push_back(std::move(statement));
    }
  }

  void add_drop(Handle handle) {
    if (const auto name = names_.extract(handle)) {
      statements_.push_back({{"drop", handle_name(name.mapped())}});
    }
  }

  void add_end() {
    const ScriptEnd& end = rank_.end;
    std::string type = end.type;
    std::string message = end.message;
    switch (end.how) {
      case ScriptEnd::How::unknown:
      case ScriptEnd::How::finished:
      case ScriptEnd::How::terminated:
        return;
      case ScriptEnd::How::raised:
        break;
      case ScriptEnd::How::stopped:
        type = stopped_type;
        message = "made no call for too long";
        break;
      case ScriptEnd::How::exited:
        type = "SystemExit";
        message = fmt::format("the process exited with code {} in the middle of the script", end.code);
        break;
      case ScriptEnd::How::killed:
        type = killed_type;
        message = end.code > 0 ? fmt::format("the process was killed by signal {}", end.code)
                               : "the process was killed";
        break;
    }
    statements_.push_back(raise_statement(type, message, end_site()));
  }

  OrderedJson raise_statement(const std::string& type, const std::string& message,
                              const ScriptSite& site) const {
    OrderedJson arguments = {{"type", type}, {"message", without_holes(first_line_of(message))}};
    tell_site(site, arguments);
    return {{"raise", arguments}};
  }

  // The place where it raised; for a process that was killed, its last call.
  const ScriptSite& end_site() const {
    const auto calls = [](const ScriptEvent& event) { return !event.calls.empty(); };
    const auto last = std::find_if(rank_.events.rbegin(), rank_.events.rend(), calls);
    const bool is_known = rank_.end.site.line > 0 || last == rank_.events.rend();
    return is_known ? rank_.end.site : rank_.calls[last->calls.back()].site;
  }

  // ---- Names ----

  static std::string group_name(std::int64_t number) { return fmt::format("g{}", number); }
  static std::string handle_name(std::size_t place) { return fmt::format("work{}", place); }

  std::string name_handle(Handle handle) {
    std::size_t place = 0;
    const auto is_taken = [&](const auto& name) { return name.second == place; };
    while (std::ranges::any_of(names_, is_taken)) {
      ++place;
    }
    names_.emplace(handle, place);
    return handle_name(place);
  }

  const ScriptRank& rank_;
  const CallNotes& notes_;
  std::set<Handle> named_;                   // that get a name
  std::map<Handle, std::size_t> names_;      // of calls in progress
  std::map<Handle, std::uint32_t> touched_;  // calls whose tensors are used early
  std::map<Handle, std::string> buffers_;    // the names of those in progress
  std::uint32_t latest_ = 0;                 // the latest call that returned immediately
  std::vector<Bucket> buckets_;              // the reducer waits for them before backward() ends
  std::int64_t stream_ = 0;                  // the GPU's work is queued on it
  std::vector<OrderedJson> statements_;
};

}  // namespace

std::string duration_text(double seconds) { return fmt::format("{}ms", std::llround(seconds * 1000)); }

std::int64_t numel_of(const ScriptCall& call) {
  if (call.op == "scatter" || call.op == "reduce_scatter") {
    return sum(call.filled);
  }
  if (call.op == "all_to_all") {
    return call.given.empty() ? 0 : call.given.front();
  }
  return sum(call.given);
}

bool has_odd_list(const ScriptRank& rank, const ScriptCall& call) {
  const std::optional<OpKind> kind = parse_op_kind(call.op);
  const auto is_odd = [&](Tensors rule, const std::vector<std::int64_t>& list) {
    const bool counts =
        rule == Tensors::per_member || (rule == Tensors::per_member_on_root && call.root == rank.rank);
    return counts && list.size() != members_of(rank, call.group);
  };
  return kind && (is_odd(row_of(*kind).given, call.given) || is_odd(row_of(*kind).filled, call.filled));
}

bool is_left_out(const ScriptRank& rank, const ScriptEvent& event) {
  if (!event.was_refused) {
    return false;
  }
  const auto made = std::ranges::find_if(rank.events, [&](const ScriptEvent& other) {
    return !other.calls.empty() &&
           (&other == &event || (event.calls.empty() && other.handle == event.handle));
  });
  if (made == rank.events.end()) {
    return false;
  }
  const ScriptCall& call = rank.calls[made->calls.front()];
  // In scenarios tensors have one dimension: there, nothing would be wrong with this one's shape.
  return has_odd_list(rank, call) || !call.given_shapes.empty() || !call.filled_shapes.empty();
}

std::vector<OrderedJson> script_statements(const ScriptRank& rank, const CallNotes& notes) {
  return StatementWriter(rank, notes).write();
}

}  // namespace rollcall::scenario
