#include "traces/dump_decoder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace rollcall::traces {

namespace {

using check::DumpCall;
using check::DumpFrame;
using check::DumpGroup;
using check::DumpRecord;
using check::DumpStack;
using check::DumpStatus;
using check::RankDump;

// No job is larger; a number beyond is a mistake or an attempt.
constexpr Rank ranks_max = 1 << 24;

// Outer frames beyond this many belong to launchers and say nothing about the call.
constexpr std::uint32_t frames_max = 32;

enum class Field : std::uint8_t {
  unknown,
  collective_seq_id,
  duration_ms,
  frames,
  input_dtypes,
  input_sizes,
  is_p2p,
  output_dtypes,
  output_sizes,
  p2p_seq_id,
  pg_id,
  process_group,
  profiling_name,
  record_id,
  retired,
  seq_id,  // 1.x and 2.0 had one counter
  state,
  time_created_ns,
  time_discovered_completed_ns,
  time_discovered_started_ns,
  timeout_ms,
};

constexpr std::array<std::pair<std::string_view, Field>, 20> field_names = {{
    {"collective_seq_id", Field::collective_seq_id},
    {"duration_ms", Field::duration_ms},
    {"frames", Field::frames},
    {"input_dtypes", Field::input_dtypes},
    {"input_sizes", Field::input_sizes},
    {"is_p2p", Field::is_p2p},
    {"output_dtypes", Field::output_dtypes},
    {"output_sizes", Field::output_sizes},
    {"p2p_seq_id", Field::p2p_seq_id},
    {"pg_id", Field::pg_id},
    {"process_group", Field::process_group},
    {"profiling_name", Field::profiling_name},
    {"record_id", Field::record_id},
    {"retired", Field::retired},
    {"seq_id", Field::seq_id},
    {"state", Field::state},
    {"time_created_ns", Field::time_created_ns},
    {"time_discovered_completed_ns", Field::time_discovered_completed_ns},
    {"time_discovered_started_ns", Field::time_discovered_started_ns},
    {"timeout_ms", Field::timeout_ms},
}};

Field field_named(std::string_view name) {
  for (const auto& [known, field] : field_names) {
    if (known == name) {
      return field;
    }
  }
  return Field::unknown;
}

// A number, also as JSON's dump spells it in pg_status: "12". Missing and None count as `otherwise`.
std::int64_t number_or(const Value* value, std::int64_t otherwise) {
  if (value == nullptr) {
    return otherwise;
  }
  if (value->is(Value::Kind::integer) || value->is(Value::Kind::boolean)) {
    return value->integer;
  }
  std::int64_t number = otherwise;
  if (value->is(Value::Kind::text)) {
    const std::string_view text = value->as_text();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? number : otherwise;
  }
  return otherwise;
}

// A number that counts something, or a time: never negative, and small enough that the judge can add and
// subtract such numbers. Whatever else a file claims counts as missing.
std::int64_t count_or(const Value* value, std::int64_t otherwise) {
  constexpr std::int64_t count_max = std::int64_t{1} << 62;
  const std::int64_t number = number_or(value, otherwise);
  return number >= 0 && number < count_max ? number : otherwise;
}

std::string_view text_or_empty(const Value* value) {
  return value != nullptr && value->is(Value::Kind::text) ? value->as_text() : std::string_view();
}

// Items of a list; of anything else, none.
std::pair<const Value*, std::uint32_t> items_of(const Value* value) {
  if (value == nullptr || !value->is(Value::Kind::list)) {
    return {nullptr, 0};
  }
  return {value->node->items, value->node->size};
}

// Small values as bytes of a key: what an Interner compares.
class Key {
 public:
  void clear() { bytes_.clear(); }
  void put(std::string_view text) {
    put(static_cast<std::int64_t>(text.size()));
    bytes_.append(text);
  }
  void put(std::int64_t number) {
    char raw[sizeof number];
    std::memcpy(raw, &number, sizeof number);
    bytes_.append(raw, sizeof raw);
  }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// "nccl:send 0->1", "nccl:recv 1<-0" (ranks inside the group), "nccl:all_reduce", "allreduce".
DumpCall parse_profiling_name(std::string_view name) {
  DumpCall call;
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
    call.backend = name.substr(0, colon);
    name.remove_prefix(colon + 1);
  }
  const std::size_t blank = name.find(' ');
  const std::string_view op = name.substr(0, blank);
  call.op = name;
  if (blank == std::string_view::npos || (op != "send" && op != "recv")) {
    return call;
  }
  const std::string_view ends = name.substr(blank + 1);
  const std::size_t arrow = ends.find(op == "send" ? "->" : "<-");
  Rank own = -1;
  Rank peer = -1;
  if (arrow == std::string_view::npos ||
      std::from_chars(ends.data(), ends.data() + arrow, own).ec != std::errc() ||
      std::from_chars(ends.data() + arrow + 2, ends.data() + ends.size(), peer).ec != std::errc() ||
      own < 0 || peer < 0) {
    return call;
  }
  call.op = op;
  call.source = op == "send" ? own : peer;
  call.destination = op == "send" ? peer : own;
  return call;
}

std::vector<std::vector<std::int64_t>> shapes_of(const Value* value) {
  std::vector<std::vector<std::int64_t>> shapes;
  const auto [list, size] = items_of(value);
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto [dimensions, rank] = items_of(&list[i]);
    std::vector<std::int64_t>& shape = shapes.emplace_back();
    for (std::uint32_t k = 0; k < rank; ++k) {
      shape.push_back(count_or(&dimensions[k], 0));
    }
  }
  return shapes;
}

