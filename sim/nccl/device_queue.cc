#include "sim/nccl/device_queue.h"

#include <algorithm>

#include "sim/base/expects.h"
#include "sim/match/slot_calls.h"

namespace rollcall::sim {

namespace {

// A send of less is over once NCCL's buffers have it (NCCL_BUFFSIZE).
constexpr std::int64_t buffered_bytes = std::int64_t{4} << 20;

}  // namespace

DeviceQueue::StreamQueue& DeviceQueue::stream_of(Stream stream) {
  if (stream.id >= streams_.size()) {
    streams_.resize(stream.id + std::size_t{1});
  }
  return streams_[stream.id];
}

const DeviceQueue::LaneRef* DeviceQueue::find_lane(GroupId group) const {
  const auto found =
      std::ranges::find(lanes_, group, [](const LaneRef& lane) { return lane.table->group(); });
  return found == lanes_.end() ? nullptr : &*found;
}

// The first call of a lane, or a call that its stream has not reached.
[[gnu::noinline]] void DeviceQueue::enqueue(LaunchTable& table, const Op& op, std::int64_t seq,
                                            bool is_here) {
  if (seq == 0) {
    lanes_.push_back({&table, op.rank});
  }
  if (!is_here) {
    push(op.stream, {.kind = Step::Kind::release, .group = op.group, .number = seq});
  }
}

// The stream has reached the collective.
void DeviceQueue::make_ready(const LaneRef& lane, std::int64_t seq) {
  note_overtaken(lane.table->group(), {});
  lane.table->place(lane.member, seq).ready = true;
  may_start_ = may_start_ || !lane.lane().running;
}

// A message with this turn, or (nothing) a collective, begins. Is there another of the group's messages that NCCL would
// wait for?
void DeviceQueue::note_overtaken(GroupId group, std::optional<std::uint32_t> turn) {
  has_let_overtake_ = has_let_overtake_ || std::ranges::any_of(open_messages_, [&](const OpenMessage& open) {
                        return open.group == group && open.turn && open.turn != turn && !open.may_return;
                      });
}

void DeviceQueue::note_posted(const Step& step) {
  const auto open = std::ranges::find_if(open_messages_, [&](const OpenMessage& each) {
    return each.group == step.group && each.message == step.message;
  });
  if (open != open_messages_.end() && open->turn) {
    note_overtaken(step.group, open->turn);
    has_let_overtake_ = has_let_overtake_ || (open->after > 0 && !has_finished(step.group, open->after - 1));
  }
}

void DeviceQueue::launch_message(const Op& op, std::int64_t seq, check::MessageId message,
                                 std::optional<std::uint32_t> turn) {
  const LaneRef* lane = find_lane(op.group);
  const bool is_small = bytes_of(op) < buffered_bytes;
  open_messages_.push_back({.group = op.group,
                            .seq = seq,
                            .group_rank = op.rank,
                            .message = message,
                            .tensor = InUse(op.tensors.input),
                            .turn = turn,
                            .after = lane == nullptr ? 0 : lane->lane().launched,
                            .may_return = op.kind == OpKind::send && is_small});
  push(op.stream, {.kind = Step::Kind::post, .group = op.group, .message = message});
}

void DeviceQueue::launch_kernel(Stream stream, const Kernel& kernel) {
  push(stream, {.kind = Step::Kind::kernel});
  stream_of(stream).kernels.push(kernel);
}

void DeviceQueue::await_collective(Stream stream, GroupId group, std::int64_t seq) {
  push(stream, {.kind = Step::Kind::await_collective, .group = group, .number = seq});
}

void DeviceQueue::await_message(Stream stream, GroupId group, Rank group_rank, std::int64_t seq,
                                check::MessageId message) {
  push(stream, {.kind = Step::Kind::await_message,
                .group = group,
                .group_rank = group_rank,
                .message = message,
                .number = seq});
}

void DeviceQueue::await_event(Stream stream, const Event& event) {
  push(stream, {.kind = Step::Kind::await_event, .awaited = event.stream, .number = event.position});
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
      return false;  // finish_kernel removes it
    case Step::Kind::release:
    case Step::Kind::post:
      return true;
  }
  return true;
}

// Advances every stream as far as possible, or to the next thing that the engine has to do.
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
          make_ready(*find_lane(step.group), step.number);
        } else if (step.kind == Step::Kind::post) {
          note_posted(step);
          return Action{.kind = Action::Kind::post, .group = step.group, .message = step.message};
        }
      }
      if (!queue.steps.empty() && queue.steps.front().kind == Step::Kind::kernel &&
          !queue.steps.front().running) {
        queue.steps.front().running = true;
        return Action{.kind = Action::Kind::run_kernel,
                      .stream = {static_cast<std::uint8_t>(id)},
                      .kernel = queue.kernels.front()};
      }
    }
  }
  return std::nullopt;
}

