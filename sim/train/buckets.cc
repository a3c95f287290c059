#include "sim/train/buckets.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "sim/base/expects.h"
#include "sim/c10d/collectives.h"
#include "sim/train/flat.h"

namespace rollcall {
namespace {

// The bucket being filled with tensors of one kind.
struct OpenBucket {
  Dtype dtype;
  Device device;
  std::size_t limit = 0;  // index into the limits
  std::int64_t bytes = 0;
  std::vector<std::uint32_t> indices{};
};

OpenBucket& open_bucket_of(std::vector<OpenBucket>& open, const Tensor& tensor) {
  auto found = std::ranges::find_if(open, [&](const OpenBucket& bucket) {
    return bucket.dtype == tensor.dtype() && bucket.device == tensor.device();
  });
  if (found == open.end()) {
    open.push_back({.dtype = tensor.dtype(), .device = tensor.device()});
    return open.back();
  }
  return *found;
}

}  // namespace

BucketIndices assign_buckets(std::span<const Tensor> tensors, std::span<const std::int64_t> limits,
                             std::span<const std::uint32_t> indices) {
  expects(!limits.empty(), "buckets have a limit of bytes");
  expects(indices.empty() || indices.size() == tensors.size(), "every tensor has its index");
  BucketIndices result;
  std::vector<OpenBucket> open;  // by dtype and device, in order of appearance: very few
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    OpenBucket& bucket = open_bucket_of(open, tensors[i]);
    bucket.indices.push_back(indices.empty() ? static_cast<std::uint32_t>(i) : indices[i]);
    bucket.bytes += tensors[i].storage()->bytes();
    if (bucket.bytes >= limits[bucket.limit]) {
      result.push_back(std::exchange(bucket.indices, {}));
      bucket.bytes = 0;
      bucket.limit = std::min(bucket.limit + 1, limits.size() - 1);
    }
  }
  // torch iterates over an unordered_map here; libstdc++'s yields the keys that came last first.
  for (auto bucket = open.rbegin(); bucket != open.rend(); ++bucket) {
    if (!bucket->indices.empty()) {
      result.push_back(std::move(bucket->indices));
    }
  }
  if (indices.empty()) {
    std::ranges::sort(result, {}, [](const auto& bucket) { return *std::ranges::min_element(bucket); });
  }
  return result;
}

namespace {

// One flat broadcast in flight.
struct Flight {
  Tensor flat;
  TensorList parts;
  Work work;
};

void land(const Flight& flight, bool is_root) {
  flight.work.wait();
  if (!is_root) {
    unflatten(flight.flat, flight.parts);
  }
}

}  // namespace

void broadcast_coalesced(const TensorList& tensors, Rank root, std::int64_t chunk_bytes,
                         const ProcessGroup& group, Site site) {
  constexpr std::size_t in_flight_max = 2;  // comm.cpp, broadcast_coalesced
  if (tensors.empty()) {
    return;
  }
  const bool is_root = group.rank() == root;
  std::deque<Flight> flights;
  for (const std::vector<std::uint32_t>& bucket : assign_buckets(tensors, {&chunk_bytes, 1})) {
    Flight flight;
    for (const std::uint32_t index : bucket) {
      flight.parts.push_back(tensors[index]);
    }
    flight.flat = flatten(flight.parts);
    flight.work = broadcast_in_group(flight.flat, root, {.group = group, .async_op = true}, site);
    flights.push_back(std::move(flight));
    if (flights.size() >= in_flight_max) {
      land(flights.front(), is_root);
      flights.pop_front();
    }
  }
  for (const Flight& flight : flights) {
    land(flight, is_root);
  }
}

}  // namespace rollcall
