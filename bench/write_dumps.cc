// Writes Flight Recorder dumps of a large job, for measuring `rollcall diagnose`:
//
//   write_dumps FOLDER RANKS RECORDS
//
// A transformer with tensor parallelism of 8, data parallelism across, and a world group. Rings have
// wrapped. One rank in the middle stopped before its next layer; its tensor group waits for it, the data
// groups for that group, the world for them.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "traces/values/pickle_writer.h"

namespace {

constexpr int tensor_parallel = 8;
constexpr int layers = 16;
constexpr int calls_per_step = 2 * layers + 2;
constexpr std::int64_t steps_before = 40;  // that have left the ring

struct Group {
  std::string name;
  std::string description;
  std::vector<int> members;
  int id = 0;
};

std::string members_text(const std::vector<int>& members) {
  return fmt::format("[{}]", fmt::join(members, ", "));
}

// The k-th call of a step.
struct Step {
  int group;  // 0 world, 1 data, 2 tensor
  const char* op;
  int numel;
  const char* function;
  int line;
};

Step step_of(int call) {
  if (call == calls_per_step - 1) {
    return {0, "nccl:all_reduce", 1, "log_loss", 231};
  }
  if (call == calls_per_step - 2) {
    return {1, "nccl:_reduce_scatter_base", 65536, "sync_grads", 51};
  }
  return call % 2 == 0 ? Step{2, "nccl:_all_gather_base", 8192, "column_linear", 64}
                       : Step{2, "nccl:_reduce_scatter_base", 8192, "row_linear", 98};
}

class RankWriter {
 public:
  RankWriter(int rank, int ranks, int records) : rank_(rank), ranks_(ranks), records_(records) {
    const int tensor = rank / tensor_parallel;
    const int data = rank % tensor_parallel;
    Group world{"0", "default_pg", {}, 0};
    Group data_group{fmt::format("{}", 1 + data), "mesh_dp", {}, 1};
    Group tensor_group{fmt::format("{}", 1 + tensor_parallel + tensor), "mesh_tp", {}, 2};
    for (int other = 0; other < ranks; ++other) {
      world.members.push_back(other);
      if (other % tensor_parallel == data) {
        data_group.members.push_back(other);
      }
      if (other / tensor_parallel == tensor) {
        tensor_group.members.push_back(other);
      }
    }
    groups_ = {std::move(world), std::move(data_group), std::move(tensor_group)};
  }

  std::string write() {
    pickler_.open_dict();
    pickler_.text("version");
    pickler_.text("2.10");
    config();
    pickler_.text("comm_lib_version");
    pickler_.text("2.27.5");
    status();
    pickler_.text("entries");
    pickler_.open_list();
    for (std::int64_t call = issued() - records_; call < issued(); ++call) {
      entry(call);
    }
    pickler_.close_list();
    pickler_.close_dict();
    return pickler_.finish();
  }

 private:
  int culprit() const { return ranks_ / 2 + 1; }
  bool in_culprits_group() const { return rank_ / tensor_parallel == culprit() / tensor_parallel; }

  // All ranks end in the same step; the culprit did not begin it.
  std::int64_t last_step() const { return steps_before + records_ / calls_per_step + 2; }
  std::int64_t issued() const { return (last_step() + (rank_ == culprit() ? 0 : 1)) * calls_per_step; }

  bool finished(std::int64_t call) const {
    if (call / calls_per_step < last_step()) {
      return true;
    }
    return step_of(static_cast<int>(call % calls_per_step)).group == 2 && !in_culprits_group();
  }

  // Of `group`, up to and including `call`.
  static std::int64_t sequence(std::int64_t call, int group) {
    const std::int64_t step = call / calls_per_step;
    const auto within = static_cast<int>(call % calls_per_step);
    if (group == 2) {
      return step * 2 * layers + std::min(within + 1, 2 * layers);
    }
    const int place = group == 1 ? calls_per_step - 2 : calls_per_step - 1;
    return step + (within >= place ? 1 : 0);
  }

  void config() {
    pickler_.text("pg_config");
    pickler_.open_dict();
    for (const Group& group : groups_) {
      pickler_.text(group.name);
      pickler_.open_dict();
      pickler_.text("name");
      pickler_.text(group.name);
      pickler_.text("desc");
      pickler_.text(group.description);
      pickler_.text("ranks");
      pickler_.text(members_text(group.members));
      pickler_.close_dict();
    }
    pickler_.close_dict();
  }