// The lane whose front was launched first, of those that count; null if none does.
template <typename Predicate>
const DeviceQueue::LaneRef* DeviceQueue::first_launched(Predicate&& counts) const {
  const LaneRef* first = nullptr;
  for (const LaneRef& lane : lanes_) {
    if (counts(lane) && (first == nullptr || lane.front().launched < first->front().launched)) {
      first = &lane;
    }
  }
  return first;
}

// Starts the collective that was launched first, of those that can start.
std::optional<DeviceQueue::Action> DeviceQueue::start_a_collective() {
  if (slots_ > 0 && running_ >= slots_) {
    return std::nullopt;
  }
  const LaneRef* first =
      first_launched([](const LaneRef& lane) { return lane.table->is_startable(lane.member); });
  if (first == nullptr) {
    return std::nullopt;
  }
  first->table->lane(first->member).running = true;
  ++running_;
  return Action{.kind = Action::Kind::start, .table = first->table, .group_rank = first->member};
}

void DeviceQueue::finish_collective(LaunchTable& table, Rank group_rank) {
  table.finish(group_rank);
  may_start_ = true;
  --running_;
  --backlog_;
}

void DeviceQueue::finish_message(GroupId group, std::int64_t seq) {
  std::erase_if(open_messages_,
                [&](const OpenMessage& open) { return open.group == group && open.seq == seq; });
}

const Kernel& DeviceQueue::running_kernel(Stream stream) const { return streams_[stream.id].kernels.front(); }

void DeviceQueue::finish_kernel(Stream stream) {
  StreamQueue& queue = stream_of(stream);
  queue.steps.pop();
  queue.kernels.pop();
  ++queue.passed;
  --steps_;
  --backlog_;
}

void DeviceQueue::drop_unstarted() {
  for (StreamQueue& queue : streams_) {
    queue.steps.clear();
    queue.kernels.clear();
  }
  steps_ = 0;
  for (const auto& [table, member] : lanes_) {
    const LaunchTable::Lane& lane = table->lane(member);
    for (std::int64_t seq = lane.finished + (lane.running ? 1 : 0); seq < lane.launched; ++seq) {
      table->place(member, seq).ready = false;
    }
  }
}

// ---- What the host asks ----

bool DeviceQueue::has_finished(GroupId group, std::int64_t seq) const {
  const LaneRef* lane = find_lane(group);
  return lane != nullptr && lane->table->has_finished(lane->member, seq);
}

bool DeviceQueue::has_finished_message(GroupId group, std::int64_t seq) const {
  return std::ranges::none_of(
      open_messages_, [&](const OpenMessage& open) { return open.group == group && open.seq == seq; });
}

bool DeviceQueue::has_passed(const Event& event) const {
  return event.stream.id >= streams_.size() || streams_[event.stream.id].passed >= event.position;
}

bool DeviceQueue::streams_are_idle() const {
  return std::ranges::all_of(streams_, [](const StreamQueue& queue) { return queue.steps.empty(); });
}

bool DeviceQueue::is_idle() const {
  return streams_are_idle() && open_messages_.empty() &&
         std::ranges::all_of(lanes_, [](const LaneRef& lane) { return lane.lane().is_empty(); });
}

// ---- What a wait ultimately waits for ----

// The collective that holds the GPU: of those that run, the one that was launched first.
std::optional<DeviceQueue::Block> DeviceQueue::running_block() const {
  const LaneRef* first = first_launched([](const LaneRef& lane) { return lane.lane().running; });
  if (first == nullptr) {
    return std::nullopt;
  }
  return Block{first->table->group(), first->member, first->lane().finished, check::no_message};
}

std::optional<DeviceQueue::Block> DeviceQueue::blocking(GroupId group, std::int64_t seq) const {
  const LaneRef* lane = find_lane(group);
  if (lane == nullptr || lane->lane().finished > seq || lane->lane().is_empty()) {
    return std::nullopt;
  }
  if (lane->lane().running) {
    return Block{group, lane->member, lane->lane().finished, check::no_message};
  }
  if (!lane->front().ready) {  // its own stream has not reached it
    const std::size_t id = lane->front().stream.id;
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
  std::optional<Block> running = running_block();
  if (!running && !open_messages_.empty()) {  // one that no stream waits for
    const OpenMessage& open = open_messages_.front();
    running = Block{open.group, open.group_rank, open.seq, open.message};
  }
  return running;
}

}  // namespace rollcall::sim
