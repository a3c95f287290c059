#include "tests/stand_in/stream.h"

#include <cstdlib>
#include <map>
#include <thread>
#include <utility>

#include "tests/stand_in/rules.h"

namespace rollcall::stand_in {
namespace {

struct Streams {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<Stream>> open;
};

Streams& streams() {
  static auto* const single = new Streams;  // threads outlive main()
  return *single;
}

thread_local int device = 0;

}  // namespace

void Point::pass() {
  const std::lock_guard lock(mutex_);
  is_passed_ = true;
  time_ = std::chrono::steady_clock::now();
  passed_.notify_all();
}

bool Point::is_passed() const {
  const std::lock_guard lock(mutex_);
  return is_passed_;
}

void Point::wait() const {
  std::unique_lock lock(mutex_);
  passed_.wait(lock, [this] { return is_passed_; });
}

void Stream::push(Task task) {
  if (is_capturing_) {
    captured_.push_back(std::move(task));
    return;
  }
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (!std::exchange(is_started_, true)) {
    std::thread([self = stream_of(this)] { self->work(); }).detach();
  }
  changed_.notify_all();
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_closing_ || !tasks_.empty(); });
    if (tasks_.empty()) {
      return;
    }
    const Task& task = tasks_.front();  // a deque's elements stay where they are
    lock.unlock();
    task();
    lock.lock();
    tasks_.pop_front();
    changed_.notify_all();
  }
}

bool Stream::is_idle() const {
  const std::lock_guard lock(mutex_);
  return tasks_.empty();
}

void Stream::wait_until_idle() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty(); });
}

std::vector<Task> Stream::end_capture() {
  is_capturing_ = false;
  return std::exchange(captured_, {});
}

void Stream::close(std::shared_ptr<Stream> stream) {
  const std::lock_guard lock(stream->mutex_);
  stream->is_closing_ = true;
  stream->changed_.notify_all();
}

void add_stream(std::shared_ptr<Stream> stream) {
  const std::lock_guard lock(streams().mutex);
  const void* const handle = stream.get();
  streams().open[handle] = std::move(stream);
}

std::shared_ptr<Stream> stream_of(const void* handle) {
  const std::lock_guard lock(streams().mutex);
  const auto found = streams().open.find(handle);
  require(found != streams().open.end(), "a stream was used that does not exist, or no longer");
  return found->second;
}

std::shared_ptr<Stream> take_stream(const void* handle) {
  std::shared_ptr<Stream> stream = stream_of(handle);
  const std::lock_guard lock(streams().mutex);
  streams().open.erase(handle);
  return stream;
}

std::vector<std::shared_ptr<Stream>> all_streams() {
  const std::lock_guard lock(streams().mutex);
  std::vector<std::shared_ptr<Stream>> all;
  for (const auto& [handle, stream] : streams().open) {
    all.push_back(stream);
  }
  return all;
}

int current_device() { return device; }
void set_current_device(int number) { device = number; }

int device_count() {
  const char* const count = std::getenv("ROLLCALL_STAND_IN_GPUS");
  return count != nullptr ? std::atoi(count) : 8;
}

}  // namespace rollcall::stand_in
