#include "sim/train/checkpoint.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/groups.h"
#include "sim/c10d/objects.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/warnings.h"
#include "sim/torch/torch_traits.h"
#include "sim/train/checkpoint_files.h"

namespace rollcall::checkpoint {
namespace {

constexpr const char* error_key = "__error__";

Object integers(const Shape& shape) {
  ObjectList list;
  for (const std::int64_t size : shape.sizes()) {
    list.emplace_back(size);
  }
  return Object::list(std::move(list));
}

const Object* find(const Object& object, std::string_view key) {
  if (const auto* dict = std::get_if<Object::Dict>(&object.value())) {
    const auto found = std::ranges::find(*dict, key, &std::pair<std::string, Object>::first);
    return found == dict->end() ? nullptr : &found->second;
  }
  return nullptr;
}

// Empty if there is none of this type.
template <typename T>
T value_at(const Object& object, std::string_view key) {
  const Object* const value = find(object, key);
  const auto* found = value != nullptr ? std::get_if<T>(&value->value()) : nullptr;
  return found != nullptr ? *found : T();
}

std::string text_at(const Object& object, std::string_view key) { return value_at<std::string>(object, key); }

// api.py, _wrap_exception.
Object wrapped(const Error& error) {
  return Object::dict({{error_key, error.type()}, {"message", error.what()}});
}

// The errors that ranks sent, by rank.
using Failures = std::map<Rank, std::string>;

Failures failures_in(const ObjectList& results) {
  Failures failures;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    if (const std::string type = text_at(results[rank], error_key); !type.empty()) {
      failures[static_cast<Rank>(rank)] = fmt::format("{}: {}", type, text_at(results[rank], "message"));
    }
  }
  return failures;
}

// api.py, CheckpointException.__str__, without the lines of the tracebacks.
std::string text_of(const Failures& failures) {
  std::vector<Rank> ranks;
  std::string errors;
  for (const auto& [rank, error] : failures) {
    ranks.push_back(rank);
    errors += fmt::format("Traceback (most recent call last): (RANK {})\n{}\n", rank, error);
  }
  return fmt::format("CheckpointException ranks:dict_keys([{}])\n{}", fmt::join(ranks, ", "), errors);
}

Error exception(const std::string& text) { return {"CheckpointException", text}; }

// utils.py, _DistWrapper: object collectives that also carry errors.
class Together {
 public:
  Together(const CheckpointOptions& options, Site site)
      : group_(options.group ? options.group : world()), alone_(options.no_dist), site_(site) {
    const bool is_translated = !this_rank().torch->checkpoint_coordinator_is_global;
    coordinator_ = is_translated ? get_global_rank(group_, 0) : 0;
  }

  Rank rank() const { return alone_ ? 0 : group_.rank(); }
  Rank size() const { return alone_ ? 1 : group_.size(); }

  // Sends the result of `map` to the coordinator; each rank gets its part of what `reduce` makes of all results.
  Object reduce_scatter(const std::function<Object()>& map,
                        const std::function<ObjectList(const ObjectList&)>& reduce) const {
    const ObjectList all = gather(attempt(map));
    ObjectList results;
    if (is_coordinator()) {
      const Failures failures = failures_in(all);
      results = failures.empty()
                    ? reduce(all)
                    : ObjectList(static_cast<std::size_t>(size()), wrapped(exception(text_of(failures))));
    }
    if (alone_) {
      return checked(results.front());
    }
    ObjectList own(1);
    scatter_object_list(own, results, coordinator_, group_, site_);
    return checked(own.front());
  }

  // The same, but all ranks get the same result.
  Object all_reduce(const std::function<Object()>& map,
                    const std::function<Object(const ObjectList&)>& reduce) const {
    const ObjectList all = gather(attempt(map));
    ObjectList result(1);
    if (is_coordinator()) {
      const Failures failures = failures_in(all);
      result.front() = failures.empty() ? reduce(all) : wrapped(exception(text_of(failures)));
    }
    if (!alone_) {
      broadcast_object_list(result, coordinator_, group_, site_);
    }
    return checked(result.front());
  }

  void all_gather(const std::function<Object()>& map) const {
    ObjectList all{attempt(map)};
    if (!alone_) {
      const Object own = std::exchange(all.front(), Object());
      all.resize(static_cast<std::size_t>(size()));
      all_gather_object(all, own, group_, site_);
    }
    if (const Failures failures = failures_in(all); !failures.empty()) {
      throw exception(text_of(failures));
    }
  }

 private:
  bool is_coordinator() const { return rank() == 0; }

  static Object attempt(const std::function<Object()>& map) try { return map(); } catch (const Error& error) {
    return wrapped(error);
  }

  ObjectList gather(Object own) const {
    if (alone_) {
      return {std::move(own)};
    }
    ObjectList all(is_coordinator() ? static_cast<std::size_t>(size()) : 0);
    gather_object(own, is_coordinator() ? &all : nullptr, coordinator_, group_, site_);
    return all;
  }

