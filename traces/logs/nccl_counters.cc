#include "traces/logs/nccl_counters.h"

#include <charconv>
#include <map>
#include <set>

#include <fmt/core.h>

#include "traces/logs/lines.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

using check::LogFact;
using Kind = LogFact::Kind;

constexpr std::string_view op_count = ": opCount ";

void add_launches(std::vector<LogFact>& facts, Rank rank, std::string group, std::int64_t count,
                  std::int64_t line = 0) {
  LogFact& fact = add_fact(facts, Kind::launched, RankSet{rank}, line);
  fact.group = std::move(group);
  fact.seq = count;
  fact.count = 1;
}

bool may_be_rank(std::int64_t number) { return number >= 0 && number < ranks_max; }

// Returns the items of a list, or a single object that is not in a list.
std::span<const Value> objects_of(const Value& value) {
  return value.is(Value::Kind::dict) ? std::span(&value, 1) : items_of(&value);
}

}  // namespace

std::optional<std::string> mended_ras_json(std::string_view bytes) {
  constexpr std::string_view last_number = "\"nvml_dev\": ";
  if (!contains(bytes, "\"nccl_version\"")) {
    return std::nullopt;
  }
  std::string mended;
  std::size_t copied = 0;
  for (std::size_t place = bytes.find(last_number); place != std::string_view::npos;
       place = bytes.find(last_number, place + 1)) {
    const std::size_t end = bytes.find_first_not_of("-0123456789", place + last_number.size());
    const std::size_t next = bytes.find_first_not_of(" \t\r\n", end);
    if (next != std::string_view::npos && bytes[next] == '"') {
      mended.append(bytes.substr(copied, end - copied)).append(",");
      copied = end;
    }
  }
  return copied == 0 ? std::nullopt : std::optional(mended.append(bytes.substr(copied)));
}

bool looks_like_ras_json(const Value& value) {
  return find(value, "communicators") != nullptr && find(value, "nccl_version") != nullptr;
}

namespace {

// What NCCL has not given up yet.
bool is_dead(const Value& missing) {
  const Value* const status = missing.is(Value::Kind::dict) ? find(missing, "status") : nullptr;
  return status == nullptr || number_or(find(*status, "considered_dead"), 1) != 0;
}

// What shows that ranks of two communicators are one: host, process and GPU.
std::string process_of(const Value& rank) {
  const Value* const host = find(rank, "host");
  return host == nullptr ? std::string()
                         : fmt::format("{} {} {}", text_or_empty(host), number_or(find(rank, "pid"), -1),
                                       number_or(find(rank, "cuda_dev"), -1));
}

// Ranks count within their communicator. Those of the communicator that has all processes are the job's.
class RanksOfJob {
 public:
  explicit RanksOfJob(const Value& value) {
    const std::span<const Value> communicators = items_of(find(value, "communicators"));
    std::set<std::string> all;
    for (const Value& communicator : communicators) {
      std::map<std::string, std::int64_t> own = ranks_of(communicator);
      for (const auto& [process, rank] : own) {
        all.insert(process);
      }
      whole_ = own.size() > whole_.size() ? std::move(own) : whole_;
    }
    is_only_one_ = communicators.size() == 1;
    if (whole_.size() < all.size()) {
      whole_.clear();
    }
  }

  // -1 if it is unknown.
  std::int64_t of(const Value& rank) const {
    const auto known = whole_.find(process_of(rank));
    if (known != whole_.end()) {
      return known->second;
    }
    return is_only_one_ ? number_or(find(rank, "rank"), -1) : -1;
  }

 private:
  static std::map<std::string, std::int64_t> ranks_of(const Value& communicator) {
    std::map<std::string, std::int64_t> own;
    for (const char* const list : {"ranks", "missing_ranks"}) {
      for (const Value& rank : items_of(find(communicator, list))) {
        if (std::string process = process_of(rank); !process.empty()) {
          own.emplace(std::move(process), number_or(find(rank, "rank"), -1));
        }
      }
    }
    return own;
  }

  std::map<std::string, std::int64_t> whole_;  // by process
  bool is_only_one_ = false;
};

}  // namespace

