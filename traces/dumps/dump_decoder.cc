#include "traces/dumps/dump_decoder.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "traces/dumps/recorded_call.h"
#include "traces/values/key_bytes.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

using check::DumpCall;
using check::DumpFrame;
using check::DumpGroup;
using check::DumpRecord;
using check::DumpStack;
using check::DumpStatus;
using check::RankDump;

// The values of a Flight Recorder entry (torch/csrc/distributed/c10d/FlightRecorder.hpp), still in the tree. Null: it
// has none.
struct Entry {
  const Value* collective_seq_id = nullptr;
  const Value* duration_ms = nullptr;
  const Value* frames = nullptr;
  const Value* input_dtypes = nullptr;
  const Value* input_sizes = nullptr;
  const Value* is_p2p = nullptr;
  const Value* op_id = nullptr;
  const Value* output_dtypes = nullptr;
  const Value* output_sizes = nullptr;
  const Value* p2p_seq_id = nullptr;
  const Value* pg_id = nullptr;
  const Value* process_group = nullptr;
  const Value* profiling_name = nullptr;
  const Value* record_id = nullptr;
  const Value* retired = nullptr;
  const Value* seq_id = nullptr;  // 1.x and 2.0 had one counter
  const Value* state = nullptr;
  const Value* time_created_ns = nullptr;
  const Value* time_discovered_completed_ns = nullptr;
  const Value* time_discovered_started_ns = nullptr;
  const Value* timeout_ms = nullptr;
};

using Field = const Value* Entry::*;

struct NamedField {
  std::string_view key;
  Field field;
};

constexpr std::array<NamedField, 21> named_fields = {{
    {"collective_seq_id", &Entry::collective_seq_id},
    {"duration_ms", &Entry::duration_ms},
    {"frames", &Entry::frames},
    {"input_dtypes", &Entry::input_dtypes},
    {"input_sizes", &Entry::input_sizes},
    {"is_p2p", &Entry::is_p2p},
    {"op_id", &Entry::op_id},
    {"output_dtypes", &Entry::output_dtypes},
    {"output_sizes", &Entry::output_sizes},
    {"p2p_seq_id", &Entry::p2p_seq_id},
    {"pg_id", &Entry::pg_id},
    {"process_group", &Entry::process_group},
    {"profiling_name", &Entry::profiling_name},
    {"record_id", &Entry::record_id},
    {"retired", &Entry::retired},
    {"seq_id", &Entry::seq_id},
    {"state", &Entry::state},
    {"time_created_ns", &Entry::time_created_ns},
    {"time_discovered_completed_ns", &Entry::time_discovered_completed_ns},
    {"time_discovered_started_ns", &Entry::time_discovered_started_ns},
    {"timeout_ms", &Entry::timeout_ms},
}};

// Null for keys that are not read.
Field field_named(std::string_view key) {
  const auto* const named = std::ranges::find(named_fields, key, &NamedField::key);
  return named == named_fields.end() ? nullptr : named->field;
}

// Frames further out than this belong to launchers and say nothing about the call.
constexpr std::size_t frames_max = 32;

DumpRecord::State state_named(std::string_view name) {
  return name == "completed" ? DumpRecord::State::completed
         : name == "started" ? DumpRecord::State::started
                             : DumpRecord::State::scheduled;
}

class Decoder {
 public:
  Decoder(const Value& file, std::size_t bytes)
      // A file without shared parts needs less than one step per byte; shared parts may be
      // visited again, but only a bounded number of times.
      : file_(file), steps_left_(16 * bytes + 4096) {}

  RankRecording decode() {
    result_.dump.version = text_or_empty(find(file_, "version"));
    read_groups();
    read_entries();
    read_status();
    result_.dump.groups.resize(result_.tables.groups.things().size());
    std::iota(result_.dump.groups.begin(), result_.dump.groups.end(), 0U);
    return std::move(result_);
  }

 private:
  void spend(std::size_t steps) {
    if (steps > steps_left_) {
      throw BadFile(0, "the file refers to its own parts too often for a dump");
    }
    steps_left_ -= steps;
  }

