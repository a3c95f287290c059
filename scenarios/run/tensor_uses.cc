#include "scenarios/run/tensor_uses.h"

#include <algorithm>
#include <utility>

namespace rollcall::scenario {
namespace {

// True if a call of this queue runs after the known one.
bool is_queued_behind(const TensorUse& known, const std::optional<CallQueue>& queue) {
  return queue && known.queue == queue;
}

}  // namespace

StreamOrder::Point StreamOrder::queue(Stream stream) {
  Clock& own = clock_of(stream);
  own.resize(std::max<std::size_t>(own.size(), stream.id + std::size_t{1}));
  return {stream, ++own[stream.id]};
}

bool StreamOrder::is_over(Point point, Stream stream) const {
  const std::int64_t known = stream.id < streams_.size() ? at(streams_[stream.id], point.stream) : 0;
  return std::max(known, at(host_, point.stream)) >= point.position;
}

void StreamOrder::record(std::size_t event, Stream stream) {
  events_.resize(std::max(events_.size(), event + 1));
  events_[event] = clock_of(stream);
}

void StreamOrder::await_event(std::size_t event, Stream stream) {
  if (event < events_.size()) {
    advance(clock_of(stream), events_[event]);
  }
}

void StreamOrder::await_stream(Stream awaited, Stream stream) {
  const Clock known = clock_of(awaited);
  advance(clock_of(stream), known);
}

void StreamOrder::await_on_host(Stream stream) { advance(host_, clock_of(stream)); }

std::int64_t StreamOrder::at(const Clock& clock, Stream stream) {
  return stream.id < clock.size() ? clock[stream.id] : 0;
}

void StreamOrder::advance(Clock& clock, const Clock& other) {
  clock.resize(std::max(clock.size(), other.size()));
  std::ranges::transform(other, clock, clock.begin(),
                         [](std::int64_t known, std::int64_t own) { return std::max(known, own); });
}

StreamOrder::Clock& StreamOrder::clock_of(Stream stream) {
  streams_.resize(std::max<std::size_t>(streams_.size(), stream.id + std::size_t{1}));
  return streams_[stream.id];
}

TensorUse with_work(TensorUse use, const Work& work, const Tensor& argument) {
  use.op.group = work.group();
  use.op.rank = work.rank();
  use.op.numel = argument.numel();
  use.op.dtype = argument.dtype();
  use.op.device = argument.device();
  use.seq = work.seq();
  return use;
}

void TensorUses::add(TensorUse use, Stream stream) {
  // What comes after this call also comes after the earlier ones that it follows. A call that only reads says nothing
  // about an earlier one that writes, since others may read at the same time.
  std::erase_if(uses_, [&](const TensorUse& known) {
    return known.tensor == use.tensor && (use.writes || !known.writes) &&
           (is_over(known, stream) || is_queued_behind(known, use.queue));
  });
  uses_.push_back(std::move(use));
}

void TensorUses::add_awaited(TensorUse use, Stream stream) {
  use.waits = {order_.queue(stream)};
  add(std::move(use), stream);
}

void TensorUses::await(SlotIndex work, Stream stream) {
  if (!has_streams_) {
    std::erase_if(uses_, [work](const TensorUse& known) { return known.work == work; });
    return;
  }
  const StreamOrder::Point wait = order_.queue(stream);
  for (TensorUse& known : uses_) {
    if (known.work == work) {
      std::erase_if(known.waits, [&](StreamOrder::Point other) { return other.stream == stream; });
      known.waits.push_back(wait);
    }
  }
}

const TensorUse* TensorUses::find_open(TensorKey tensor, Observation::Access access, Stream stream,
                                       const std::optional<CallQueue>& queue) const {
  const auto found = std::ranges::find_if(uses_, [&](const TensorUse& known) {
    return known.tensor == tensor && (known.writes || access != Observation::Access::read) &&
           !is_over(known, stream) && !is_queued_behind(known, queue);
  });
  return found == uses_.end() ? nullptr : &*found;
}

bool TensorUses::is_over(const TensorUse& use, Stream stream) const {
  return std::ranges::any_of(use.waits,
                             [&](StreamOrder::Point wait) { return order_.is_over(wait, stream); });
}

}  // namespace rollcall::scenario