std::vector<std::string> texts_of(const Value* value) {
  std::vector<std::string> texts;
  const auto [list, size] = items_of(value);
  for (std::uint32_t i = 0; i < size; ++i) {
    texts.emplace_back(text_or_empty(&list[i]));
  }
  return texts;
}

DumpRecord::State state_named(std::string_view name) {
  return name == "completed" ? DumpRecord::State::completed
         : name == "started" ? DumpRecord::State::started
                             : DumpRecord::State::scheduled;
}

// The values of one entry, still in the tree.
struct Entry {
  std::array<const Value*, 24> fields{};

  const Value* operator[](Field field) const { return fields[static_cast<std::size_t>(field)]; }
};

class Decoder {
 public:
  Decoder(const Value& file, std::size_t bytes)
      // A file that says everything once needs less than one step per byte; shared parts may be
      // visited again, but not without end.
      : file_(file), steps_left_(16 * bytes + 4096) {}

  DecodedDump decode() {
    result_.dump.version = text_or_empty(find(file_, "version"));
    read_groups();
    read_entries();
    read_status();
    finish_groups();
    return std::move(result_);
  }

 private:
  void spend(std::size_t steps) {
    if (steps > steps_left_) {
      throw BadFile(0, "the file refers to its own parts too often to be a dump");
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
      add_group(name, text_or_empty(find(group, "desc")), members_of(find(group, "ranks")));
    }
  }

  // A text in every version seen; a list costs nothing to accept.
  std::vector<Rank> members_of(const Value* value) {
    std::vector<Rank> members;
    if (const std::string_view text = text_or_empty(value); !text.empty()) {
      spend(text.size());
      members = parse_ranks(text).value_or(std::vector<Rank>());
    }
    const auto [list, size] = items_of(value);
    spend(size);
    for (std::uint32_t i = 0; i < size; ++i) {
      if (const std::int64_t rank = number_or(&list[i], -1); rank >= 0 && rank < ranks_max) {
        members.push_back(static_cast<Rank>(rank));
      }
    }
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    return members;
  }

  std::uint32_t add_group(std::string_view name, std::string_view description, std::vector<Rank> members) {
    key_.clear();
    key_.put(name);
    for (const Rank member : members) {
      key_.put(static_cast<std::int64_t>(member));
    }
    const std::uint32_t number = result_.tables.groups.number_of(key_.bytes(), [&] {
      return DumpGroup{std::string(name), std::string(description), std::move(members)};
    });
    group_of_name_.number_of(name, [&] { return number; });
    return number;
  }

  // Groups that entries name and pg_config does not have no known members.
  std::uint32_t group_named(std::string_view name, std::string_view description) {
    const std::uint32_t known = group_of_name_.number_of(name, [] { return no_group; });
    std::uint32_t& number = group_of_name_.things()[known];
    if (number == no_group) {
      number = add_group(name, description, {});
    }
    return number;
  }

