#include "traces/formats/call_names.h"

#include <array>
#include <map>
#include <optional>

#include "sim/base/ascii.h"
#include "sim/c10d/op_table.h"

namespace rollcall::traces {

namespace {

// Names that are recorded in addition to the table's operations
// (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp,
// RECORD_PARAM_COMMS): without underscores, in lower case. Other backends have their own title for barrier.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> other_names = {{
    {"allgathercoalesced", "all_gather_coalesced"},
    {"allgatherintotensorcoalesced", "all_gather_into_tensor_coalesced"},
    {"barrier", "barrier"},
    {"batchisendirecv", ""},
    {"broadcastoop", "_broadcast_oop"},
    {"commsinit", ""},
    {"endcoalescing", ""},
    {"init", ""},
    {"recvanysource", ""},
    {"reduceoop", "_reduce_oop"},
    {"reducescattertensorcoalesced", "reduce_scatter_tensor_coalesced"},
    {"startcoalescing", ""},
    {"wait", ""},
}};

std::string plain(std::string_view name) {
  if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos) {
    name.remove_prefix(colon + 1);
  }
  std::string text;
  for (const char c : name) {
    if (c != '_' && c != '-' && c != ' ') {
      text += lower(c);
    }
  }
  return text;
}

using Names = std::map<std::string, std::string_view>;

// Maps plain(name) of each name in recordings to its title.
Names known_names() {
  Names names(other_names.begin(), other_names.end());
  for (const OpRow& row : op_rows) {
    if (const std::string_view title = row.titles.front(); !title.empty()) {
      names.emplace(plain(row.name), title);
      for (const std::string_view other : row.titles) {
        names.emplace(plain(other), title);
      }
      for (const std::string_view alias : row.aliases) {
        names.emplace(alias, title);
      }
    }
  }
  names.erase("");
  return names;
}

std::optional<std::string_view> find(std::string_view name) {
  static const Names names = known_names();
  const auto found = names.find(plain(name));
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::string recorder_name(std::string_view name) { return std::string(find(name).value_or(name)); }

std::string_view known_name(std::string_view name) { return find(name).value_or(std::string_view()); }

}  // namespace rollcall::traces
