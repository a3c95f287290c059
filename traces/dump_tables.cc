#include "traces/dump_tables.h"

#include <algorithm>

namespace rollcall::traces {

namespace {

// By `from`'s numbers: the numbers in `into`.
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
