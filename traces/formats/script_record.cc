#include "traces/formats/script_record.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string_view>

#include <fmt/core.h>

#include "sim/c10d/backend_traits.h"
#include "sim/tensor/tensor.h"
#include "traces/values/file_bytes.h"
#include "traces/values/json_value.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t line_bytes_max = std::size_t{64} << 20;

std::string text_of(const Value& dict, std::string_view key) {
  return std::string(text_or_empty(find(dict, key)));
}

// Throws BadFile unless there are none, or one for each of the tensors, which have `counts` elements.
std::vector<std::vector<std::int64_t>> checked_shapes(const Value* list,
                                                      const std::vector<std::int64_t>& counts) {
  std::vector<std::vector<std::int64_t>> shapes = shapes_of(list);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::int64_t numel = 1;
    const bool fits = std::ranges::none_of(
        shapes[i], [&numel](std::int64_t each) { return __builtin_mul_overflow(numel, each, &numel); });
    if (!fits || i >= counts.size() || numel != counts[i] || shapes[i].size() > Shape::dimensions_max) {
      throw BadFile(0, "a tensor whose shape does not have as many elements as the tensor");
    }
  }
  if (!shapes.empty() && shapes.size() != counts.size()) {
    throw BadFile(0, "shapes of some tensors only");
  }
  return shapes;
}

bool is_true(const Value* value) {
  return value != nullptr && value->is(Value::Kind::boolean) && value->integer != 0;
}

std::optional<Rank> rank_of(const Value& dict, std::string_view key) {
  const Value* value = find(dict, key);
  if (value == nullptr || !value->is(Value::Kind::integer)) {
    return std::nullopt;
  }
  return static_cast<Rank>(std::clamp<std::int64_t>(value->integer, -1, ranks_max));
}

ScriptEnd::How end_of(std::string_view word) {
  return word == "finished"     ? ScriptEnd::How::finished
         : word == "terminated" ? ScriptEnd::How::terminated
                                : ScriptEnd::How::raised;
}

ScriptEnd script_end(const Value& value) {
  return {end_of(text_of(value, "end")), text_of(value, "type"), text_of(value, "message"), 0,
          script_site(find(value, "site"))};
}

ScriptKernel script_kernel(const Value& value) {
  const std::string phase = text_of(value, "phase");
  return {text_of(value, "kind"),
          text_of(value, "dtype"),
          std::max(0.0, real_or(find(value, "flops"), 0)),
          std::max(0.0, real_or(find(value, "bytes"), 0)),
          phase == "backward"    ? ScriptKernel::Phase::backward
          : phase == "optimizer" ? ScriptKernel::Phase::optimizer
                                 : ScriptKernel::Phase::forward,
          count_or(find(value, "count"), 1),
          count_or(find(value, "time_ns"), 0)};
}

