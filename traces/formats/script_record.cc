#include "traces/formats/script_record.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/core.h>

#include "traces/values/file_bytes.h"
#include "traces/values/json_value.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {
namespace {

constexpr std::size_t line_bytes_max = std::size_t{64} << 20;

std::string text_of(const Value& dict, std::string_view key) {
  return std::string(text_or_empty(find(dict, key)));
}

std::vector<std::int64_t> counts_of(const Value* list) {
  std::vector<std::int64_t> counts;
  const auto [items, size] = items_of(list);
  for (std::uint32_t i = 0; i < size; ++i) {
    counts.push_back(count_or(&items[i], 0));
  }
  return counts;
}

bool is_true(const Value& dict, std::string_view key) {
  const Value* value = find(dict, key);
  return value != nullptr && value->is(Value::Kind::boolean) && value->integer != 0;
}

std::optional<Rank> rank_of(const Value& dict, std::string_view key) {
  const Value* value = find(dict, key);
  if (value == nullptr || !value->is(Value::Kind::integer)) {
    return std::nullopt;
  }
  return static_cast<Rank>(std::clamp<std::int64_t>(value->integer, -1, ranks_max));
}

ScriptSite site_of(const Value* dict) {
  ScriptSite site;
  if (dict != nullptr && dict->is(Value::Kind::dict)) {
    site = {text_of(*dict, "file"),   count_or(find(*dict, "line"), 0), text_of(*dict, "function"),
            text_of(*dict, "module"), text_of(*dict, "reason"),         is_true(*dict, "shadow")};
  }
  return site;
}

class RankReader {
 public:
  ScriptRank read(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const bool is_whole = end < text.size();  // a killed process may leave half a line
      if (is_whole) {
        read_line(text.substr(begin, end - begin), begin);
      }
      begin = end + 1;
    }
    return std::move(rank_);
  }

 private:
  void read_line(std::string_view line, std::size_t offset) {
    arena_.reset();
    try {
      const Value value = read_json(line, arena_);
      if (value.is(Value::Kind::list)) {
        read_event(value);
      } else if (value.is(Value::Kind::dict)) {
        read_statement(value);
      }
    } catch (const BadFile& problem) {
      throw BadFile(offset + problem.offset, problem.what());
    }
  }

  void read_statement(const Value& value) {
    if (find(value, "rollcall_record") != nullptr) {
      read_header(value);
    } else if (find(value, "call") != nullptr) {
      if (count_or(find(value, "call"), -1) != static_cast<std::int64_t>(rank_.calls.size())) {
        throw BadFile(0, "calls are numbered from 0");
      }
      rank_.calls.push_back(script_call(value));
    } else if (const Value* init = find(value, "init")) {
      read_init(*init);
    } else if (const Value* site = find(value, "data_dependent")) {
      rank_.data_dependent.push_back(site_of(site));
    } else if (const Value* stack = find(value, "stack")) {
      read_stack(*stack);
      rank_.place = site_of(find(value, "site"));
    } else if (find(value, "end") != nullptr) {
      rank_.end = {end_of(text_of(value, "end")), text_of(value, "type"), text_of(value, "message"), 0,
                   site_of(find(value, "site"))};
    } else if (const Value* process = find(value, "process")) {
      read_process(*process);
    }
  }

  static ScriptEnd::How end_of(std::string_view word) {
    if (word == "finished" || word == "terminated") {
      return word == "finished" ? ScriptEnd::How::finished : ScriptEnd::How::terminated;
    }
    return ScriptEnd::How::raised;
  }

  void read_header(const Value& value) {
    if (count_or(find(value, "rollcall_record"), 0) != 1) {
      throw BadFile(0, "the record has a different version");
    }
    rank_.rank = static_cast<Rank>(count_or(find(value, "rank"), -1));
    rank_.world_size = static_cast<Rank>(count_or(find(value, "world_size"), 0));
    const bool exists = rank_.rank >= 0 && rank_.rank < rank_.world_size && rank_.world_size <= ranks_max;
    if (!exists) {
      throw BadFile(0, "the header does not name a rank of the job");
    }
    rank_.mode = text_of(value, "mode");
    rank_.torch = text_of(value, "torch");
    rank_.script = text_of(value, "script");
    rank_.folder = text_of(value, "folder");
  }

  // A job that is initialized again has ended one world, and goes on in a group that it has made.
  void read_init(const Value& init) {
    if (rank_.backend.empty()) {
      rank_.init_site = site_of(find(init, "site"));
    }
    rank_.backend = text_of(init, "backend");
    rank_.timeout_s = real_or(find(init, "timeout_s"), 0);
    std::erase_if(rank_.events, [this](const ScriptEvent& event) {
      const ScriptCall* call = event.calls.empty() ? nullptr : &rank_.calls[event.calls.front()];
      return call != nullptr && call->op == "destroy_process_group" && call->group == 0;
    });
  }