  void read_groups() {
    const Value* config = find(file_, "pg_config");
    if (config == nullptr || !config->is(Value::Kind::dict)) {
      return;
    }
    spend(config->node->size);
    for (std::uint32_t i = 0; i + 1 < config->node->size; i += 2) {
      const Value& group = config->node->items[i + 1];
      std::string_view name = text_or_empty(find(group, "name"));
      if (name.empty()) {
        name = text_or_empty(&config->node->items[i]);
      }
      if (name.empty()) {
        const std::vector<Rank> members = members_of_group(group);
        result_.ranks_at_least = members.empty() ? 0 : members.back() + 1;
        continue;
      }
      add_group(name, text_or_empty(find(group, "desc")), members_of_group(group));
    }
  }

  // TorchComms writes "[0,1]"; c10d's recorder puts a blank after each comma.
  static bool has_no_blanks(std::string_view ranks) {
    const std::size_t comma = ranks.find(',');
    return comma != std::string_view::npos && ranks.find(", ") == std::string_view::npos;
  }

  std::vector<Rank> members_of_group(const Value& group) {
    const Value* ranks = find(group, "ranks");
    is_of_torchcomms_ = is_of_torchcomms_ || has_no_blanks(text_or_empty(ranks));
    spend(text_or_empty(ranks).size() + items_of(ranks).size());
    return members_of(ranks);
  }

  std::uint32_t add_group(std::string_view name, std::string_view description, std::vector<Rank> members) {
    const std::uint32_t number =
        result_.tables.number_of(DumpGroup{std::string(name), std::string(description), std::move(members)});
    group_of_name_.number_of(name, [&] { return number; });
    return number;
  }

  // A group that is named by entries but missing from pg_config has no known members.
  std::uint32_t group_named(std::string_view name, std::string_view description) {
    const std::uint32_t known = group_of_name_.number_of(name, [] { return no_group; });
    std::uint32_t& number = group_of_name_.things()[known];
    if (number == no_group) {
      number = add_group(name, description, {});
    }
    return number;
  }

