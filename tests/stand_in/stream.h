#pragma once

// Streams and events of the stand-in: each stream has a thread that runs the queued tasks in order.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace rollcall::stand_in {

using Task = std::function<void()>;

// A place in a stream.
class Point {
 public:
  void pass();
  bool is_passed() const;
  void wait() const;
  std::chrono::steady_clock::time_point time() const { return time_; }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable passed_;
  bool is_passed_ = false;
  std::chrono::steady_clock::time_point time_;
};
using SharedPoint = std::shared_ptr<Point>;

class Stream {
 public:
  explicit Stream(int device) : device_(device) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int device() const { return device_; }

  void push(Task task);
  bool is_idle() const;
  void wait_until_idle() const;
  // Holds the stream: NCCL has launched a kernel on it, but not issued it, so a later task would come before it.
  void hold() { ++held_; }
  void let_go() { --held_; }
  bool is_held() const { return held_ > 0; }

  // Tasks that are queued from now on are kept instead of run.
  void begin_capture() { is_capturing_ = true; }
  std::vector<Task> end_capture();
  bool is_capturing() const { return is_capturing_; }

  // Runs the queued tasks, and then destroys the stream.
  static void close(std::shared_ptr<Stream> stream);

 private:
  void work();

  int device_;
  std::atomic<int> held_ = 0;
  bool is_capturing_ = false;
  bool is_started_ = false;
  std::vector<Task> captured_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Task> tasks_;  // the first one is running
  bool is_closing_ = false;
};

// The existing streams. A handle is the stream's address; a handle of none of them ends the process.
void add_stream(std::shared_ptr<Stream> stream);
std::shared_ptr<Stream> stream_of(const void* handle);
std::shared_ptr<Stream> take_stream(const void* handle);
std::vector<std::shared_ptr<Stream>> all_streams();

// The thread's own device, as set by cudaSetDevice.
int current_device();
void set_current_device(int device);
int device_count();

}  // namespace rollcall::stand_in
