#include "tests/conformance/call_lines.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include <nlohmann/json.hpp>

#include "sim/c10d/forwarding_backend.h"
#include "sim/c10d/rank_context.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::golden {
namespace {

std::filesystem::path data_folder(const std::string& folder, TorchRelease torch) {
  std::string release = "torch_" + std::string(traits_of(torch).name);
  std::ranges::replace(release, '.', '_');
  return std::filesystem::path(ROLLCALL_SOURCE_DIR) / "tests/data" / release / folder;
}

std::int64_t numel_of(const TensorList& tensors) {
  std::int64_t numel = 0;
  for (const Tensor& tensor : tensors) {
    numel += tensor.numel();
  }
  return numel;
}

class LineBackend final : public ForwardingBackend {
 public:
  LineBackend(Backend& inner, Lines& lines) : ForwardingBackend(inner), lines_(lines) {}

  Work issue(const Op& op) override {
    lines_.push_back(line_of(op).dump());
    return noted(op, inner().issue(op));
  }

  std::vector<Work> issue_batch(std::span<const Op> ops) override {
    lines_.push_back(nlohmann::json{{"op", "batch_isend_irecv"}, {"count", ops.size()}}.dump());
    for (const Op& op : ops) {
      lines_.push_back(line_of(op).dump());
    }
    std::vector<Work> works = inner().issue_batch(ops);
    for (std::size_t i = 0; i < works.size(); ++i) {
      noted(ops[i], works[i]);
    }
    return works;
  }

  void wait(const Work& work) override {
    const auto found = open_.find(key_of(work));
    if (found != open_.end() && found->second) {
      lines_.push_back(R"({"op":"wait"})");
      open_.erase(found);
    }
    inner().wait(work);
  }

  ProcessGroup manage(GroupCall call) override {
    if (call.op.kind == OpKind::new_group) {
      const RankList& ranks = call.ranks.front();  // empty: all
      lines_.push_back(
          nlohmann::json{{"op", "new_group"}, {"ranks", ranks.empty() ? members(world_group).ranks : ranks}}
              .dump());
    }
    const ProcessGroup made = inner().manage(std::move(call));
    if (made.is_member()) {
      groups_.emplace(made.id(), made);
    }
    return made;
  }

 private:
  using WorkKey = std::tuple<GroupId, std::int64_t, std::uint32_t>;
  static WorkKey key_of(const Work& work) { return {work.group(), work.seq(), work.message()}; }

  Work noted(const Op& op, const Work& work) {
    open_[key_of(work)] = op.async_op && is_point_to_point(op.kind);
    return work;
  }

  const GroupMembers& members(GroupId group) const {
    return group == world_group ? this_rank().world.members() : groups_.at(group).members();
  }

  nlohmann::json line_of(const Op& op) const {
    const GroupMembers& group = members(op.group);
    nlohmann::json line{{"op", row_of(op.kind).name}, {"group", group.ranks}};
    if (is_point_to_point(op.kind)) {
      line["peer"] = group.ranks[static_cast<std::size_t>(op.root)];
      line["tag"] = op.tag;
    } else if (has_root(op.kind)) {
      line["root"] = group.ranks[static_cast<std::size_t>(op.root)];
    }
    if (has_tensor(op.kind)) {
      line["dtype"] = to_string(op.dtype);
      const bool gives_nothing = op.kind == OpKind::scatter && op.rank != op.root;
      line["numel"] = gives_nothing                ? 0
                      : op.kind == OpKind::scatter ? numel_of(*op.tensors.inputs)
                                                   : op.tensors.input->numel;
      if (op.kind == OpKind::scatter) {
        line["out_numel"] = op.tensors.output->numel;
      }
      if (op.tensors.splits != nullptr && !op.tensors.splits->input.empty()) {
        line["input_split_sizes"] = op.tensors.splits->input;
        line["output_split_sizes"] = op.tensors.splits->output;
      }
    }
    return line;
  }

  Lines& lines_;
  std::map<GroupId, ProcessGroup> groups_;
  std::map<WorkKey, bool> open_;  // calls not waited for yet; true if asynchronous
};

}  // namespace

RecordedCalls read_recorded_calls(const std::string& folder, const std::string& name, TorchRelease torch) {
  std::ifstream file(data_folder(folder, torch) / (name + ".json"));
  const nlohmann::json whole = nlohmann::json::parse(file);
  RecordedCalls calls;
  calls.params = std::make_shared<nlohmann::json>(whole.at("params"));
  calls.world_size = whole.at("world_size");
  auto notes = std::make_shared<nlohmann::json>(whole.at("ranks"));
  for (nlohmann::json& rank : *notes) {
    calls.ranks.emplace_back();
    for (const nlohmann::json& call : rank.at("calls")) {
      calls.ranks.back().push_back(call.dump());
    }
    rank.erase("calls");
  }
  calls.notes = std::move(notes);
  return calls;
}

std::vector<std::string> recorded_call_cases(const std::string& folder, TorchRelease torch) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder(folder, torch))) {
    names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

std::unique_ptr<Backend> CallLines::around(Backend& inner) {
  return std::make_unique<LineBackend>(inner, ranks_[next_++]);
}

void CallLines::mark(const std::string& text) {
  ranks_[static_cast<std::size_t>(this_rank().rank)].push_back(nlohmann::json{{"mark", text}}.dump());
}

Report CallLines::run(const std::function<void(Rank)>& program, TorchRelease torch) {
  next_ = 0;
  return sim::run({.world_size = static_cast<Rank>(ranks_.size()),
                   .backend = "gloo",
                   .torch = torch,
                   .decorate = [this](Backend& inner) { return around(inner); },
                   .may_run_again = false},
                  program);
}

std::string to_text(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

}  // namespace rollcall::golden