  void read_entries() {
    const std::span<const Value> entries = items_of(find(file_, "entries"));
    result_.dump.records.reserve(entries.size());
    result_.dump.from_start = !entries.empty();  // an empty list may only mean that no call is unfinished
    result_.dump.without_gaps = true;
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      if (entries[i].is(Value::Kind::dict)) {
        read_entry(fields_of(entries[i]), i);
      } else {
        throw BadFile(0, fmt::format("entry {} is not a dict", i));
      }
    }
  }

  // The entries of a file have their keys in the same order, and in a pickle they share the same strings.
  Entry fields_of(const Value& dict) {
    Entry entry;
    const Node& node = *dict.node;
    spend(node.size);
    for (std::uint32_t i = 0; i + 1 < node.size; i += 2) {
      const Value& key = node.items[i];
      if (!key.is(Value::Kind::text)) {
        continue;
      }
      const std::size_t place = i / 2;
      if (place >= known_keys_.size()) {
        known_keys_.resize(place + 1);
      }
      KnownKey& known = known_keys_[place];
      if (known.text != key.text || known.size != key.size) {
        known = {key.text, key.size, field_named(key.as_text())};
      }
      if (known.field != nullptr) {
        entry.*known.field = &node.items[i + 1];
      }
    }
    return entry;
  }

  void read_entry(const Entry& entry, std::uint32_t index) {
    DumpRecord record;
    record.created_ns = count_or(entry.time_created_ns, 0);
    record.started_ns = count_or(entry.time_discovered_started_ns, 0);
    record.completed_ns = count_or(entry.time_discovered_completed_ns, 0);
    record.collective_seq = count_or(entry.collective_seq_id, count_or(entry.seq_id, 0));
    record.p2p_seq = count_or(entry.p2p_seq_id, 0);
    record.call = call_of(entry);
    record.stack = stack_of(entry.frames);
    record.group = group_of(entry);
    record.timeout_ms =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(count_or(entry.timeout_ms, 0), 0, 0xffffffff));
    record.duration_ms = duration_or_none(real_or(entry.duration_ms, -1));
    record.state = state_named(text_or_empty(entry.state));
    record.retired = number_or(entry.retired, 0) != 0;
    const DumpCall& call = result_.tables.calls.things()[record.call];
    if (call.is_of_gloo() || is_of_torchcomms_) {
      end_unless_dated(record);
    }
    if (call.is_of_gloo()) {
      result_.dump.skips_messages = true;
      count_operations(entry, record);
    }
    // TorchComms records messages without their source and destination, so they cannot be paired.
    if (is_of_torchcomms_ && !call.is_message() && (call.op == "send" || call.op == "recv")) {
      ++passed_over_[record.group];
      take_id(entry, index);
      return;
    }
    if (is_of_torchcomms_) {
      record.unrecorded += std::exchange(passed_over_[record.group], 0);
    }
    record.is_p2p = number_or(entry.is_p2p, call.is_message() ? 1 : 0) != 0 || closes_messages(call, record);
    take_id(entry, index);
    result_.dump.records.push_back(record);
  }

  // Ids count every record, so records that fell off the ring or were left out leave a gap.
  void take_id(const Entry& entry, std::uint32_t index) {
    const std::int64_t id = count_or(entry.record_id, -1);
    first_id_ = index == 0 ? id : first_id_;
    result_.dump.from_start &= id == index;
    result_.dump.without_gaps &= id >= 0 && id - first_id_ == index;
    if (index > 0 && id != last_record_id_ + 1 && !result_.dump.records.empty()) {
      result_.dump.records.back().gap_after = true;
    }
    last_record_id_ = id;
  }

  // Recorders without device events (Gloo's and TorchComms') leave the state "scheduled" forever; a call that has
  // ended is marked "retired".
  static void end_unless_dated(DumpRecord& record) {
    const bool says_when = record.started_ns != 0 || record.completed_ns != 0;
    if (record.state == DumpRecord::State::scheduled && record.retired && !says_when) {
      record.state = DumpRecord::State::ended;
    }
  }

  // Gloo's op_id also counts operations that its recorder does not keep.
  void count_operations(const Entry& entry, DumpRecord& record) {
    std::int64_t& last = operations_.try_emplace(record.group, no_operation).first->second;
    const std::int64_t number = count_or(entry.op_id, no_operation);
    if (last != no_operation && number > last) {
      record.unrecorded = static_cast<std::uint32_t>(std::min<std::int64_t>(number - last - 1, 0xffffffff));
    }
    last = number;
  }

  bool counts_operations(std::uint32_t group) const {
    const auto last = operations_.find(group);
    return last != operations_.end() && last->second != no_operation;
  }

  // Dumps do not say which markers close a batch of messages (before torch 2.4), or say of all that they do not (2.11):
  // those that follow a message of their group and number do.
  bool closes_messages(const DumpCall& call, const DumpRecord& marker) const {
    const std::vector<DumpRecord>& before = result_.dump.records;
    return call.is_marker() && !before.empty() && before.back().group == marker.group &&
           before.back().is_p2p && before.back().collective_seq == marker.collective_seq &&
           before.back().p2p_seq == marker.p2p_seq;
  }

  void put_size(std::span<const Value> list) {
    spend(list.size());
    key_.put(static_cast<std::int64_t>(list.size()));
  }

  void put_shapes(const Value* value) {
    put_size(items_of(value));
    for (const Value& shape : items_of(value)) {
      put_size(items_of(&shape));
      for (const Value& extent : items_of(&shape)) {
        key_.put(number_or(&extent, 0));
      }
    }
  }

  void put_texts(const Value* value) {
    put_size(items_of(value));
    for (const Value& text : items_of(value)) {
      spend(text_or_empty(&text).size());
      key_.put(text_or_empty(&text));
    }
  }

  std::uint32_t call_of(const Entry& entry) {
    const std::string_view name = text_or_empty(entry.profiling_name);
    spend(name.size());
    key_.clear();
    key_.put(name);
    put_shapes(entry.input_sizes);
    put_shapes(entry.output_sizes);
    put_texts(entry.input_dtypes);
    put_texts(entry.output_dtypes);
    return result_.tables.calls.number_of(key_.bytes(), [&] {
      DumpCall call = parse_profiling_name(name);
      call.inputs = shapes_of(entry.input_sizes);
      call.outputs = shapes_of(entry.output_sizes);
      call.input_dtypes = texts_of(entry.input_dtypes);
      call.output_dtypes = texts_of(entry.output_dtypes);
      return as_called(std::move(call));
    });
  }

  std::uint32_t stack_of(const Value* value) {
    std::span<const Value> frames = items_of(value);
    frames = frames.first(std::min(frames.size(), frames_max));
    if (frames.empty()) {
      return 0;
    }
    key_.clear();
    for (const Value& frame : frames) {
      spend(frame.is(Value::Kind::dict) ? frame.node->size + 1 : 1);
      const std::string_view function = text_or_empty(find(frame, "name"));
      const std::string_view file = text_or_empty(find(frame, "filename"));
      spend((function.size() + file.size()) / 8);
      key_.put(function);
      key_.put(file);
      key_.put(number_or(find(frame, "line"), 0));
    }
    return result_.tables.stacks.number_of(key_.bytes(), [&] {
      DumpStack stack;
      for (const Value& frame : frames) {
        stack.push_back({std::string(text_or_empty(find(frame, "name"))),
                         std::string(text_or_empty(find(frame, "filename"))),
                         number_or(find(frame, "line"), 0)});
      }
      return stack;
    });
  }

  // For example ("0", "default_pg"); very old dumps have only pg_id.
  std::uint32_t group_of(const Entry& entry) {
    const std::span<const Value> names = items_of(entry.process_group);
    const std::int64_t id = number_or(entry.pg_id, 0);
    std::string_view name = !names.empty() ? text_or_empty(&names[0]) : std::string_view();
    const std::string number = name.empty() ? fmt::format("{}", id) : std::string();
    name = name.empty() ? number : name;
    spend(name.size());
    if (id == last_id_ && name == last_name_) {
      return last_group_;
    }
    last_id_ = id;
    last_name_ = name;
    last_group_ = group_named(name, names.size() > 1 ? text_or_empty(&names[1]) : std::string_view());
    spend(group_of_id_.size());
    const bool is_new = std::none_of(group_of_id_.begin(), group_of_id_.end(),
                                     [&](const auto& known) { return known.first == id; });
    if (is_new) {
      group_of_id_.emplace_back(id, last_group_);
    }
    return last_group_;
  }

  // Counters are keyed by a number that only this process knows. A record that carries both the number and the group is
  // the only link between them; counters without one cannot be assigned and are left out.
  void read_status() {
    const Value* status = find(file_, "pg_status");
    if (status == nullptr || !status->is(Value::Kind::dict)) {
      return;
    }
    spend(status->node->size);
    for (std::uint32_t i = 0; i + 1 < status->node->size; i += 2) {
      const std::int64_t id = number_or(&status->node->items[i], -1);
      const Value& counters = status->node->items[i + 1];
      spend(group_of_id_.size());
      for (const auto& [known, group] : group_of_id_) {
        if (known == id && !counts_operations(group)) {  // Gloo's counters include messages
          result_.dump.status.push_back(
              DumpStatus{group, count_or(find(counters, "last_enqueued_collective"), -1),
                         count_or(find(counters, "last_started_collective"), -1),
                         count_or(find(counters, "last_completed_collective"), -1)});
        }
      }
    }
  }

  static constexpr std::uint32_t no_group = 0xffffffff;
  static constexpr std::int64_t no_operation = -1;

  struct KnownKey {
    const char* text = nullptr;
    std::uint32_t size = 0;
    Field field = nullptr;
  };

  const Value& file_;
  std::size_t steps_left_;
  RankRecording result_;
  Interner<std::uint32_t> group_of_name_;
  std::vector<std::pair<std::int64_t, std::uint32_t>> group_of_id_;
  bool is_of_torchcomms_ = false;
  std::map<std::uint32_t, std::uint32_t>
      passed_over_;  // by group: messages since its last call, for TorchComms
  std::map<std::uint32_t, std::int64_t> operations_;  // by group: op_id of the last one, for Gloo
  std::vector<KnownKey> known_keys_;                  // by position in an entry
  Key key_;
  std::int64_t first_id_ = 0;
  std::int64_t last_record_id_ = 0;
  std::int64_t last_id_ = -1;
  std::string last_name_;
  std::uint32_t last_group_ = no_group;
};

}  // namespace

// A JSON dump without unfinished calls has no entries, and one from before 2.3 has no groups either.
bool looks_like_dump(const Value& value) {
  const auto has = [&value](std::string_view key) { return find(value, key) != nullptr; };
  return has("entries") || has("pg_config") || has("pg_status") ||
         (has("version") && (has("nccl_version") || has("comm_lib_version")));
}

RankRecording decode_dump(const Value& value, std::size_t bytes) { return Decoder(value, bytes).decode(); }

}  // namespace rollcall::traces