  static Object checked(Object result) {
    if (text_at(result, error_key) == "CheckpointException") {
      throw exception(text_at(result, "message"));
    }
    return result;
  }

  ProcessGroup group_;
  bool alone_;
  Rank coordinator_ = 0;  // global
  Site site_;
};

void require_checkpoints(const char* function) {
  if (!this_rank().torch->has_checkpoint_save) {
    raise(Error("AttributeError",
                fmt::format("module 'torch.distributed.checkpoint' has no attribute '{}'", function)),
          {});
  }
}

CheckpointFiles& files() {
  expects(this_rank().files != nullptr, "a run has a file system");
  return *this_rank().files;
}

// planner.py, WriteItem.
Object write_item(const Entry& entry) {
  const Object size = integers(entry.value.shape());
  return Object::dict(
      {{"index", Object::dict({{"fqn", entry.name}, {"index", Object()}, {"offset", Object::list({0})}})},
       {"type", entry.is_shard ? 2 : 1},
       {"bytes_io_data", Object()},
       {"tensor_data",
        Object::dict(
            {{"chunk", Object::dict({{"offsets", Object::list({0})}, {"sizes", size}})},
             {"properties", Object::list({std::string(to_string(entry.value.dtype())), false, false})},
             {"size", size},
             {"bytes", static_cast<std::int64_t>(size_of(entry.value.dtype())) * entry.value.numel()}})}});
}

std::string name_of(const Object& item) { return text_at(*find(item, "index"), "fqn"); }

std::int64_t bytes_of(const Object& item) {
  return std::get<std::int64_t>(find(*find(item, "tensor_data"), "bytes")->value());
}

bool is_shard(const Object& item) { return std::get<std::int64_t>(find(item, "type")->value()) == 2; }

Object plan_of(ObjectList items, const Object& prefix) {
  return Object::dict({{"items", Object::list(std::move(items))},
                       {"storage_data", prefix},
                       {"planner_data", Object()},
                       {"usable", true}});
}

// _dedup_save_plans.py: of the ranks that have a tensor, the one with the least to write writes it.
ObjectList without_duplicates(const ObjectList& plans) {
  std::vector<std::string> names;  // in the order of the plans
  std::map<std::string, std::vector<std::size_t>> ranks_of;
  std::map<std::string, std::int64_t> sizes;
  std::vector<ObjectList> items;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    items.push_back(value_at<ObjectList>(plans[rank], "items"));
    for (const Object& item : items.back()) {
      const std::string name = name_of(item);
      if (!is_shard(item) && !ranks_of.contains(name)) {
        names.push_back(name);
      }
      if (!is_shard(item)) {
        ranks_of[name].push_back(rank);
        sizes[name] = bytes_of(item);
      }
    }
  }
  std::vector<std::int64_t> load(plans.size(), 0);
  std::map<std::string, std::size_t> writer;
  for (const std::string& name : names) {
    const std::vector<std::size_t>& ranks = ranks_of[name];
    const std::size_t chosen =
        *std::ranges::min_element(ranks, {}, [&](std::size_t rank) { return load[rank]; });
    load[chosen] += std::max<std::int64_t>(sizes[name], 1);
    writer[name] = chosen;
  }
  ObjectList result;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    std::erase_if(items[rank],
                  [&](const Object& item) { return !is_shard(item) && writer[name_of(item)] != rank; });
    result.push_back(plan_of(std::move(items[rank]), Object::dict({{"prefix", fmt::format("__{}_", rank)}})));
  }
  return result;
}

// What a rank has written, for the metadata.
Object write_results(const Object& plan) {
  ObjectList results;
  for (const Object& item : value_at<ObjectList>(plan, "items")) {
    results.push_back(Object::dict({{"index", *find(item, "index")},
                                    {"size_in_bytes", bytes_of(item)},
                                    {"storage_data", *find(plan, "storage_data")}}));
  }
  return Object::list(std::move(results));
}

void write(const StateDict& state, const Object& plan, Rank rank, SavedState& saved) {
  for (const Entry& entry : state) {
    saved[entry.name].parts[rank] = entry.value.clone();
  }
  for (const Object& item : value_at<ObjectList>(plan, "items")) {
    if (!is_shard(item)) {
      SavedTensor& tensor = saved[name_of(item)];
      tensor.written = tensor.parts.at(rank);
    }
  }
}

void finish(const std::string& checkpoint_id) {
  SavedState& finished = files().by_id[checkpoint_id];
  for (auto& [name, tensor] : files().unfinished[checkpoint_id]) {
    SavedTensor& kept = finished[name];
    kept.written = tensor.written ? tensor.written : kept.written;
    for (auto& [rank, part] : tensor.parts) {
      kept.parts[rank] = part;
    }
  }
  files().unfinished.erase(checkpoint_id);
}

std::string shape_text(const Shape& shape) {
  return fmt::format("torch.Size([{}])", fmt::join(shape.sizes(), ", "));
}

