#pragma once

// Streams and events: the order of work on one rank's GPU, as in torch.cuda (torch/cuda/streams.py).
//
// On a backend that queues its calls on streams (nccl), a collective returns as soon as it is queued. Work queued on
// one stream runs in order; different streams are unordered except for events. The host waits only where it asks to:
// synchronize(), a barrier, or reading a tensor (item(), print). On gloo there are no streams, and everything here
// returns at once.

#include <cstdint>

#include "sim/base/time.h"

namespace rollcall {

struct Storage;

// A stream of the running rank. 0 is the default stream.
struct Stream {
  std::uint8_t id = 0;

  friend bool operator==(Stream, Stream) = default;
};
inline constexpr int streams_per_rank = 256;

Stream current_stream();  // torch.cuda.current_stream()

// torch.cuda.Stream(): one that the rank has not used yet. Throws RuntimeError when it has all 256.
Stream new_stream();

// with torch.cuda.stream(s): calls inside are queued on `s`.
class StreamScope {
 public:
  explicit StreamScope(Stream stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Stream before_;
};

// A point in a stream: everything that had been queued there by then. Complete until it is recorded.
struct Event {
  Stream stream;
  std::int64_t position = 0;  // of the last thing queued before; counts from 1

  void record();             // on the current stream
  void wait() const;         // event.wait(): the current stream does nothing before the event
  void synchronize() const;  // the host waits for it
};

// torch.cuda.synchronize(): the host waits for everything that the rank has queued on any stream.
void synchronize();
// stream.synchronize()
void synchronize(Stream stream);

// Work on a GPU that involves no other rank.
struct Kernel {
  // Where its duration comes from, for reports.
  enum class Source : std::uint8_t { given, roofline };

  Duration duration = 0;
  const char* name = nullptr;  // for traces; outlives the run. Null: "compute"
  Source source = Source::given;
};

// Queues the kernel on the current stream. The host continues; without streams it does the work itself.
void launch_kernel(const Kernel& kernel);
inline void launch_kernel(Duration duration) { launch_kernel(Kernel{.duration = duration}); }

// The GPU of the calling rank, on a backend that queues its calls; the functions above use it. Any of these may throw
// Error when GPU work that it waits for has failed.
class Streams {
 public:
  virtual ~Streams() = default;

  virtual Event record_event(Stream stream) = 0;
  // Work queued on `stream` from now on runs after the event. The host continues.
  virtual void stream_wait(Stream stream, const Event& event) = 0;
  // Keeps the stream busy with the kernel. The host continues.
  virtual void launch_kernel(Stream stream, const Kernel& kernel) = 0;

  // These block the host: until the event, until everything queued has run, and until no call uses the tensor, which
  // the host is about to read or write (called only if Storage::pending is not 0).
  virtual void synchronize(const Event& event) = 0;
  virtual void synchronize_device() = 0;
  virtual void settle(Storage& storage) = 0;
};

}  // namespace rollcall
