#include "traces/dumps/dump_fields.h"

namespace rollcall::traces {

namespace {

constexpr std::array<std::pair<std::string_view, Field>, 21> field_names = {{
    {"collective_seq_id", Field::collective_seq_id},
    {"duration_ms", Field::duration_ms},
    {"frames", Field::frames},
    {"input_dtypes", Field::input_dtypes},
    {"input_sizes", Field::input_sizes},
    {"is_p2p", Field::is_p2p},
    {"op_id", Field::op_id},
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

}  // namespace

Field field_named(std::string_view name) {
  for (const auto& [known, field] : field_names) {
    if (known == name) {
      return field;
    }
  }
  return Field::unknown;
}

}  // namespace rollcall::traces