  void status() {
    pickler_.text("pg_status");
    pickler_.open_dict();
    for (const Group& group : groups_) {
      pickler_.text(fmt::format("{}", group.id));
      pickler_.open_dict();
      pickler_.text("last_enqueued_collective");
      pickler_.integer(sequence(issued() - 1, group.id));
      pickler_.text("last_started_collective");
      pickler_.integer(-1);
      pickler_.text("last_completed_collective");
      pickler_.integer(sequence(last_step() * calls_per_step - 1, group.id));
      pickler_.close_dict();
    }
    pickler_.close_dict();
  }

  void frame(const std::string& function, const std::string& file, int line) {
    pickler_.open_dict();
    pickler_.text("name");
    pickler_.text(function);
    pickler_.text("filename");
    pickler_.text(file);
    pickler_.text("line");
    pickler_.integer(line);
    pickler_.close_dict();
  }

  void shape(const char* key, std::int64_t numel) {
    pickler_.text(key);
    pickler_.open_list();
    pickler_.open_list();
    pickler_.integer(numel);
    pickler_.close_list();
    pickler_.close_list();
  }

  void dtype(const char* key) {
    pickler_.text(key);
    pickler_.open_list();
    pickler_.text("BFloat16");
    pickler_.close_list();
  }

  void entry(std::int64_t call) {
    const Step step = step_of(static_cast<int>(call % calls_per_step));
    const Group& group = groups_[static_cast<std::size_t>(step.group)];
    const std::int64_t created = 1763600000000000000 + call * 500000 + rank_ * 1000;
    const bool done = finished(call);
    pickler_.open_dict();
    pickler_.text("frames");
    pickler_.open_list();
    frame("all_reduce", "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", 3024);
    frame("wrapper", "/opt/venv/lib/python3.12/site-packages/torch/distributed/c10d_logger.py", 83);
    frame(step.function, "/workspace/job/parallel.py", step.line);
    frame("train", "/workspace/job/train.py", 188);
    frame("<module>", "/workspace/job/train.py", 431);
    pickler_.close_list();
    number("record_id", call);
    number("pg_id", group.id);
    pickler_.text("process_group");
    pickler_.pair(group.name, group.description);
    number("collective_seq_id", sequence(call, group.id));
    number("p2p_seq_id", 0);
    number("op_id", sequence(call, group.id));
    pickler_.text("profiling_name");
    pickler_.text(step.op);
    number("time_created_ns", created);
    shape("input_sizes", step.numel);
    dtype("input_dtypes");
    shape("output_sizes", step.numel);
    dtype("output_dtypes");
    pickler_.text("state");
    pickler_.text(done ? "completed" : "scheduled");
    pickler_.text("time_discovered_started_ns");
    pickler_.none();
    pickler_.text("time_discovered_completed_ns");
    done ? pickler_.integer(created + 90'000'000) : pickler_.none();
    pickler_.text("retired");
    pickler_.boolean(done);
    number("timeout_ms", 600000);
    pickler_.text("is_p2p");
    pickler_.boolean(false);
    pickler_.close_dict();
  }

  void number(const char* key, std::int64_t value) {
    pickler_.text(key);
    pickler_.integer(value);
  }

  int rank_;
  int ranks_;
  int records_;
  std::vector<Group> groups_;
  rollcall::traces::PickleWriter pickler_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: write_dumps FOLDER RANKS RECORDS\n");
    return 4;
  }
  const std::filesystem::path folder = argv[1];
  const int ranks = std::stoi(argv[2]);
  const int records = std::stoi(argv[3]);
  std::filesystem::create_directories(folder);
  std::size_t total = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string bytes = RankWriter(rank, ranks, records).write();
    total += bytes.size();
    std::ofstream(folder / fmt::format("comm_lib_trace_rank_{}", rank), std::ios::binary) << bytes;
  }
  fmt::print("{} ranks, {} records, {:.1f} MB; rank {} is stuck\n", ranks, std::int64_t{ranks} * records,
             static_cast<double>(total) / 1e6, ranks / 2 + 1);
}