  void read_entries() {
    const auto [entries, size] = items_of(find(file_, "entries"));
    result_.dump.records.reserve(size);
    result_.dump.from_start = size > 0;  // an empty list may be all that is unfinished
    result_.dump.without_gaps = true;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (entries[i].is(Value::Kind::dict)) {
        read_entry(fields_of(entries[i]), i);
      } else {
        throw BadFile(0, fmt::format("entry {} is no dict", i));
      }
    }
  }

  // Entries of a file have their keys in the same order, and in a pickle they are the same texts.
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
      entry.fields[static_cast<std::size_t>(known.field)] = &node.items[i + 1];
    }
    return entry;
  }

  void read_entry(const Entry& entry, std::uint32_t index) {
    DumpRecord record;
    record.created_ns = count_or(entry[Field::time_created_ns], 0);
    record.started_ns = count_or(entry[Field::time_discovered_started_ns], 0);
    record.completed_ns = count_or(entry[Field::time_discovered_completed_ns], 0);
    record.collective_seq = count_or(entry[Field::collective_seq_id], count_or(entry[Field::seq_id], 0));
    record.p2p_seq = count_or(entry[Field::p2p_seq_id], 0);
    record.call = call_of(entry);
    record.stack = stack_of(entry[Field::frames]);
    record.group = group_of(entry);
    record.timeout_ms = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(count_or(entry[Field::timeout_ms], 0), 0, 0xffffffff));
    record.duration_ms = duration_of(entry[Field::duration_ms]);
    record.state = state_named(text_or_empty(entry[Field::state]));
    record.retired = number_or(entry[Field::retired], 0) != 0;
    const DumpCall& call = result_.tables.calls.things()[record.call];
    record.is_p2p =
        entry[Field::is_p2p] != nullptr ? number_or(entry[Field::is_p2p], 0) != 0 : call.is_message();
    // Ids count every record: what fell off the ring, or was left out, leaves a gap.
    const std::int64_t id = count_or(entry[Field::record_id], -1);
    first_id_ = index == 0 ? id : first_id_;
    result_.dump.from_start &= id == index;
    result_.dump.without_gaps &= id >= 0 && id - first_id_ == index;
    if (index > 0 && id != last_record_id_ + 1) {
      result_.dump.records.back().gap_after = true;
    }
    last_record_id_ = id;
    result_.dump.records.push_back(record);
  }

  static float duration_of(const Value* value) {
    if (value == nullptr) {
      return -1;
    }
    return value->is(Value::Kind::real)      ? static_cast<float>(value->real)
           : value->is(Value::Kind::integer) ? static_cast<float>(value->integer)
                                             : -1;
  }

  void put_shapes(const Value* value) {
    const auto [list, size] = items_of(value);
    spend(size);
    key_.put(static_cast<std::int64_t>(size));
    for (std::uint32_t i = 0; i < size; ++i) {
      const auto [dimensions, rank] = items_of(&list[i]);
      spend(rank);
      key_.put(static_cast<std::int64_t>(rank));
      for (std::uint32_t k = 0; k < rank; ++k) {
        key_.put(number_or(&dimensions[k], 0));
      }
    }
  }

  void put_texts(const Value* value) {
    const auto [list, size] = items_of(value);
    spend(size);
    key_.put(static_cast<std::int64_t>(size));
    for (std::uint32_t i = 0; i < size; ++i) {
      spend(text_or_empty(&list[i]).size());
      key_.put(text_or_empty(&list[i]));
    }
  }

  std::uint32_t call_of(const Entry& entry) {
    const std::string_view name = text_or_empty(entry[Field::profiling_name]);
    spend(name.size());
    key_.clear();
    key_.put(name);
    put_shapes(entry[Field::input_sizes]);
    put_shapes(entry[Field::output_sizes]);
    put_texts(entry[Field::input_dtypes]);
    put_texts(entry[Field::output_dtypes]);
    return result_.tables.calls.number_of(key_.bytes(), [&] {
      DumpCall call = parse_profiling_name(name);
      call.inputs = shapes_of(entry[Field::input_sizes]);
      call.outputs = shapes_of(entry[Field::output_sizes]);
      call.input_dtypes = texts_of(entry[Field::input_dtypes]);
      call.output_dtypes = texts_of(entry[Field::output_dtypes]);
      return call;
    });
  }

  std::uint32_t stack_of(const Value* value) {
    auto [list, size] = items_of(value);
    size = std::min(size, frames_max);
    if (size == 0) {
      return 0;
    }
    key_.clear();
    for (std::uint32_t i = 0; i < size; ++i) {
      const Node* frame = list[i].is(Value::Kind::dict) ? list[i].node : nullptr;
      spend(frame == nullptr ? 1 : frame->size + 1);
      const std::string_view function = text_or_empty(find(list[i], "name"));
      const std::string_view file = text_or_empty(find(list[i], "filename"));
      spend((function.size() + file.size()) / 8);
      key_.put(function);
      key_.put(file);
      key_.put(number_or(find(list[i], "line"), 0));
    }
    return result_.tables.stacks.number_of(key_.bytes(), [&] {
      DumpStack stack;
      for (std::uint32_t i = 0; i < size; ++i) {
        stack.push_back({std::string(text_or_empty(find(list[i], "name"))),
                         std::string(text_or_empty(find(list[i], "filename"))),
                         number_or(find(list[i], "line"), 0)});
      }
      return stack;
    });
  }

  // ("0", "default_pg"); very old dumps have pg_id only.
  std::uint32_t group_of(const Entry& entry) {
    const auto [names, size] = items_of(entry[Field::process_group]);
    const std::int64_t id = number_or(entry[Field::pg_id], 0);
    std::string_view name = size > 0 ? text_or_empty(&names[0]) : std::string_view();
    const std::string number = name.empty() ? fmt::format("{}", id) : std::string();
    name = name.empty() ? number : name;
    spend(name.size());
    if (id == last_id_ && name == last_name_) {
      return last_group_;
    }
    last_id_ = id;
    last_name_ = name;
    last_group_ = group_named(name, size > 1 ? text_or_empty(&names[1]) : std::string_view());
    spend(group_of_id_.size());
    const bool is_new = std::none_of(group_of_id_.begin(), group_of_id_.end(),
                                     [&](const auto& known) { return known.first == id; });
    if (is_new) {
      group_of_id_.emplace_back(id, last_group_);
    }
    return last_group_;
  }

  // Counters are keyed by a number that only this process knows; a record that carries both is the one
  // link to a group. Counters of other groups cannot be told apart and are left out.
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
        if (known == id) {
          result_.dump.status.push_back(
              DumpStatus{group, count_or(find(counters, "last_enqueued_collective"), -1),
                         count_or(find(counters, "last_started_collective"), -1),
                         count_or(find(counters, "last_completed_collective"), -1)});
        }
      }
    }
  }

  void finish_groups() {
    for (std::uint32_t i = 0; i < result_.tables.groups.things().size(); ++i) {
      result_.dump.groups.push_back(i);
    }
  }

  static constexpr std::uint32_t no_group = 0xffffffff;

  struct KnownKey {
    const char* text = nullptr;
    std::uint32_t size = 0;
    Field field = Field::unknown;
  };

  const Value& file_;
  std::size_t steps_left_;
  DecodedDump result_;
  Interner<std::uint32_t> group_of_name_;
  std::vector<std::pair<std::int64_t, std::uint32_t>> group_of_id_;
  std::vector<KnownKey> known_keys_;  // by place in an entry
  Key key_;
  std::int64_t first_id_ = 0;
  std::int64_t last_record_id_ = 0;
  std::int64_t last_id_ = -1;
  std::string last_name_;
  std::uint32_t last_group_ = no_group;
};

}  // namespace

bool looks_like_dump(const Value& value) {
  return find(value, "entries") != nullptr || find(value, "pg_config") != nullptr;
}

DecodedDump decode_dump(const Value& value, std::size_t bytes) { return Decoder(value, bytes).decode(); }

std::optional<std::vector<Rank>> parse_ranks(std::string_view text) {
  std::vector<Rank> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto skip = [&](std::string_view allowed) {
    while (at != end && allowed.find(*at) != std::string_view::npos) {
      ++at;
    }
  };
  skip(" [");
  while (at != end && *at != ']') {
    Rank rank = -1;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error != std::errc() || rank < 0 || rank >= ranks_max) {
      return std::nullopt;
    }
    ranks.push_back(rank);
    at = next;
    skip(" ,");
  }
  return ranks;
}

}  // namespace rollcall::traces
