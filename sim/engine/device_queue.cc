#include "sim/engine/device_queue.h"

#include <algorithm>
#include <utility>

#include "sim/dist/expects.h"

namespace rollcall::sim {
namespace {

Tensor keep(Storage* storage) { return storage != nullptr ? Tensor::share(*storage) : Tensor(); }

template <typename T>
std::unique_ptr<T> keep(const T*& borrowed) {
  if (borrowed == nullptr) {
    return nullptr;
  }
  auto copy = std::make_unique<T>(*borrowed);
  borrowed = copy.get();
  return copy;
}

}  // namespace

DeviceQueue::StreamQueue& DeviceQueue::stream_of(Stream stream) {
  if (stream.id >= streams_.size()) {
    streams_.resize(stream.id + std::size_t{1});
  }
  return streams_[stream.id];
}

DeviceQueue::Lane& DeviceQueue::lane_of(GroupId group) {
  for (Lane& lane : lanes_) {
    if (lane.group == group) {
      return lane;
    }
  }
  lanes_.emplace_back().group = group;
  return lanes_.back();
}

const DeviceQueue::Lane* DeviceQueue::find_lane(GroupId group) const {
  const auto found = std::ranges::find(lanes_, group, &Lane::group);
  return found == lanes_.end() ? nullptr : &*found;
}

std::int64_t DeviceQueue::launch(const Op& op) {
  Lane& lane = lane_of(op.group);
  lane.group_rank = op.rank;
  const std::int64_t seq = lane.finished + static_cast<std::int64_t>(lane.calls.size());
  Collective call;
  call.op = op;
  call.input = keep(op.tensors.input);
  call.output = keep(op.tensors.output);
  if (op.tensors.inputs != nullptr || op.tensors.outputs != nullptr || op.tensors.splits != nullptr) {
    OpTensors& tensors = call.op.tensors;
    call.lists = std::make_unique<Collective::Lists>(
        Collective::Lists{keep(tensors.inputs), keep(tensors.outputs), keep(tensors.splits)});
  }
  call.launched = launches_++;
  lane.calls.push(std::move(call));
  ++backlog_;
  StreamQueue& queue = stream_of(op.stream);
  if (queue.steps.empty()) {  // the stream is here already
    ++queue.passed;
    make_ready(lane, seq);
    return seq;
  }
  Step step;
  step.kind = Step::Kind::release;
  step.group = op.group;
  step.number = seq;
  push(op.stream, step);
  return seq;
}

// The stream has come to the collective.
void DeviceQueue::make_ready(Lane& lane, std::int64_t seq) {
  lane.calls[static_cast<std::size_t>(seq - lane.finished)].ready = true;
  may_start_ = may_start_ || !lane.running;
}

void DeviceQueue::launch_message(Stream stream, GroupId group, std::int64_t seq, check::MessageId message) {
  open_messages_.push_back({group, seq});
  Step step;
  step.kind = Step::Kind::post;
  step.group = group;
  step.message = message;
  push(stream, step);
}

void DeviceQueue::launch_kernel(Stream stream, Duration duration) {
  Step step;
  step.kind = Step::Kind::kernel;
  step.number = duration;
  push(stream, step);
}

void DeviceQueue::await_collective(Stream stream, GroupId group, std::int64_t seq) {
  Step step;
  step.kind = Step::Kind::await_collective;
  step.group = group;
  step.number = seq;
  push(stream, step);
}

void DeviceQueue::await_message(Stream stream, GroupId group, Rank group_rank, std::int64_t seq,
                                check::MessageId message) {
  Step step;
  step.kind = Step::Kind::await_message;
  step.group = group;
  step.group_rank = group_rank;
  step.number = seq;
  step.message = message;
  push(stream, step);
}

void DeviceQueue::await_event(Stream stream, const Event& event) {
  Step step;
  step.kind = Step::Kind::await_event;
  step.awaited = event.stream;
  step.number = event.position;
  push(stream, step);
}

void DeviceQueue::push(Stream stream, const Step& step) {
  stream_of(stream).steps.push(step);
  ++steps_;
  ++backlog_;
}

Event DeviceQueue::record(Stream stream) const {
  if (stream.id >= streams_.size()) {
    return {stream, 0};
  }
  const StreamQueue& queue = streams_[stream.id];
  return {stream, queue.passed + static_cast<std::int64_t>(queue.steps.size())};
}

// ---- What the GPU does ----

DeviceQueue::Action DeviceQueue::next() {
  if (steps_ > 0) {
    if (std::optional<Action> action = step_streams()) {
      return *action;
    }
  }
  if (may_start_) {
    if (std::optional<Action> action = start_a_collective()) {
      return *action;
    }
    may_start_ = false;
  }
  return {};
}

bool DeviceQueue::is_over(const Step& step) const {
  switch (step.kind) {
    case Step::Kind::await_collective:
      return has_finished(step.group, step.number);
    case Step::Kind::await_message:
      return has_finished_message(step.group, step.number);
    case Step::Kind::await_event:
      return has_passed({step.awaited, step.number});
    case Step::Kind::kernel:
      return false;  // finish_kernel takes it away
    case Step::Kind::release:
    case Step::Kind::post:
      return true;
  }
  return true;
}

// Moves every stream on as far as it goes, or to the next thing that the engine has to do.
std::optional<DeviceQueue::Action> DeviceQueue::step_streams() {
  bool moved = true;
  while (moved) {  // a stream may wait for an event of a later one
    moved = false;
    for (std::size_t id = 0; id < streams_.size(); ++id) {
      StreamQueue& queue = streams_[id];
      while (!queue.steps.empty() && is_over(queue.steps.front())) {
        const Step step = queue.steps.front();
        queue.steps.pop();
        ++queue.passed;
        --steps_;
        --backlog_;
        moved = true;
        if (step.kind == Step::Kind::release) {
          make_ready(lane_of(step.group), step.number);
        } else if (step.kind == Step::Kind::post) {
          Action action;
          action.kind = Action::Kind::post;
          action.group = step.group;
          action.message = step.message;
          return action;
        }
      }
      if (!queue.steps.empty() && queue.steps.front().kind == Step::Kind::kernel &&
          !queue.steps.front().running) {
        queue.steps.front().running = true;
        Action action;
        action.kind = Action::Kind::run_kernel;
        action.stream = {static_cast<std::uint8_t>(id)};
        action.duration = queue.steps.front().number;
        return action;
      }
    }
  }
  return std::nullopt;
}

// Of the collectives that could start, the one that was launched first.
std::optional<DeviceQueue::Action> DeviceQueue::start_a_collective() {
  if (slots_ > 0 && running_ >= slots_) {
    return std::nullopt;
  }
  Lane* first = nullptr;
  for (Lane& lane : lanes_) {
    const bool may_start = !lane.running && !lane.calls.empty() && lane.calls.front().ready;
    if (may_start && (first == nullptr || lane.calls.front().launched < first->calls.front().launched)) {
      first = &lane;
    }
  }
  if (first == nullptr) {
    return std::nullopt;
  }
  first->running = true;
  ++running_;
  Action action;
  action.kind = Action::Kind::start;
  action.op = &first->calls.front().op;
  return action;
}

void DeviceQueue::finish_collective(GroupId group) {
  Lane& lane = lane_of(group);
  expects(lane.running, "a collective that finishes has started");
  lane.running = false;
  may_start_ = true;
  --running_;
  --backlog_;
  ++lane.finished;
  Collective& call = lane.calls.front();
  call.input = {};
  call.output = {};
  call.lists = nullptr;
  lane.calls.pop();
}

void DeviceQueue::finish_message(GroupId group, std::int64_t seq) {
  std::erase(open_messages_, MessageKey{group, seq});
}

void DeviceQueue::finish_kernel(Stream stream) {
  StreamQueue& queue = stream_of(stream);
  queue.steps.pop();
  ++queue.passed;
  --steps_;
  --backlog_;
}

void DeviceQueue::drop_unstarted() {
  for (StreamQueue& queue : streams_) {
    queue.steps.clear();
  }
  steps_ = 0;
  for (Lane& lane : lanes_) {
    for (std::size_t i = lane.running ? 1 : 0; i < lane.calls.size(); ++i) {
      lane.calls[i].ready = false;
    }
  }
}

// ---- What the host asks ----

bool DeviceQueue::has_finished(GroupId group, std::int64_t seq) const {
  const Lane* lane = find_lane(group);
  return lane != nullptr && lane->finished > seq;
}

bool DeviceQueue::has_finished_message(GroupId group, std::int64_t seq) const {
  return std::ranges::find(open_messages_, MessageKey{group, seq}) == open_messages_.end();
}

bool DeviceQueue::has_passed(const Event& event) const {
  return event.stream.id >= streams_.size() || streams_[event.stream.id].passed >= event.position;
}

bool DeviceQueue::streams_are_idle() const {
  return std::ranges::all_of(streams_, [](const StreamQueue& queue) { return queue.steps.empty(); });
}

bool DeviceQueue::is_idle() const {
  return streams_are_idle() && open_messages_.empty() &&
         std::ranges::all_of(lanes_, [](const Lane& lane) { return lane.calls.empty(); });
}

const DeviceQueue::Collective* DeviceQueue::find(GroupId group, std::int64_t seq) const {
  const Lane* lane = find_lane(group);
  if (lane == nullptr || seq < lane->finished ||
      seq >= lane->finished + static_cast<std::int64_t>(lane->calls.size())) {
    return nullptr;
  }
  return &lane->calls[static_cast<std::size_t>(seq - lane->finished)];
}

std::int64_t DeviceQueue::calls_of(GroupId group) const {
  const Lane* lane = find_lane(group);
  return lane == nullptr ? 0 : lane->finished + static_cast<std::int64_t>(lane->calls.size());
}

// ---- What a wait comes down to ----

// The collective that holds the GPU: of those that run, the first that was launched.
std::optional<DeviceQueue::Block> DeviceQueue::running_block() const {
  const Lane* first = nullptr;
  for (const Lane& lane : lanes_) {
    if (lane.running && (first == nullptr || lane.calls.front().launched < first->calls.front().launched)) {
      first = &lane;
    }
  }
  if (first == nullptr) {
    return std::nullopt;
  }
  return Block{first->group, first->group_rank, first->finished, check::no_message};
}

std::optional<DeviceQueue::Block> DeviceQueue::blocking(GroupId group, std::int64_t seq) const {
  const Lane* lane = find_lane(group);
  if (lane == nullptr || lane->finished > seq || lane->calls.empty()) {
    return std::nullopt;
  }
  if (lane->running) {
    return Block{group, lane->group_rank, lane->finished, check::no_message};
  }
  if (!lane->calls.front().ready) {  // its own stream has not come to it
    const std::size_t id = lane->calls.front().op.stream.id;
    if (id < streams_.size() && !streams_[id].steps.empty() &&
        streams_[id].steps.front().kind != Step::Kind::release) {
      return blocking(streams_[id], 0);
    }
  }
  return running_block();  // no room on the GPU
}

std::optional<DeviceQueue::Block> DeviceQueue::blocking(const StreamQueue& queue, int depth) const {
  if (queue.steps.empty() || depth > streams_per_rank) {
    return std::nullopt;
  }
  const Step& step = queue.steps.front();
  switch (step.kind) {
    case Step::Kind::await_collective:
      return blocking(step.group, step.number);
    case Step::Kind::await_message:
      return Block{step.group, step.group_rank, step.number, step.message};
    case Step::Kind::await_event:
      return step.awaited.id < streams_.size() ? blocking(streams_[step.awaited.id], depth + 1)
                                               : std::nullopt;
    case Step::Kind::kernel:
    case Step::Kind::release:
    case Step::Kind::post:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<DeviceQueue::Block> DeviceQueue::blocking(const Event& event) const {
  return event.stream.id < streams_.size() ? blocking(streams_[event.stream.id], 0) : std::nullopt;
}

std::optional<DeviceQueue::Block> DeviceQueue::blocking() const {
  for (const StreamQueue& queue : streams_) {
    if (std::optional<Block> block = blocking(queue, 0)) {
      return block;
    }
  }
  return running_block();
}

}  // namespace rollcall::sim