  void read_stack(const Value& stack) {
    rank_.stack.clear();
    const auto [frames, size] = items_of(&stack);
    for (std::uint32_t i = 0; i < size; ++i) {
      const auto [parts, count] = items_of(&frames[i]);
      if (count == 3) {
        rank_.stack.push_back({std::string(text_or_empty(&parts[0])), count_or(&parts[1], 0),
                               std::string(text_or_empty(&parts[2]))});
      }
    }
  }

  // What the script itself says of its end is more than what its process says.
  void read_process(const Value& process) {
    if (rank_.end.how != ScriptEnd::How::unknown) {
      return;
    }
    const Value* signal = find(process, "signal");
    rank_.end.how = signal != nullptr ? ScriptEnd::How::killed : ScriptEnd::How::exited;
    rank_.end.code = count_or(signal != nullptr ? signal : find(process, "exit"), 0);
  }

  void read_event(const Value& value) {
    const auto [parts, size] = items_of(&value);
    const std::string_view word = size == 0 ? std::string_view() : text_or_empty(&parts[0]);
    ScriptEvent event;
    if (word == "c" && size >= 2) {
      event.calls.push_back(known_call(&parts[1]));
      event.handle = size > 2 ? number_or(&parts[2], -1) : -1;
    } else if (word == "b" && size == 3) {
      event.kind = ScriptEvent::Kind::batch;
      event.handle = number_or(&parts[2], -1);
      const auto [calls, count] = items_of(&parts[1]);
      if (count == 0) {
        throw BadFile(0, "a batch has calls");
      }
      for (std::uint32_t i = 0; i < count; ++i) {
        event.calls.push_back(known_call(&calls[i]));
      }
    } else if ((word == "w" || word == "f") && size == 2) {
      event.kind = word == "w" ? ScriptEvent::Kind::wait : ScriptEvent::Kind::future;
      event.handle = number_or(&parts[1], -1);
    } else if (word == "x") {
      if (!rank_.events.empty()) {
        rank_.events.back().has_raised = true;
      }
      return;
    } else if (word == "r") {
      event.kind = ScriptEvent::Kind::returned;
    } else {
      return;
    }
    rank_.events.push_back(std::move(event));
  }

  std::uint32_t known_call(const Value* number) const {
    const std::int64_t call = number_or(number, -1);
    if (call < 0 || call >= static_cast<std::int64_t>(rank_.calls.size())) {
      throw BadFile(0, fmt::format("call {} was not described", call));
    }
    return static_cast<std::uint32_t>(call);
  }

  Arena arena_{line_bytes_max};
  ScriptRank rank_;
};

}  // namespace

ScriptCall script_call(const Value& description) {
  ScriptCall call;
  call.op = text_of(description, "op");
  call.group = count_or(find(description, "group"), 0);
  call.given = counts_of(find(description, "numel"));
  call.filled = counts_of(find(description, "out_numel"));
  call.dtype = text_of(description, "dtype");
  call.reduce_op = text_of(description, "reduce");
  call.root = rank_of(description, "root");
  call.peer = rank_of(description, "peer");
  call.tag = static_cast<std::int32_t>(number_or(find(description, "tag"), 0));
  const auto [splits, count] = items_of(find(description, "splits"));
  if (count == 2) {
    call.output_splits = counts_of(&splits[0]);
    call.input_splits = counts_of(&splits[1]);
  }
  call.ranks = members_of(find(description, "ranks"));
  call.wait_all_ranks = is_true(description, "wait_all_ranks");
  call.timeout_s = real_or(find(description, "timeout"), 0);
  call.site = site_of(find(description, "site"));
  if (call.op.empty()) {
    throw BadFile(0, "a call without a kind");
  }
  return call;
}

ScriptRank read_script_rank(const std::string& text) { return RankReader().read(text); }

ScriptRecord read_script_record(const std::string& folder) {
  namespace fs = std::filesystem;
  ScriptRecord record;
  FileBytes bytes;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("rank") || !name.ends_with(".jsonl")) {
      continue;
    }
    try {
      ScriptRank rank = read_script_rank(std::string(bytes.read(entry.path())));
      if (rank.rank >= 0) {
        record.ranks.push_back(std::move(rank));
      }
    } catch (const BadFile& problem) {
      record.problems.push_back({entry.path(), fmt::format("byte {}: {}", problem.offset, problem.what())});
    }
  }
  std::ranges::sort(record.ranks, {}, &ScriptRank::rank);
  std::ranges::sort(record.problems, {}, &FileProblem::file);
  return record;
}

}  // namespace rollcall::traces