ScriptMemory script_memory(const Value& value) {
  ScriptMemory memory;
  memory.peak = count_or(find(value, "peak"), 0);
  if (const Value* parts = find(value, "parts"); parts != nullptr && parts->is(Value::Kind::dict)) {
    for (const char* part :
         {"parameters", "gradients", "optimizer", "buffers", "communication", "activations"}) {
      if (const std::int64_t bytes = count_or(find(*parts, part), 0); bytes > 0) {
        memory.parts.emplace_back(part, bytes);
      }
    }
    std::ranges::stable_sort(memory.parts, std::ranges::greater(),
                             [](const auto& part) { return part.second; });
  }
  for (const Value& holder : items_of(find(value, "holders"))) {
    if (holder.is(Value::Kind::dict)) {
      memory.holders.push_back({count_or(find(holder, "bytes"), 0), count_or(find(holder, "count"), 0),
                                text_of(holder, "part"), script_site(find(holder, "site"))});
    }
  }
  return memory;
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
    // The wait of a thread that others did not stop for: nothing that the record has comes after it.
    for (const OpenWait& open : open_waits_) {
      rank_.events.push_back(wait_for(open.handle));
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
    } else if (const Value* handle = find(value, "touch")) {
      ScriptEvent event;
      event.kind = ScriptEvent::Kind::touch;
      event.handle = number_or(handle, -1);
      event.touch = static_cast<std::uint32_t>(rank_.touches.size());
      rank_.touches.push_back({text_of(value, "access") == "write", text_of(value, "of") == "filled",
                               script_site(find(value, "site"))});
      rank_.events.push_back(std::move(event));
    } else if (const Value* kernel = find(value, "kernel")) {
      if (count_or(kernel, -1) != static_cast<std::int64_t>(rank_.kernels.size())) {
        throw BadFile(0, "kernels are numbered from 0");
      }
      rank_.kernels.push_back(script_kernel(value));
    } else if (const Value* memory = find(value, "memory")) {
      rank_.memory = script_memory(*memory);
    } else if (const Value* site = find(value, "data_dependent")) {
      rank_.data_dependent.push_back(script_site(site));
    } else if (const Value* error = find(value, "handles")) {
      read_handled(*error);
    } else if (find(value, "threads") != nullptr) {
      rank_.calls_in_threads = true;
    } else if (find(value, "begins_again") != nullptr) {
      rank_.begins_again = true;
    } else if (const Value* stack = find(value, "stack")) {
      read_stack(*stack);
      rank_.place = script_site(find(value, "site"));
      rank_.waits = is_true(find(value, "waits"));
    } else if (find(value, "step") != nullptr) {
      rank_.trains_from = rank_.events.size();
    } else if (const Value* updated = find(value, "updated")) {
      rank_.training = {count_or(find(*updated, "parameters"), 0), count_or(find(*updated, "steps"), 0),
                        text_of(*updated, "digest"), script_site(find(*updated, "site")),
                        std::string(text_or_empty(find(*updated, "began")))};
      for (const Value& replica : items_of(find(*updated, "replicas"))) {
        rank_.training.replicas.push_back({members_of(find(replica, "ranks")),
                                           count_or(find(replica, "parameters"), 0),
                                           text_of(replica, "digest"), script_site(find(replica, "site"))});
      }
    } else if (find(value, "end") != nullptr) {
      rank_.end = script_end(value);
    } else if (const Value* process = find(value, "process")) {
      read_process(*process);
    }
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
    rank_.ranks_per_host =
        static_cast<Rank>(std::clamp<std::int64_t>(count_or(find(value, "ranks_per_host"), 0), 0, ranks_max));
    rank_.mode = text_of(value, "mode");
    rank_.torch = text_of(value, "torch");
    rank_.detail = text_of(value, "debug") == "DETAIL";
    rank_.script = text_of(value, "script");
    rank_.folder = root_of_places(text_of(value, "folder"));
  }

  // A job that is initialized again has ended one world and continues in a group that it has made.
  void read_init(const Value& init) {
    if (rank_.backend.empty()) {
      rank_.init_site = script_site(find(init, "site"));
    }
    rank_.backend = text_of(init, "backend");
    rank_.is_eager = is_true(find(init, "eager"));
    rank_.timeout_s = real_or(find(init, "timeout_s"), 0);
    std::erase_if(rank_.events, [this](const ScriptEvent& event) {
      const ScriptCall* call = event.calls.empty() ? nullptr : &rank_.calls[event.calls.front()];
      return call != nullptr && call->op == "destroy_process_group" && call->group == 0;
    });
  }

  // Null: no longer any.
  void read_handled(const Value& error) {
    const Value* site = find(error, "site");
    is_handling_ = site != nullptr;
    if (is_handling_) {
      rank_.handled.push_back({text_of(error, "type"), text_of(error, "message"), script_site(site)});
    }
  }

  // The last time that a call is made counts.
  void note_handling(const ScriptEvent& event) {
    if (rank_.handled.empty()) {
      return;
    }
    for (const std::uint32_t call : event.calls) {
      rank_.handling.erase(call);
      if (is_handling_) {
        rank_.handling.emplace(call, rank_.handled.size() - 1);
      }
    }
  }

  void read_stack(const Value& stack) {
    rank_.stack.clear();
    for (const Value& frame : items_of(&stack)) {
      const std::span<const Value> parts = items_of(&frame);
      if (parts.size() == 3) {
        rank_.stack.push_back({std::string(text_or_empty(&parts[0])), count_or(&parts[1], 0),
                               std::string(text_or_empty(&parts[2]))});
      }
    }
  }

  // The script's own account of its end says more than its process does.
  void read_process(const Value& process) {
    const bool has_said = rank_.end.how != ScriptEnd::How::unknown || !rank_.stack.empty();
    if (has_said) {
      return;
    }
    const Value* signal = find(process, "signal");
    rank_.end.how = signal != nullptr ? ScriptEnd::How::killed : ScriptEnd::How::exited;
    rank_.end.code = count_or(signal != nullptr ? signal : find(process, "exit"), 0);
  }

  void read_event(const Value& value) {
    const std::span<const Value> parts = items_of(&value);
    const std::size_t size = parts.size();
    const std::string_view word = size == 0 ? std::string_view() : text_or_empty(&parts[0]);
    ScriptEvent event;
    if (word == "c" && size >= 2) {
      event.calls.push_back(known_call(&parts[1]));
      event.handle = size > 2 ? number_or(&parts[2], -1) : -1;
      note_overlap(event.calls.front());
    } else if (word == "b" && size == 3) {
      event.kind = ScriptEvent::Kind::batch;
      event.handle = number_or(&parts[2], -1);
      for (const Value& call : items_of(&parts[1])) {
        event.calls.push_back(known_call(&call));
      }
      if (event.calls.empty()) {
        throw BadFile(0, "a batch has calls");
      }
    } else if (word == "o" && size == 2) {
      const std::int64_t handle = number_or(&parts[1], -1);
      open_waits_.push_back({handle, collective_of(handle)});
      return;
    } else if ((word == "w" || word == "f" || word == "d") && size == 2) {
      event.kind = word == "w"   ? ScriptEvent::Kind::wait
                   : word == "f" ? ScriptEvent::Kind::future
                                 : ScriptEvent::Kind::drop;
      event.handle = number_or(&parts[1], -1);
      close_wait(event.handle);
    } else if (word == "k" && size == 2) {
      event.kind = ScriptEvent::Kind::kernel;
      event.kernel = known(&parts[1], rank_.kernels.size(), "kernel");
    } else if (word == "s" && size == 2) {
      event.kind = ScriptEvent::Kind::stream;
      event.stream = count_or(&parts[1], 0);
    } else if ((word == "e" || word == "v" || word == "y") && size == 3) {
      event.kind = word == "e"   ? ScriptEvent::Kind::record_event
                   : word == "v" ? ScriptEvent::Kind::wait_event
                                 : ScriptEvent::Kind::wait_stream;
      event.awaited = count_or(&parts[1], 0);
      event.stream = count_or(&parts[2], 0);
    } else if (word == "x") {
      read_exception(parts);
      return;
    } else if (word == "r") {
      event.kind = ScriptEvent::Kind::returned;
    } else {
      return;
    }
    note_handling(event);
    rank_.events.push_back(std::move(event));
  }

  // A handle that a thread waits for, and has not yet got.
  struct OpenWait {
    std::int64_t handle = -1;
    std::optional<std::uint32_t> collective;  // of ScriptRank::calls
  };

  // False if no thread waits for it.
  bool close_wait(std::int64_t handle) {
    return std::erase_if(open_waits_, [handle](const OpenWait& open) { return open.handle == handle; }) > 0;
  }

  // The collective that was issued with this handle. Null for messages and batches, and for calls of long ago.
  std::optional<std::uint32_t> collective_of(std::int64_t handle) const {
    constexpr std::size_t look_back_max = 4096;
    const auto end =
        rank_.events.rbegin() + static_cast<std::ptrdiff_t>(std::min(rank_.events.size(), look_back_max));
    const auto issued = std::find_if(rank_.events.rbegin(), end, [handle](const ScriptEvent& event) {
      return event.handle == handle && event.kind == ScriptEvent::Kind::call;
    });
    return issued == end || is_message(issued->calls.front()) ? std::nullopt
                                                              : std::optional(issued->calls.front());
  }

  bool is_message(std::uint32_t call) const {
    return rank_.calls[call].op == "send" || rank_.calls[call].op == "recv";
  }

  // Notes the first call that a thread makes while another waits in one on the same group.
  void note_overlap(std::uint32_t made) {
    if (rank_.overlap || open_waits_.empty() || is_message(made)) {
      return;
    }
    const ScriptCall& second = rank_.calls[made];
    for (const auto& [handle, waiting] : open_waits_) {
      if (waiting && rank_.calls[*waiting].group == second.group &&
          rank_.calls[*waiting].is_aside != second.is_aside) {
        rank_.overlap = {*waiting, made};
        return;
      }
    }
  }

  static ScriptEvent wait_for(std::int64_t handle) {
    ScriptEvent event;
    event.kind = ScriptEvent::Kind::wait;
    event.handle = handle;
    return event;
  }

  // ["x", type, message, refused, last resort, handle]: the exception that the previous call or wait raised, or a
  // thread's wait for the handle. Older records say only that it raised.
  void read_exception(std::span<const Value> parts) {
    const std::int64_t handle = parts.size() > 5 ? number_or(&parts[5], -1) : -1;
    if (close_wait(handle)) {
      rank_.events.push_back(wait_for(handle));
    }
    if (rank_.events.empty()) {
      return;
    }
    ScriptEvent& raised = rank_.events.back();
    raised.has_raised = true;
    if (parts.size() >= 4) {
      raised.type = text_or_empty(&parts[1]);
      raised.message = text_or_empty(&parts[2]);
      raised.was_refused = is_true(&parts[3]);
      raised.was_last_resort = parts.size() > 4 && is_true(&parts[4]);
    }
    const auto call = std::find_if(rank_.events.rbegin(), rank_.events.rend(), [&](const ScriptEvent& event) {
      return event.handle == raised.handle && !event.calls.empty();
    });
    if (raised.was_refused && call != rank_.events.rend()) {
      call->was_refused = true;
    }
  }

  std::uint32_t known_call(const Value* number) const { return known(number, rank_.calls.size(), "call"); }

  // Returns a number below `count`, the size of the list of what was described so far. Throws BadFile if there is none.
  static std::uint32_t known(const Value* number, std::size_t count, const char* what) {
    const std::int64_t index = number_or(number, -1);
    if (index < 0 || index >= static_cast<std::int64_t>(count)) {
      throw BadFile(0, fmt::format("{} {} was not described", what, index));
    }
    return static_cast<std::uint32_t>(index);
  }

  Arena arena_{line_bytes_max};
  ScriptRank rank_;
  std::vector<OpenWait> open_waits_;
  bool is_handling_ = false;  // the last of the exceptions in rank_.handled
};

}  // namespace

