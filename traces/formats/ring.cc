#include "traces/formats/ring.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <ranges>

#include <fmt/core.h>

#include "sim/tensor/dtype.h"
#include "traces/logs/lines.h"
#include "traces/values/json_value.h"
#include "traces/values/value.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

constexpr std::string_view magic = "rollcall";
constexpr std::uint32_t known_version = 1;
constexpr std::uint64_t capacity_max = 1U << 20;
constexpr std::size_t table_bytes_max = std::size_t{64} << 20;
constexpr std::ptrdiff_t list_max = 1U << 20;

static_assert(std::endian::native == std::endian::little,
              "rings are little-endian, and read as they lie in memory");

template <typename T>
T number_in(std::string_view bytes, std::size_t place) {
  T value = 0;
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

// Converts torch's dtype names to those of Flight Recorders: "float32" to "Float".
std::vector<std::string> scalar_types(const Value* value) {
  std::vector<std::string> names = texts_of(value);
  for (std::string& name : names) {
    if (const std::optional<Dtype> dtype = parse_dtype(name)) {
      name = scalar_type_name(*dtype);
    }
  }
  return names;
}

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes), header_(ring_header(bytes)) {}

  RankRecording decode() {
    if (header_.issued >= std::uint64_t{1} << 62U) {
      throw BadFile(ring_words::issued * 8, fmt::format("{} calls", header_.issued));
    }
    recording_.rank = header_.rank;
    recording_.ranks_at_least = header_.world_size;
    recording_.dump.version = fmt::format("ring {}", header_.version);
    read_table();
    read_records();
    return std::move(recording_);
  }

 private:
  struct Call {
    std::uint32_t number = 0;  // in the recording's table
    std::uint32_t stack = 0;
    bool is_from_anybody = false;
  };

  void read_table() {
    Lines lines(bytes_.substr(header_.table_begin, header_.table_used));
    Arena arena(table_bytes_max);
    while (lines.next()) {
      arena.reset();
      Value line;
      try {
        line = read_json(lines.line(), arena);
      } catch (const BadFile& error) {
        throw BadFile(header_.table_begin,
                      fmt::format("line {} of its table: {}", lines.number(), error.what()));
      }
      if (!line.is(Value::Kind::dict)) {
        continue;
      }
      if (find(line, "group") != nullptr) {
        add_group(line);
      } else if (find(line, "call") != nullptr) {
        add_call(line);
      }
    }
  }

  void add_group(const Value& line) {
    check::DumpGroup group;
    group.name = text_or_empty(find(line, "name"));
    for (const Value& item : items_of(find(line, "ranks"))) {
      const std::int64_t rank = number_or(&item, 0);
      if (rank < 0 || rank >= header_.world_size) {
        throw BadFile(header_.table_begin, fmt::format("group {} has a rank {} in a job of {}", group.name,
                                                       rank, header_.world_size));
      }
      group.members.push_back(static_cast<Rank>(rank));
    }
    std::sort(group.members.begin(), group.members.end());
    group.members.erase(std::unique(group.members.begin(), group.members.end()), group.members.end());
    const bool is_first = groups_.empty();
    const std::string backend(text_or_empty(find(line, "backend")));
    if (is_first) {
      backend_ = backend.find("nccl") != std::string::npos ? "nccl" : backend;
    }
    if (is_first && group.members.size() == static_cast<std::size_t>(header_.world_size)) {
      group.description = "default_pg";
    }
    const std::uint32_t number = recording_.tables.number_of(group);
    const std::int64_t timeout = number_or(find(line, "timeout_ms"), 0);
    groups_[number_or(find(line, "group"), 0)] = {
        number, static_cast<std::uint32_t>(std::clamp<std::int64_t>(timeout, 0, 0xffffffff))};
    recording_.dump.groups.push_back(number);
  }

  void add_call(const Value& line) {
    check::DumpCall call;
    call.op = text_or_empty(find(line, "op"));
    call.inputs = shapes_of(find(line, "in"));
    call.outputs = shapes_of(find(line, "out"));
    call.backend = backend_;
    call.input_dtypes = scalar_types(find(line, "in_dtypes"));
    call.output_dtypes = scalar_types(find(line, "out_dtypes"));
    Call known;
    if (call.op == "send" || call.op == "recv") {
      const auto peer = static_cast<Rank>(number_or(find(line, "peer"), -1));
      const auto own = static_cast<Rank>(number_or(find(line, "own"), -1));
      call.source = call.op == "send" ? own : peer;
      call.destination = call.op == "send" ? peer : own;
      call.outputs.clear();
      call.output_dtypes.clear();
      known.is_from_anybody = peer < 0 || own < 0;
    }
    check::DumpStack stack;
    std::string key;
    for (const Value& frame : items_of(find(line, "stack")) | std::views::take(list_max)) {
      const std::span<const Value> parts = items_of(&frame);
      if (parts.size() == 3) {
        stack.push_back({std::string(text_or_empty(&parts[2])), std::string(text_or_empty(&parts[0])),
                         number_or(&parts[1], 0)});
        key += fmt::format("{}\n{}\n{}\n", stack.back().file, stack.back().line, stack.back().function);
      }
    }
    known.number = recording_.tables.number_of(call);
    known.stack = recording_.tables.stacks.number_of(key, [&stack] { return stack; });
    calls_[number_or(find(line, "call"), 0)] = known;
  }

  void read_records() {
    const std::uint64_t first = header_.issued > header_.capacity ? header_.issued - header_.capacity + 1 : 1;
    check::RankDump& dump = recording_.dump;
    dump.from_start = first == 1 && header_.issued > 0;
    dump.without_gaps = true;
    const bool stands_still = number_in<std::uint64_t>(bytes_, ring_words::stands_still * 8) != 0;
    for (std::uint64_t number = first; number <= header_.issued; ++number) {
      const RingRecord record = ring_record(bytes_, header_, number);
      const auto call = calls_.find(record.call);
      const auto group = groups_.find(record.group);
      if (record.number != number || call == calls_.end() || !is_possible(record)) {
        dump.without_gaps = false;
        if (!dump.records.empty()) {
          dump.records.back().gap_after = true;
        }
        continue;
      }
      if (!record.is_about_groups() && group != groups_.end() && !call->second.is_from_anybody) {
        add(record, call->second, group->second, stands_still);
      }
    }
  }

  // No time and no sequence number is ever this large.
  static bool is_possible(const RingRecord& record) {
    constexpr std::uint64_t largest = std::uint64_t{1} << 62U;
    return record.created_ns < largest && record.finished_ns < largest && record.seq < largest;
  }

  struct Group {
    std::uint32_t number = 0;
    std::uint32_t timeout_ms = 0;
  };

  void add(const RingRecord& record, const Call& call, const Group& group, bool stands_still) {
    using State = check::DumpRecord::State;
    check::DumpRecord added;
    added.created_ns = static_cast<std::int64_t>(record.created_ns);
    added.completed_ns = static_cast<std::int64_t>(record.finished_ns);
    added.state = record.finished_ns == 0 ? State::scheduled
                  : record.has_failed()   ? State::ended
                                          : State::completed;
    added.is_p2p = recording_.tables.calls.things()[call.number].is_message();
    (added.is_p2p ? added.p2p_seq : added.collective_seq) = static_cast<std::int64_t>(record.seq);
    added.call = call.number;
    added.stack = call.stack;
    added.group = group.number;
    added.timeout_ms = group.timeout_ms;
    added.retired = stands_still && record.finished_ns == 0;
    recording_.dump.records.push_back(added);
  }

  std::string_view bytes_;
  RingHeader header_;
  RankRecording recording_;
  std::string backend_;  // of the default group
  std::map<std::int64_t, Call> calls_;
  std::map<std::int64_t, Group> groups_;
};

}  // namespace

