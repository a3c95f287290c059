#include "traces/formats/call_names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace rollcall::traces {

namespace {

// torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (RECORD_PARAM_COMMS), PARAM's commsTraceParser.py, Chakra's
// et_def.proto; without underscores, in small letters.
constexpr std::array<std::pair<std::string_view, std::string_view>, 38> known_names = {{
    {"allgather", "all_gather"},
    {"allgatherbase", "_all_gather_base"},
    {"allgathercoalesced", "all_gather_coalesced"},
    {"allgatherintotensor", "_all_gather_base"},
    {"allgatherintotensorcoalesced", "all_gather_into_tensor_coalesced"},
    {"allgatherobject", "all_gather"},
    {"allgatherv", "all_gather"},
    {"allreduce", "all_reduce"},
    {"allreducebarrier", "all_reduce_barrier"},
    {"allreducecoalesced", "allreduce_coalesced"},
    {"alltoall", "all_to_all"},
    {"alltoallbase", "all_to_all"},
    {"alltoallsingle", "all_to_all"},
    {"alltoallv", "all_to_all"},
    {"barrier", "barrier"},
    {"batchisendirecv", ""},
    {"broadcast", "broadcast"},
    {"broadcastoop", "_broadcast_oop"},
    {"commsinit", ""},
    {"endcoalescing", ""},
    {"gather", "gather"},
    {"init", ""},
    {"irecv", "recv"},
    {"isend", "send"},
    {"recv", "recv"},
    {"recvanysource", ""},
    {"reduce", "reduce"},
    {"reduceoop", "_reduce_oop"},
    {"reducescatter", "reduce_scatter"},
    {"reducescatterbase", "_reduce_scatter_base"},
    {"reducescatterblock", "_reduce_scatter_base"},
    {"reducescattertensor", "_reduce_scatter_base"},
    {"reducescattertensorcoalesced", "reduce_scatter_tensor_coalesced"},
    {"reducescatterv", "reduce_scatter"},
    {"scatter", "scatter"},
    {"send", "send"},
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
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return text;
}

auto find(std::string_view name) {
  const std::string key = plain(name);
  const auto place =
      std::lower_bound(known_names.begin(), known_names.end(), key,
                       [](const auto& entry, const std::string& text) { return entry.first < text; });
  return place != known_names.end() && place->first == key ? place : known_names.end();
}

}  // namespace

std::string recorder_name(std::string_view name) {
  const auto place = find(name);
  return std::string(place == known_names.end() ? name : place->second);
}

std::string_view known_name(std::string_view name) {
  const auto place = find(name);
  return place == known_names.end() ? std::string_view() : place->second;
}

}  // namespace rollcall::traces
