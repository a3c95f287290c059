#pragma once

// Collects evidence from a job that runs without rollcall: from the debug server of torch 2.14, processes of this
// machine, and NCCL's RAS. All of it goes to a folder, as files that traces/formats reads.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <sys/types.h>

#include "scenarios/watch/network.h"
#include "sim/c10d/op.h"

namespace rollcall::watch {

// torch.distributed.debug: the page of rank 0.
struct DebugServer {
  Address address;
};
// A rank, or the process that started ranks.
struct Process {
  pid_t id = 0;
};
struct NcclRas {
  Address address;
};

using Target = std::variant<DebugServer, Process, NcclRas>;

constexpr std::uint16_t ras_port = 28028;

// Parses "host:port", "[::1]:port". Nothing for other texts.
std::optional<Address> parse_address(std::string_view text);

// Parses "host:25999", "4711", "ras:host", "ras:host:28028". Nothing for other texts.
std::optional<Target> parse_target(std::string_view text);

// The servers of ranks that the page's list of the store names: "debug_server/rank3: b'http://node:40123'".
std::vector<std::pair<Rank, Address>> rank_servers(std::string_view page);

struct Collected {
  std::vector<std::string> got;      // "stacks of ranks 0-3"
  std::vector<std::string> missing;  // with the reason
};

// Asks twice, `apart` from each other, for the folders `first` and `later` in `folder`: a rank that has not moved in
// between stands still. Throws std::system_error if the folder cannot be written.
Collected collect(const std::vector<Target>& targets, const std::string& folder, Duration apart);

}  // namespace rollcall::watch
