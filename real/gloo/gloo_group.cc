#include "real/gloo/gloo_group.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "real/gloo/translate.h"
#include "sim/base/expects.h"

namespace rollcall::real {

GlooGroup::GlooGroup(std::shared_ptr<gloo::Context> context) : context_(std::move(context)) {
  for (std::thread& thread : threads_) {
    thread = std::thread([this] { work(); });
  }
}

GlooGroup::~GlooGroup() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  queued_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

std::int64_t GlooGroup::start(const Op& op, const TorchTraits& torch) {
  Task task;
  task.call = std::make_shared<GlooCall>(op, size(), torch);
  task.number = collectives_++;
  task.waits_for_prior = op.kind == OpKind::barrier;
  const std::int64_t number = task.number;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [other, open] : tasks_) {
      if (task.call->continues(*open.call)) {
        task.before = open.call;
        task.before_number = other;
      }
    }
    tasks_.emplace(number, std::move(task));
    queue_.push_back(number);
  }
  queued_.notify_one();
  return number;
}

// The body of each of the two threads.
void GlooGroup::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    queued_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) {
      return;
    }
    Task& task = tasks_.at(queue_.front());
    queue_.pop_front();
    if (task.waits_for_prior) {
      done_.wait(lock, [&] { return prior_done(task.number); });
    }
    if (task.before != nullptr) {  // issued earlier, so it is done or the other thread is running it
      done_.wait(lock, [&] { return is_done(task.before_number); });
      task.call->take_over(*task.before);
      task.before.reset();
    }
    lock.unlock();
    run(task);
    lock.lock();
    task.done = true;
    done_.notify_all();
  }
}

void GlooGroup::run(Task& task) {
  try {
    translating([&] { task.call->run(context_, static_cast<std::uint32_t>(task.number)); });
  } catch (...) {
    task.error = std::current_exception();
  }
}

bool GlooGroup::prior_done(std::int64_t number) const {
  return std::all_of(tasks_.begin(), tasks_.lower_bound(number),
                     [](const auto& task) { return task.second.done; });
}

bool GlooGroup::is_done(std::int64_t number) const {
  const auto task = tasks_.find(number);
  return task == tasks_.end() || task->second.done;  // the former: delivered, and forgotten
}

// Delivers a task that is done and has not failed, and forgets it. A thread that waits with a barrier may be
// reading the map, so this is called under the lock only.
void GlooGroup::finish(std::map<std::int64_t, Task>::iterator task) {
  task->second.call->deliver();
  tasks_.erase(task);
}

void GlooGroup::wait(std::int64_t number) {
  std::unique_lock lock(mutex_);
  const auto task = tasks_.find(number);
  if (task == tasks_.end()) {
    return;
  }
  done_.wait(lock, [&] { return task->second.done; });
  if (task->second.error) {
    std::rethrow_exception(task->second.error);
  }
  finish(task);
}

bool GlooGroup::is_completed(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  return is_done(number);
}

void GlooGroup::deliver_completed() {
  const std::lock_guard lock(mutex_);
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    const auto next = std::next(task);
    if (task->second.done && !task->second.error) {
      finish(task);
    }
    task = next;
  }
}

std::int64_t GlooGroup::post(const Op& op) {
  Message message;
  Storage& storage = *op.tensors.input;
  append_bytes(message.memory, storage);  // for a receive, too: a short message leaves the rest as it was
  const auto slot = static_cast<std::uint64_t>(op.tag);
  message.buffer = context_->createUnboundBuffer(message.memory.data(), message.memory.size());
  translating([&] {
    if (op.kind == OpKind::send) {
      message.buffer->send(op.root, slot);
      return;
    }
    message.target = Tensor::share(storage);
    message.from_anyone = op.root < 0;
    if (!message.from_anyone) {
      message.buffer->recv(op.root, slot);
      return;
    }
    std::vector<int> others(static_cast<std::size_t>(size()));
    std::iota(others.begin(), others.end(), 0);
    std::erase(others, static_cast<int>(op.rank));
    message.buffer->recv(std::move(others), slot);
  });
  messages_.emplace(posted_, std::move(message));
  return posted_++;
}

void GlooGroup::wait_message(std::int64_t number) {
  const auto found = messages_.find(number);
  if (found == messages_.end()) {
    return;
  }
  Message& message = found->second;
  translating([&] {
    int source = -1;
    const bool completed = message.target ? message.buffer->waitRecv(&source) : message.buffer->waitSend();
    expects(completed, "nobody aborts the wait for a message");
    if (message.from_anyone) {
      sources_[number] = source;
    }
  });
  if (message.target && !message.memory.empty()) {
    Storage& storage = *message.target.storage();
    std::memcpy(storage.make_dense(), message.memory.data(), message.memory.size());
    storage.collapse_if_uniform();
  }
  messages_.erase(found);
}

bool GlooGroup::drop_message(std::int64_t number) { return messages_.erase(number) > 0; }

Rank GlooGroup::take_source(std::int64_t number) {
  const auto source = sources_.extract(number);
  expects(!source.empty(), "a receive's source is asked for once, after waiting");
  return source.mapped();
}

}  // namespace rollcall::real
