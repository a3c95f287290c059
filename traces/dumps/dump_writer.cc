#include "traces/dumps/dump_writer.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "traces/dumps/recorded_call.h"
#include "traces/values/pickle_writer.h"

namespace rollcall::traces {

namespace {

using check::DumpCall;
using check::DumpGroup;
using check::DumpRecord;
using check::DumpStatus;
using check::JobDump;
using check::RankDump;

constexpr const char* format_version = "2.10";
// Written in place of the library's version. No reader compares it, and it tells the user who opens the file.
constexpr const char* library_version = "simulated by rollcall";

// Has the same interface as PickleWriter, but writes JSON.
class JsonWriter {
 public:
  void open_dict() { open('{', true); }
  void close_dict() { close('}'); }
  void open_list() { open('[', false); }
  void close_list() { close(']'); }
  void pair(std::string_view first, std::string_view second) {
    open_list();
    text(first);
    text(second);
    close_list();
  }
  void none() { value("null"); }
  void boolean(bool flag) { value(flag ? "true" : "false"); }
  void text(std::string_view words) {
    value(nlohmann::json(words).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  }
  void integer(std::int64_t number) { value(fmt::format("{}", number)); }
  void real(double number) { value(fmt::format("{}", number)); }

  std::string finish() { return std::move(text_); }

 private:
  struct Level {
    bool is_dict = false;
    std::size_t size = 0;
  };

  void separate() {
    if (levels_.empty()) {
      return;
    }
    Level& level = levels_.back();
    const bool is_value = level.is_dict && level.size % 2 == 1;
    text_ += level.size == 0 ? "" : is_value ? ": " : ", ";
    ++level.size;
  }
  void value(std::string_view words) {
    separate();
    text_ += words;
  }
  void open(char bracket, bool is_dict) {
    separate();
    text_ += bracket;
    levels_.push_back({is_dict});
  }
  void close(char bracket) {
    levels_.pop_back();
    text_ += bracket;
  }

  std::string text_;
  std::vector<Level> levels_;
};

// "nccl:all_reduce", "nccl:send 0->1", "nccl:recv 1<-0".
std::string profiling_name(const DumpCall& call) {
  const std::string prefix = call.backend.empty() ? "" : call.backend + ":";
  if (!call.is_message()) {
    return prefix + call.op;
  }
  return call.op == "send" ? fmt::format("{}send {}->{}", prefix, call.source, call.destination)
                           : fmt::format("{}recv {}<-{}", prefix, call.destination, call.source);
}

template <typename Out>
class DumpWriter {
 public:
  static constexpr bool is_json = std::is_same_v<Out, JsonWriter>;

  DumpWriter(const JobDump& job, const RankDump& dump) : job_(job), dump_(dump) {}

  std::string write() {
    out_.open_dict();
    text("version", format_version);
    config();
    text("comm_lib_version", library_version);
    status();
    if (!is_json || !dump_.records.empty()) {
      out_.text("entries");
      out_.open_list();
      std::int64_t id = dump_.from_start ? 0 : 1;  // also counts the records that the ring has lost
      for (const DumpRecord& record : dump_.records) {
        entry(record, id);
        id += record.gap_after ? 2 : 1;
      }
      out_.close_list();
    }
    out_.close_dict();
    return out_.finish();
  }

 private:
  void text(std::string_view key, std::string_view value) {
    out_.text(key);
    out_.text(value);
  }
  void integer(std::string_view key, std::int64_t value) {
    out_.text(key);
    out_.integer(value);
  }
  void boolean(std::string_view key, bool value) {
    out_.text(key);
    out_.boolean(value);
  }
  void time(std::string_view key, std::int64_t ns) {
    out_.text(key);
    ns == 0 && !is_json ? out_.none() : out_.integer(ns);
  }
  // A counter of pg_status, which is a text in JSON.
  void counter(std::string_view key, std::int64_t value) {
    is_json ? text(key, fmt::format("{}", value)) : integer(key, value);
  }

  // The number of a group in this process: its position among the groups that the rank has used.
  std::int64_t id_of(std::uint32_t group) const {
    return std::find(dump_.groups.begin(), dump_.groups.end(), group) - dump_.groups.begin();
  }

  bool is_of_gloo() const {
    return !dump_.records.empty() && job_.calls[dump_.records.front().call].is_of_gloo();
  }

  void config() {
    out_.text("pg_config");
    out_.open_dict();
    // Gloo registers a group before it has a name or global ranks, so each group overwrites the one before.
    if (is_of_gloo()) {
      std::vector<Rank> ranks(job_.groups[dump_.groups.back()].members.size());
      std::iota(ranks.begin(), ranks.end(), Rank{0});
      config_of({"", "", std::move(ranks)});
    } else {
      std::ranges::for_each(dump_.groups, [this](std::uint32_t number) { config_of(job_.groups[number]); });
    }
    out_.close_dict();
  }