ScriptSite script_site(const Value* description) {
  ScriptSite site;
  if (description != nullptr && description->is(Value::Kind::dict)) {
    site = {text_of(*description, "file"),     count_or(find(*description, "line"), 0),
            text_of(*description, "function"), text_of(*description, "module"),
            text_of(*description, "reason"),   is_true(find(*description, "shadow"))};
  }
  return site;
}

bool is_of_gpu(const ScriptEvent& event) { return event.kind >= ScriptEvent::Kind::kernel; }

const char* to_string(ScriptKernel::Phase phase) {
  constexpr std::array<const char*, 3> words = {"forward", "backward", "optimizer"};
  return words[static_cast<std::size_t>(phase)];
}

Rank local_rank(const ScriptRank& rank) {
  return rank.ranks_per_host > 0 ? rank.rank % rank.ranks_per_host : rank.rank;
}

bool is_own_device(const std::string& device, std::string_view backend, Rank local_rank) {
  const BackendTraits* traits = find_backend_traits(backend);
  const bool on_gpu = traits != nullptr && traits->device == DeviceType::cuda;
  return device == (on_gpu ? fmt::format("cuda:{}", local_rank) : "cpu");
}

ScriptCall script_call(const Value& description) {
  ScriptCall call;
  call.op = text_of(description, "op");
  call.group = count_or(find(description, "group"), 0);
  call.given = counts_of(find(description, "numel"));
  call.filled = counts_of(find(description, "out_numel"));
  call.given_shapes = checked_shapes(find(description, "shapes"), call.given);
  call.filled_shapes = checked_shapes(find(description, "out_shapes"), call.filled);
  call.dtype = text_of(description, "dtype");
  call.device = text_of(description, "device");
  call.reduce_op = text_of(description, "reduce");
  call.is_aside = is_true(find(description, "aside"));
  call.factor = real_or(find(description, "factor"), 1);
  call.root = rank_of(description, "root");
  call.peer = rank_of(description, "peer");
  call.tag = static_cast<std::int32_t>(number_or(find(description, "tag"), 0));
  const std::span<const Value> splits = items_of(find(description, "splits"));
  if (splits.size() == 2) {
    call.output_splits = counts_of(&splits[0]);
    call.input_splits = counts_of(&splits[1]);
  }
  call.ranks = members_of(find(description, "ranks"));
  call.parent = count_or(find(description, "parent"), 0);
  call.parts = shapes_of(find(description, "parts"));
  call.is_local = is_true(find(description, "local"));
  call.is_on_gloo = is_true(find(description, "on_gloo"));
  call.wait_all_ranks = is_true(find(description, "wait_all_ranks"));
  call.timeout_s = real_or(find(description, "timeout"), 0);
  call.site = script_site(find(description, "site"));
  if (call.op.empty()) {
    throw BadFile(0, "a call without a kind");
  }
  return call;
}

ScriptEnd last_script_end(const std::string& path) {
  constexpr std::int64_t end_bytes_max = std::int64_t{64} << 10;  // a message and a place are shorter
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::int64_t size = in.tellg();
  in.seekg(std::max<std::int64_t>(size - end_bytes_max, 0));
  ScriptEnd end;
  Arena arena(line_bytes_max);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(R"({"end":)")) {
      arena.reset();
      end = script_end(read_json(line, arena));
    }
  }
  return end;
}

ScriptRank read_script_rank(const std::string& text) { return RankReader().read(text); }

std::string root_of_places(const std::string& folder) {
  std::error_code missing;
  for (fs::path root = folder; !root.empty(); root = root.parent_path()) {
    if (fs::exists(root / ".git", missing)) {
      return root.string();
    }
    if (root == root.root_path()) {
      break;
    }
  }
  return folder;
}

std::string place_text(const ScriptRank& rank, const ScriptSite& site) {
  if (site.line == 0) {
    return {};
  }
  const std::string folder = rank.folder + "/";
  const bool is_inside = site.file.starts_with(folder);
  return fmt::format("{}:{}", is_inside ? site.file.substr(folder.size()) : site.file, site.line);
}

ScriptRecord read_script_record(const std::string& folder) {
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