bool looks_like_ring(std::string_view bytes) { return bytes.starts_with(magic) && bytes.size() >= ring_page; }

RingHeader ring_header(std::string_view bytes) {
  if (!looks_like_ring(bytes)) {
    throw BadFile(0, "not a ring of rollcall's observer");
  }
  RingHeader header;
  header.version = number_in<std::uint32_t>(bytes, 8);
  if (header.version != known_version) {
    throw BadFile(8, fmt::format("a ring of version {}; this rollcall reads version {}", header.version,
                                 known_version));
  }
  const auto record_bytes = number_in<std::uint32_t>(bytes, 12);
  header.rank = number_in<std::int32_t>(bytes, 16);
  header.world_size = number_in<std::int32_t>(bytes, 20);
  header.pid = number_in<std::uint32_t>(bytes, 24);
  header.capacity = number_in<std::uint32_t>(bytes, 28);
  header.table_begin = number_in<std::uint64_t>(bytes, 32);
  header.table_used = number_in<std::uint64_t>(bytes, ring_words::table_used * 8);
  header.issued = number_in<std::uint64_t>(bytes, ring_words::issued * 8);
  if (record_bytes != ring_record_bytes || !std::has_single_bit(header.capacity) ||
      header.capacity > capacity_max) {
    throw BadFile(12, fmt::format("a ring of {} records of {} bytes", header.capacity, record_bytes));
  }
  if (header.rank < 0 || header.rank >= header.world_size) {
    throw BadFile(16, fmt::format("rank {} of {}", header.rank, header.world_size));
  }
  if (header.table_begin != ring_page + header.capacity * ring_record_bytes ||
      header.table_begin > bytes.size() || header.table_used > bytes.size() - header.table_begin) {
    throw BadFile(32, fmt::format("its table of {} bytes at {} does not fit into {} bytes", header.table_used,
                                  header.table_begin, bytes.size()));
  }
  return header;
}

RingRecord ring_record(std::string_view bytes, const RingHeader& header, std::uint64_t number) {
  const std::size_t place = ring_page + (number & (header.capacity - 1)) * ring_record_bytes;
  const auto word = [&](std::size_t index) { return number_in<std::uint64_t>(bytes, place + index * 8); };
  RingRecord record;
  record.number = word(0);
  record.created_ns = word(1);
  record.finished_ns = word(2);
  record.call = static_cast<std::uint32_t>(word(4));
  record.group = static_cast<std::uint32_t>(word(4) >> 32U);
  record.seq = word(5);
  record.flags = word(6);
  return record;
}

RankRecording decode_ring(std::string_view bytes) { return Decoder(bytes).decode(); }

}  // namespace rollcall::traces
