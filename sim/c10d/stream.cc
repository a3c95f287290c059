#include "sim/c10d/stream.h"

#include <utility>

#include <fmt/format.h>

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

void Event::record() { *this = this_rank().backend->record_event(current_stream()); }
void Event::wait() const { this_rank().backend->stream_wait(current_stream(), *this); }
void Event::synchronize() const { this_rank().backend->synchronize(*this); }

void synchronize() { this_rank().backend->synchronize_device(); }

void synchronize(Stream stream) {
  Backend& backend = *this_rank().backend;
  backend.synchronize(backend.record_event(stream));
}

void launch_kernel(Duration duration) { this_rank().backend->launch_kernel(current_stream(), duration); }

namespace detail {

// The host reads or writes a tensor that queued calls still use.
void settle(Storage& storage) {
  if (current_rank != nullptr) {
    current_rank->backend->settle(storage);
  }
}

}  // namespace detail

}  // namespace rollcall
