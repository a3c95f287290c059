#pragma once

// The keys of a Flight Recorder entry (torch/csrc/distributed/c10d/FlightRecorder.hpp).

#include <array>
#include <string_view>

#include "traces/values/value.h"

namespace rollcall::traces {

enum class Field : std::uint8_t {
  unknown,
  collective_seq_id,
  duration_ms,
  frames,
  input_dtypes,
  input_sizes,
  is_p2p,
  op_id,
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

Field field_named(std::string_view name);

// The values of one entry, still in the tree.
struct Entry {
  std::array<const Value*, 24> fields{};

  const Value* operator[](Field field) const { return fields[static_cast<std::size_t>(field)]; }
};

}  // namespace rollcall::traces
