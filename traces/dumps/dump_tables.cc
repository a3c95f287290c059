#include "traces/dumps/dump_tables.h"

#include <algorithm>

#include "traces/values/key_bytes.h"

namespace rollcall::traces {

namespace {

// Returns, for each number in `from`, the number of the same thing in `into`.
template <typename T>
std::vector<std::uint32_t> renumbered(const Interner<T>& from, Interner<T>& into) {
  std::vector<std::uint32_t> numbers(from.things().size());
  for (std::uint32_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = into.number_of(from.key_of(i), [&] { return from.things()[i]; });
  }
  return numbers;
}

}  // namespace

DumpTables::DumpTables() {
  stacks.number_of("", [] { return check::DumpStack(); });
}

std::uint32_t DumpTables::number_of(const check::DumpCall& call) {
  Key key;
  key.put(call.backend);
  key.put(call.op);
  key.put(std::int64_t{call.source});
  key.put(std::int64_t{call.destination});
  for (const auto* shapes : {&call.inputs, &call.outputs}) {
    key.put(static_cast<std::int64_t>(shapes->size()));
    for (const std::vector<std::int64_t>& shape : *shapes) {
      key.put(static_cast<std::int64_t>(shape.size()));
      for (const std::int64_t extent : shape) {
        key.put(extent);
      }
    }
  }
  for (const auto* dtypes : {&call.input_dtypes, &call.output_dtypes}) {
    key.put(static_cast<std::int64_t>(dtypes->size()));
    for (const std::string& dtype : *dtypes) {
      key.put(dtype);
    }
  }
  return calls.number_of(key.bytes(), [&] { return call; });
}

std::uint32_t DumpTables::number_of(const check::DumpGroup& group) {
  Key key;
  key.put(group.name);
  for (const Rank member : group.members) {
    key.put(std::int64_t{member});
  }
  return groups.number_of(key.bytes(), [&] { return group; });
}

void DumpTables::absorb(const DumpTables& other, check::RankDump& dump) {
  const std::vector<std::uint32_t> call = renumbered(other.calls, calls);
  const std::vector<std::uint32_t> stack = renumbered(other.stacks, stacks);
  const std::vector<std::uint32_t> group = renumbered(other.groups, groups);
  for (check::DumpRecord& record : dump.records) {
    record.call = call[record.call];
    record.stack = stack[record.stack];
    record.group = group[record.group];
  }
  for (check::DumpStatus& status : dump.status) {
    status.group = group[status.group];
  }
  for (std::uint32_t& number : dump.groups) {
    number = group[number];
  }
  std::sort(dump.groups.begin(), dump.groups.end());
}

}  // namespace rollcall::traces