// communicators: [{"hash": "0x..", "ranks": [{"rank": 0, "host": "node1", "pid": 77, "cuda_dev": 0,
// "collective_counts": {"AllReduce": 101}}], "missing_ranks": []}]
std::vector<LogFact> read_ras_json(const Value& value) {
  std::vector<LogFact> facts;
  const RanksOfJob in_job(value);
  for (const Value& communicator : items_of(find(value, "communicators"))) {
    const std::string group(text_or_empty(find(communicator, "hash")));
    for (const Value& member : items_of(find(communicator, "ranks"))) {
      const std::int64_t rank = in_job.of(member);
      const Value* counts = find(member, "collective_counts");
      if (!may_be_rank(rank) || counts == nullptr || !counts->is(Value::Kind::dict)) {
        continue;
      }
      std::int64_t calls = 0;
      for (std::uint32_t c = 1; c < counts->node->size; c += 2) {
        calls += std::min<std::int64_t>(count_or(&counts->node->items[c], 0), std::int64_t{1} << 40);
      }
      add_launches(facts, static_cast<Rank>(rank), group, calls);
    }
    for (const Value& missing : items_of(find(communicator, "missing_ranks"))) {
      const std::int64_t rank = missing.is(Value::Kind::dict) ? in_job.of(missing) : number_or(&missing, -1);
      if (may_be_rank(rank)) {
        LogFact& fact = add_fact(facts, Kind::unreachable, RankSet{static_cast<Rank>(rank)});
        fact.group = group;
        fact.text = is_dead(missing) ? "" : unresponsive;
      }
    }
  }
  return facts;
}

bool looks_like_inspector(const Value& value) {
  const std::span<const Value> objects = objects_of(value);
  return !objects.empty() && find(objects[0], "header") != nullptr &&
         find(objects[0], "coll_perf") != nullptr;
}

// {"header": {"id": "0x..", "rank": 0}, "metadata": {..}, "coll_perf": {"coll": "AllReduce", "coll_sn": 7}}
std::vector<LogFact> read_inspector(const Value& value, Rank file_rank) {
  std::map<std::pair<std::string, Rank>, std::int64_t> last;
  for (const Value& line : objects_of(value)) {
    const Value* header = find(line, "header");
    const Value* call = find(line, "coll_perf");
    if (header == nullptr || call == nullptr) {
      continue;
    }
    const std::int64_t rank = number_or(find(*header, "rank"), file_rank);
    const std::int64_t number = count_or(find(*call, "coll_sn"), -1);
    if (may_be_rank(rank) && number >= 0) {
      std::int64_t& known = last[{std::string(text_or_empty(find(*header, "id"))), static_cast<Rank>(rank)}];
      known = std::max(known, number);
    }
  }
  std::vector<LogFact> facts;
  for (const auto& [key, number] : last) {
    add_launches(facts, key.second, key.first, number);
  }
  return facts;
}

bool looks_like_nccl_calls(std::string_view bytes) {
  return contains(bytes, op_count) && contains(bytes, "NCCL INFO");
}

// "node1:77:90 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x.. count 64 datatype 7 op 0 root 0 comm 0x55 [nranks=4]
// stream 0x.."; the opCount is hexadecimal. "comm 0x55 rank 2 nRanks 4 .. commId 0x1 - Init COMPLETE" says whose
// communicator it is.
std::vector<LogFact> read_nccl_calls(const LogStream& log) {
  struct Communicator {
    Rank rank = -1;
    std::string id;
    std::int64_t last = -1;
    std::int64_t line = 0;
  };
  std::map<std::string, Communicator> communicators;  // by process and address
  for (const auto& [line_number, line] : log.lines) {
    const std::size_t address = line.find(" comm 0x");
    if (address == std::string_view::npos || !contains(line, "NCCL INFO")) {
      continue;
    }
    const std::string_view pointer =
        line.substr(address + 6, line.find_first_of(" \t", address + 6) - address - 6);
    const std::string_view process = line.substr(0, line.find(' '));
    const std::size_t thread = process.rfind(':');
    const std::string key = fmt::format("{} {}", process.substr(0, thread), pointer);
    Communicator& communicator = communicators[key];
    if (const std::size_t id = line.find(" commId "); id != std::string_view::npos) {
      communicator.rank = rank_after(line, " rank ").value_or(-1);
      const std::string_view rest = line.substr(id + 8);
      communicator.id = rest.substr(0, rest.find(' '));
    }
    if (const std::size_t place = line.find(op_count); place != std::string_view::npos) {
      const std::string_view text = line.substr(place + op_count.size());
      std::int64_t number = -1;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
      if (error == std::errc() && number > communicator.last) {
        communicator.last = number;
        communicator.line = line_number;
      }
    }
  }
  std::vector<LogFact> facts;
  for (const auto& [key, communicator] : communicators) {
    const Rank rank = communicator.rank >= 0 ? communicator.rank : log.rank;
    if (communicator.last >= 0 && rank >= 0) {
      add_launches(facts, rank, communicator.id, communicator.last, communicator.line);
    }
  }
  return facts;
}

}  // namespace rollcall::traces
