#include "sim/c10d/objects.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/c10d/arguments.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/p2p.h"
#include "sim/c10d/rank_context.h"
#include "sim/torch/torch_traits.h"

namespace rollcall {
namespace {

Device device_of_objects() {
  const RankContext& self = this_rank();
  return self.backend->traits().device == DeviceType::cpu ? cpu_device : self.device;
}

Tensor bytes_tensor(std::int64_t size) { return Tensor::zeros({size}, Dtype::uint8, device_of_objects()); }
Tensor size_tensor(std::int64_t count = 1) {
  return Tensor::zeros({count}, Dtype::int64, device_of_objects());
}

// The bytes, padded with zeros to `size`. torch leaves uninitialized memory there, which is never read. In a rehearsal
// no rank has reported the longest size, so bytes that do not fit are left out.
Tensor padded(std::string_view bytes, std::int64_t size) {
  Tensor tensor = bytes_tensor(size);
  bytes = bytes.substr(0, static_cast<std::size_t>(size));
  if (!bytes.empty()) {
    std::memcpy(tensor.storage()->make_dense(), bytes.data(), bytes.size());
    tensor.storage()->collapse_if_uniform();
  }
  return tensor;
}

std::string bytes_of(const Tensor& tensor, std::int64_t offset, std::int64_t size) {
  std::string bytes;
  for (std::int64_t i = offset; i < std::min(offset + size, tensor.numel()); ++i) {
    bytes += static_cast<char>(tensor.settle().storage()->at(i));
  }
  return bytes;
}

// A pickle is never empty. Empty bytes mean that nothing has arrived, as in a rehearsal; None lets the rank continue.
Object object_in(const std::string& bytes) { return bytes.empty() ? Object() : unpickle(bytes); }

std::int64_t size_of(const std::string& bytes) { return static_cast<std::int64_t>(bytes.size()); }

TensorList many(std::int64_t count, const Tensor& model) {
  TensorList tensors;
  for (std::int64_t i = 0; i < count; ++i) {
    tensors.push_back(model.clone());
  }
  return tensors;
}

// The sizes of all ranks, in rank order.
std::vector<std::int64_t> gather_sizes(std::int64_t own, const ProcessGroup& group, Site site) {
  const TensorList sizes = many(get_world_size(group), size_tensor());
  all_gather(sizes, Tensor::integer(own, Dtype::int64, device_of_objects()), {.group = group}, site);
  std::vector<std::int64_t> result;
  for (const Tensor& size : sizes) {
    result.push_back(size.item_integer());
  }
  return result;
}

void unpickle_all(const TensorList& parts, const std::vector<std::int64_t>& sizes, ObjectList& objects) {
  for (std::size_t r = 0; r < parts.size(); ++r) {
    if (r >= objects.size()) {
      throw Error("IndexError", "list assignment index out of range");
    }
    objects[r] = object_in(bytes_of(parts[r], 0, sizes[r]));
  }
}

// Raises for a root outside the group, in releases that check it this early.
void look_up_root(const ProcessGroup& group, Rank root, OpKind kind, const Site& site) {
  if (this_rank().torch->object_calls_look_up_roots) {
    root_in(group ? group : world(), root, kind, site);
  }
}

// A list of objects in transit: their sizes, and their bytes end to end.
struct Packed {
  Tensor sizes;
  Tensor bytes;
};

Packed pack(const ObjectList& objects) {
  if (objects.empty()) {
    throw ValueError("not enough values to unpack (expected 2, got 0)");  // the error of Python's zip
  }
  Tensor sizes = size_tensor(static_cast<std::int64_t>(objects.size()));
  std::string bytes;
  std::byte* place = sizes.storage()->make_dense();
  for (const Object& object : objects) {
    const std::string pickled = pickle(object);
    const std::int64_t size = size_of(pickled);
    std::memcpy(place, &size, sizeof size);
    place += sizeof size;
    bytes += pickled;
  }
  sizes.storage()->collapse_if_uniform();
  return {std::move(sizes), padded(bytes, size_of(bytes))};
}

std::int64_t size_at(const Tensor& sizes, std::int64_t index) {
  return decode_integer(sizes.settle().storage()->at(index), Dtype::int64);
}

std::int64_t total_of(const Tensor& sizes) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < sizes.numel(); ++i) {
    total += size_at(sizes, i);
  }
  return total;
}

void unpack(const Packed& packed, ObjectList& objects) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::int64_t size = size_at(packed.sizes, static_cast<std::int64_t>(i));
    objects[i] = object_in(bytes_of(packed.bytes, offset, size));
    offset += size;
  }
}

}  // namespace