const SavedState& open(const std::string& checkpoint_id) {
  const auto found = files().by_id.find(checkpoint_id);
  if (found != files().by_id.end()) {
    return found->second;
  }
  const std::string missing = "[Errno 2] No such file or directory: ";
  const std::string global = fmt::format("{}'{}/.metadata'", missing, checkpoint_id);
  if (!this_rank().torch->checkpoint_looks_for_rank_metadata) {
    throw Error("FileNotFoundError", global);
  }
  throw AssertionError(
      fmt::format("metadata is None; global metadata read failed: {}; rank local metadata read "
                  "failed: {}'{}/__{}.metadata'",
                  global, missing, checkpoint_id, this_rank().rank));
}

const Tensor& saved_for(const Entry& entry, const SavedState& saved, Rank rank) {
  const auto found = saved.find(entry.name);
  if (found == saved.end()) {
    throw RuntimeError(fmt::format("Missing key in checkpoint state_dict: {}.", entry.name));
  }
  const SavedTensor& tensor = found->second;
  const auto own = tensor.parts.find(rank);
  if ((entry.is_shard || !tensor.written) && own == tensor.parts.end()) {
    throw NotImplementedError(
        "rollcall: a checkpoint is loaded by the ranks that saved it: resharding is not simulated");
  }
  return entry.is_shard || !tensor.written ? own->second : tensor.written;
}

// default_planner.py, create_default_local_load_plan.
Object load_plan(const StateDict& state, const SavedState& saved, Rank rank) {
  ObjectList items;
  for (const Entry& entry : state) {
    const Tensor& tensor = saved_for(entry, saved, rank);
    if (!(tensor.shape() == entry.value.shape())) {
      throw ValueError(fmt::format("Size mismatch between saved {} and current: {} for {}",
                                   shape_text(tensor.shape()), shape_text(entry.value.shape()), entry.name));
    }
    const Object index = Object::dict({{"fqn", entry.name}, {"index", 0}, {"offset", Object::list({0})}});
    items.push_back(Object::dict({{"type", 1},
                                  {"dest_index", index},
                                  {"dest_offsets", Object::list({0})},
                                  {"storage_index", index},
                                  {"storage_offsets", Object::list({0})},
                                  {"lengths", integers(tensor.shape())}}));
  }
  return plan_of(std::move(items), Object());
}

// state_dict_loader.py of 2.6.
void compare_keys(const StateDict& state, const CheckpointOptions& options, Site site) {
  std::vector<std::string> keys;
  for (const Entry& entry : state) {
    keys.push_back(entry.name);
  }
  const ProcessGroup group = options.group ? options.group : world();
  ObjectList all(static_cast<std::size_t>(group.size()));
  all_gather_object(all, Object::list(ObjectList(keys.begin(), keys.end())), group, site);
  std::vector<std::string> theirs;
  for (const Object& list : all) {
    const auto* const own = std::get_if<ObjectList>(&list.value());
    for (const Object& key : own != nullptr ? *own : ObjectList()) {
      theirs.push_back(std::get<std::string>(key.value()));
    }
  }
  std::ranges::sort(keys);
  std::ranges::sort(theirs);
  theirs.erase(std::ranges::unique(theirs).begin(), theirs.end());
  if (keys != theirs) {
    warn(
        "UserWarning: Detected mismatched keys in state dict after all gather! This behavior is unsupported "
        "and may cause errors may cause errors.");
  }
}

}  // namespace

void save(const StateDict& state, const std::string& checkpoint_id, const CheckpointOptions& options,
          Site site) {
  require_checkpoints("save");
  const Together together(options, site);
  const auto local_plan = [&] {
    ObjectList items;
    for (const Entry& entry : state) {
      items.push_back(write_item(entry));
    }
    return plan_of(std::move(items), Object());
  };
  const Object plan = together.reduce_scatter(local_plan, without_duplicates);
  const auto write_data = [&] {
    write(state, plan, this_rank().rank, files().unfinished[checkpoint_id]);
    return write_results(plan);
  };
  const auto write_metadata = [&](const ObjectList& results) {
    finish(checkpoint_id);
    return Object::dict({{"state_dict_metadata", plan},
                         {"planner_data", Object()},
                         {"storage_data", Object::list(results)},
                         {"storage_meta", Object::dict({{"checkpoint_id", checkpoint_id}})}});
  };
  together.all_reduce(write_data, write_metadata);
  finish(checkpoint_id);  // for ranks that are processes, and have written to files of their own
}

void load(const StateDict& state, const std::string& checkpoint_id, const CheckpointOptions& options,
          Site site) {
  require_checkpoints("load");
  if (this_rank().torch->checkpoint_load_gathers_keys && !options.no_dist) {
    compare_keys(state, options, site);
  }
  const Together together(options, site);
  const Rank rank = this_rank().rank;
  together.reduce_scatter([&] { return load_plan(state, open(checkpoint_id), rank); },
                          [](const ObjectList& plans) { return plans; });
  together.all_gather([&] {
    const SavedState& saved = open(checkpoint_id);
    for (const Entry& entry : state) {
      entry.value.copy_(saved_for(entry, saved, rank));
    }
    return Object();
  });
}

}  // namespace rollcall::checkpoint
