#pragma once

// The text of trace-event JSON, one piece at a time, shared by the writers of Chrome and Kineto traces.
// Keeps only one buffer.

#include <iosfwd>
#include <string>
#include <string_view>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "sim/base/time.h"

namespace rollcall::viz {

// The inside of a JSON string: the text between the quotes, in ASCII.
std::string escaped(const std::string& text);

// The name of a collective in Kineto, which uses c10d's names: "allreduce".
std::string kineto_name(const std::string& op);

class TraceText {
 public:
  // `out` is borrowed. A write error shows in the stream's state.
  TraceText(std::ostream& out, bool whole_microseconds)
      : out_(out), whole_microseconds_(whole_microseconds) {}
  ~TraceText() { flush(); }
  TraceText(const TraceText&) = delete;
  TraceText& operator=(const TraceText&) = delete;

  // Starts the next object of the list of events.
  template <typename Format, typename... Args>
  void begin_event(const Format& format, const Args&... args) {
    append(is_first_event_ ? "\n" : ",\n");
    is_first_event_ = false;
    add(format, args...);
  }

  template <typename Format, typename... Args>
  void add(const Format& format, const Args&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, args...);
    flush_when_full();
  }

  void append(std::string_view text) {
    buffer_.append(text.data(), text.data() + text.size());
    flush_when_full();
  }

  // `,"ts":12.345`: microseconds, computed from the integer, because a double would lose nanoseconds.
  void add_start(Time start) { add_time(R"(,"ts":)", start); }
  // The same for a duration, computed so that start and duration add up if both are truncated.
  void add_duration(Time start, Time end) {
    const bool cut = whole_microseconds_;
    add_time(R"(,"dur":)",
             cut ? end / microsecond * microsecond - start / microsecond * microsecond : end - start);
  }

  void flush();

 private:
  static constexpr std::size_t buffer_max = 1 << 16;

  void add_time(std::string_view key, Time time) {
    if (whole_microseconds_) {
      add(FMT_COMPILE("{}{}"), key, time / microsecond);
    } else {
      add(FMT_COMPILE("{}{}.{:03}"), key, time / microsecond, time % microsecond);
    }
  }

  void flush_when_full() {
    if (buffer_.size() > buffer_max) {
      flush();
    }
  }

  std::ostream& out_;
  bool whole_microseconds_;
  fmt::memory_buffer buffer_;
  bool is_first_event_ = true;
};

}  // namespace rollcall::viz