void all_gather_object(ObjectList& objects, const Object& object, const ProcessGroup& group, Site site) {
  if (stands_outside(group, "all_gather_object")) {
    return;
  }
  const std::string bytes = pickle(object);
  const std::vector<std::int64_t> sizes = gather_sizes(size_of(bytes), group, site);
  const std::int64_t longest = *std::ranges::max_element(sizes);
  const TensorList parts = many(get_world_size(group), bytes_tensor(longest));
  all_gather(parts, padded(bytes, longest), {.group = group}, site);
  unpickle_all(parts, sizes, objects);
}

void gather_object(const Object& object, ObjectList* objects, Rank dst, const ProcessGroup& group,
                   Site site) {
  if (stands_outside(group, "gather_object")) {
    return;
  }
  look_up_root(group, dst, OpKind::gather, site);
  const bool is_destination = get_rank() == dst;
  check_root_list(objects != nullptr && !objects->empty(), is_destination, "gather_list", "destination");
  const std::string bytes = pickle(object);
  const std::vector<std::int64_t> sizes = gather_sizes(size_of(bytes), group, site);
  const std::int64_t longest = *std::ranges::max_element(sizes);
  TensorList parts;
  if (is_destination) {
    parts = many(get_world_size(group), bytes_tensor(longest));
  }
  gather(padded(bytes, longest), parts, dst, {.group = group}, site);
  if (is_destination) {
    unpickle_all(parts, sizes, *objects);
  }
}

void broadcast_object_list(ObjectList& objects, Rank src, const ProcessGroup& group, Site site) {
  if (stands_outside(group, "broadcast_object_list")) {
    return;
  }
  look_up_root(group, src, OpKind::broadcast, site);
  const bool is_source = get_rank() == src;
  Packed packed =
      is_source ? pack(objects) : Packed{size_tensor(static_cast<std::int64_t>(objects.size())), {}};
  broadcast(packed.sizes, src, {.group = group}, site);
  if (!is_source) {
    packed.bytes = bytes_tensor(total_of(packed.sizes));
  }
  broadcast(packed.bytes, src, {.group = group}, site);
  if (!is_source) {
    unpack(packed, objects);
  }
}

void send_object_list(const ObjectList& objects, Rank dst, const ProcessGroup& group, Site site) {
  if (get_rank() == dst) {
    throw ValueError(
        "Invalid destination rank: destination rank should not be the same as the rank of the current "
        "process.");
  }
  if (stands_outside(group, "send_object_list")) {
    return;
  }
  const Packed packed = pack(objects);
  send(packed.sizes, dst, {.group = group}, site);
  send(packed.bytes, dst, {.group = group}, site);
}

Rank recv_object_list(ObjectList& objects, std::optional<Rank> src, const ProcessGroup& group, Site site) {
  if (stands_outside(group, "recv_object_list")) {
    return -1;
  }
  Packed packed{size_tensor(static_cast<std::int64_t>(objects.size())), {}};
  const Rank from = recv(packed.sizes, src, {.group = group}, site);
  packed.bytes = bytes_tensor(total_of(packed.sizes));
  if (recv(packed.bytes, src, {.group = group}, site) != from) {
    throw RuntimeError("Mismatch in return ranks for object sizes and objects.");
  }
  unpack(packed, objects);
  return from;
}

void scatter_object_list(ObjectList& outputs, const ObjectList& inputs, Rank src, const ProcessGroup& group,
                         Site site) {
  if (stands_outside(group, "scatter_object_list")) {
    return;
  }
  if (outputs.empty()) {
    refuse_use("Expected argument scatter_object_output_list to be a list of size at least 1.");
  }
  look_up_root(group, src, OpKind::scatter, site);
  // torch 1.13 compares the rank inside the group with the global src. They agree only in the world (and in groups that
  // begin like it); otherwise scatter, below, raises an error about its list.
  const bool is_source =
      (this_rank().torch->object_calls_look_up_roots ? get_rank() : get_rank(group)) == src;
  std::vector<std::string> pickled;
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < inputs.size() && is_source; ++i) {
    pickled.push_back(pickle(inputs[i]));
    longest = std::max(longest, size_of(pickled.back()));
  }
  const Tensor size = Tensor::integer(longest, Dtype::int64, device_of_objects());
  broadcast(size, src, {.group = group}, site);
  TensorList parts;
  TensorList sizes;
  for (const std::string& bytes : pickled) {
    parts.push_back(padded(bytes, longest));
    sizes.push_back(Tensor::integer(size_of(bytes), Dtype::int64, device_of_objects()));
  }
  const Tensor part = bytes_tensor(size.item_integer());
  scatter(part, parts, src, {.group = group}, site);
  const Tensor own_size = size_tensor();
  scatter(own_size, sizes, src, {.group = group}, site);
  outputs.front() = object_in(bytes_of(part, 0, own_size.item_integer()));
}

}  // namespace rollcall
