#include "sim/c10d/stream.h"

#include <utility>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/c10d/rank_context.h"

namespace rollcall {

Stream current_stream() { return this_rank().stream; }

Stream new_stream() {
  RankContext& self = this_rank();
  if (self.streams + 1 >= streams_per_rank) {
    throw RuntimeError(fmt::format("a rank has at most {} streams", streams_per_rank));
  }
  return {++self.streams};
}

StreamScope::StreamScope(Stream stream) : before_(std::exchange(this_rank().stream, stream)) {}
StreamScope::~StreamScope() { this_rank().stream = before_; }

// Without streams, all work is complete already.

void Event::record() {
  Streams* streams = this_rank().backend->streams();
  *this = streams != nullptr ? streams->record_event(current_stream()) : Event();
}

void Event::wait() const {
  if (Streams* streams = this_rank().backend->streams()) {
    streams->stream_wait(current_stream(), *this);
  }
}

void Event::synchronize() const {
  if (Streams* streams = this_rank().backend->streams()) {
    streams->synchronize(*this);
  }
}

void synchronize() {
  if (Streams* streams = this_rank().backend->streams()) {
    streams->synchronize_device();
  }
}

void synchronize(Stream stream) {
  if (Streams* streams = this_rank().backend->streams()) {
    streams->synchronize(streams->record_event(stream));
  }
}

void launch_kernel(const Kernel& kernel) {
  Backend& backend = *this_rank().backend;
  if (Streams* streams = backend.streams()) {
    streams->launch_kernel(current_stream(), kernel);
  } else {
    backend.compute(kernel.duration);  // the host does it
  }
}

namespace detail {

// Called when the host reads or writes a tensor that queued calls still use.
void settle(Storage& storage) {
  if (Streams* streams = current_rank != nullptr ? current_rank->backend->streams() : nullptr) {
    streams->settle(storage);
  }
}

}  // namespace detail

}  // namespace rollcall
