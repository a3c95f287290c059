#pragma once

// Dumps for tests of the judge: a few lines each, in the recorder's terms.

#include <algorithm>
#include <string>
#include <vector>

#include "sim/diagnose/dump.h"

namespace rollcall::check::test {

// A job of `world` ranks, with complete dumps and the group "0" of all ranks. Calls are made 1 ms apart, and finished
// calls are seen to finish 0.2 ms later.
class DumpBuilder {
 public:
  explicit DumpBuilder(Rank world) {
    job.stacks.emplace_back();
    std::vector<Rank> all;
    for (Rank rank = 0; rank < world; ++rank) {
      all.push_back(rank);
      RankDump dump;
      dump.rank = rank;
      dump.from_start = true;
      dump.without_gaps = true;
      job.ranks.push_back(std::move(dump));
      clocks_.push_back(1'000'000);
    }
    group("0", "default_pg", all);
  }

  std::uint32_t group(const std::string& name, const std::string& description, std::vector<Rank> members) {
    const auto number = static_cast<std::uint32_t>(job.groups.size());
    for (const Rank member : members) {
      job.ranks[static_cast<std::size_t>(member)].groups.push_back(number);
    }
    job.groups.push_back({name, description, std::move(members)});
    return number;
  }

  // Adds the next collective of `rank` on `group`.
  DumpRecord& call(Rank rank, const std::string& op, std::int64_t numel = 1, bool finished = true,
                   std::uint32_t group = 0) {
    DumpCall recorded;
    recorded.backend = "nccl";
    recorded.op = op;
    recorded.inputs = recorded.outputs = {{numel}};
    recorded.input_dtypes = recorded.output_dtypes = {"Float"};
    return add(rank, recorded, finished, group);
  }

  // Adds any call.
  DumpRecord& add(Rank rank, const DumpCall& recorded, bool finished, std::uint32_t group) {
    RankDump& dump = dump_of(rank);
    std::int64_t& clock = clocks_[static_cast<std::size_t>(rank)];
    DumpRecord record;
    const auto known = std::find(job.calls.begin(), job.calls.end(), recorded);
    record.call = static_cast<std::uint32_t>(known - job.calls.begin());
    if (known == job.calls.end()) {
      job.calls.push_back(recorded);
    }
    record.group = group;
    record.created_ns = clock;
    record.timeout_ms = 600'000;
    clock += 1'000'000;
    if (finished) {
      record.state = DumpRecord::State::completed;
      record.completed_ns = record.created_ns + 200'000;
    }
    for (const DumpRecord& earlier : dump.records) {
      record.collective_seq += earlier.group == group && !earlier.is_p2p ? 1 : 0;
    }
    record.collective_seq += 1;
    dump.records.push_back(record);
    return dump.records.back();
  }

  // Adds a single send or receive; `peer` and `rank` are also the ranks inside the group.
  DumpRecord& message(Rank rank, const std::string& op, Rank peer, bool finished = true) {
    DumpCall recorded;
    recorded.backend = "nccl";
    recorded.op = op;
    recorded.source = op == "send" ? rank : peer;
    recorded.destination = op == "send" ? peer : rank;
    recorded.inputs = recorded.outputs = {{8}};
    DumpRecord& record = add(rank, recorded, finished, 0);
    record.is_p2p = true;
    return record;
  }

  // Lets time pass on a rank without a call, with an event at its end.
  void silence(Rank rank, std::int64_t nanoseconds) {
    RankDump& dump = dump_of(rank);
    dump.records.front().timeout_ms = 0;  // noticed late, not finished late
    dump.records.front().completed_ns = clocks_[static_cast<std::size_t>(rank)] + nanoseconds;
  }
  // Lets all ranks be silent for longer than the timeout.
  void everyone_silent() {
    for (const RankDump& dump : job.ranks) {
      if (!dump.records.empty()) {
        silence(dump.rank, 601'000'000'000);
      }
    }
  }

  RankDump& dump_of(Rank rank) { return job.ranks[static_cast<std::size_t>(rank)]; }

  JobDump job;

 private:
  std::vector<std::int64_t> clocks_;
};

}  // namespace rollcall::check::test