  void config_of(const DumpGroup& group) {
    out_.text(group.name);
    out_.open_dict();
    text("name", group.name);
    text("desc", group.description);
    text("ranks", fmt::format("[{}]", fmt::join(group.members, ", ")));
    out_.close_dict();
  }

  void status() {
    out_.text("pg_status");
    out_.open_dict();
    for (const DumpStatus& counters : dump_.status) {
      out_.text(fmt::format("{}", id_of(counters.group)));
      out_.open_dict();
      counter("last_enqueued_collective",
              is_of_gloo() ? last_operation(counters.group, false) : counters.enqueued);
      counter("last_started_collective", counters.started);
      counter("last_completed_collective",
              is_of_gloo() ? last_operation(counters.group, true) : counters.completed);
      out_.close_dict();
    }
    out_.close_dict();
  }

  void stack(const check::DumpStack& frames) {
    out_.text("frames");
    out_.open_list();
    for (const check::DumpFrame& frame : frames) {
      out_.open_dict();
      text("name", frame.function);
      text("filename", frame.file);
      integer("line", frame.line);
      out_.close_dict();
    }
    out_.close_list();
  }

  void shapes(std::string_view key, const std::vector<std::vector<std::int64_t>>& tensors) {
    out_.text(key);
    out_.open_list();
    for (const std::vector<std::int64_t>& shape : tensors) {
      out_.open_list();
      for (const std::int64_t extent : shape) {
        out_.integer(extent);
      }
      out_.close_list();
    }
    out_.close_list();
  }

  void dtypes(std::string_view key, const std::vector<std::string>& names) {
    out_.text(key);
    out_.open_list();
    for (const std::string& name : names) {
      out_.text(name);
    }
    out_.close_list();
  }

  // The number of the last operation that was recorded or, with `is_over`, that has ended; -1 if there is
  // none.
  std::int64_t last_operation(std::uint32_t group, bool is_over) const {
    std::int64_t number = 0;
    std::int64_t last = -1;
    for (const DumpRecord& record : dump_.records) {
      if (record.group == group) {
        number += record.unrecorded + 1;
        last = !is_over || record.is_over() ? number : last;
      }
    }
    return last;
  }

  // The operations of a group are counted one by one, including the messages of a batch; the marker that closes a
  // batch repeats the last number.
  std::int64_t operation_number(const DumpRecord& record) {
    std::int64_t& count = operations_[record.group];
    count += record.unrecorded;
    return job_.calls[record.call].is_marker() ? count : ++count;
  }

  void entry(const DumpRecord& record, std::int64_t id) {
    const DumpCall& call = recorded(record.call);
    const DumpGroup& group = job_.groups[record.group];
    out_.open_dict();
    if (!is_json) {
      stack(job_.stacks[record.stack]);
    }
    integer("record_id", id);
    integer("pg_id", id_of(record.group));
    out_.text("process_group");
    out_.pair(group.name, group.description);
    text("thread_name", "python3");
    text("thread_id", "1");
    integer("collective_seq_id", record.collective_seq);
    integer("p2p_seq_id", record.p2p_seq);
    integer("op_id", operation_number(record));
    text("profiling_name", profiling_name(call));
    integer("time_created_ns", record.created_ns);
    shapes("input_sizes", call.inputs);
    dtypes("input_dtypes", call.input_dtypes);
    shapes("output_sizes", call.outputs);
    dtypes("output_dtypes", call.output_dtypes);
    progress(record);
    out_.close_dict();
  }

  const DumpCall& recorded(std::uint32_t number) {
    const DumpCall& call = job_.calls[number];
    return is_recorded_otherwise(call)
               ? recorded_otherwise_.try_emplace(number, as_recorded(call)).first->second
               : call;
  }

  void progress(const DumpRecord& record) {
    const bool is_of_gloo = job_.calls[record.call].is_of_gloo();
    text("state", is_of_gloo                                     ? "scheduled"
                  : record.state == DumpRecord::State::completed ? "completed"
                  : record.state == DumpRecord::State::started   ? "started"
                                                                 : "scheduled");
    time("time_discovered_started_ns", is_of_gloo ? 0 : record.started_ns);
    time("time_discovered_completed_ns", is_of_gloo ? 0 : record.completed_ns);
    boolean("retired", is_of_gloo ? record.is_over() : record.retired);
    integer("timeout_ms", record.timeout_ms);
    boolean("is_p2p", record.is_p2p);
    if (record.duration_ms >= 0) {
      out_.text("duration_ms");
      out_.real(record.duration_ms);
    }
  }

  const JobDump& job_;
  const RankDump& dump_;
  Out out_;
  std::map<std::uint32_t, std::int64_t> operations_;  // by group
  std::map<std::uint32_t, DumpCall> recorded_otherwise_;
};

}  // namespace

std::string write_dump_pickle(const JobDump& job, const RankDump& dump) {
  return DumpWriter<PickleWriter>(job, dump).write();
}

std::string write_dump_json(const JobDump& job, const RankDump& dump) {
  return DumpWriter<JsonWriter>(job, dump).write();
}

}  // namespace rollcall::traces
