#include "tests/conformance/tape_device.h"

#include <algorithm>

namespace rollcall::conformance {

TapeDevice::Number TapeDevice::take(const Op& op, std::int64_t batch, Time at) {
  const Number number = calls_.size();
  Call& call = calls_.emplace_back();
  call.op = op;
  call.batch = batch;
  call.gate = streams_[op.stream.id].awaited.size();
  call.at = at;
  unstarted_.push_back(number);
  if (!is_point_to_point(op.kind)) {
    lanes_[op.group].push_back(number);
  }
  return number;
}

std::int64_t TapeDevice::launched(GroupId group) const {
  return std::ranges::count_if(calls_, [group](const Call& call) {
    return call.op.group == group && !is_point_to_point(call.op.kind);
  });
}

void TapeDevice::hold(Stream stream, const Event& point) {
  streams_[stream.id].awaited.push_back({0, gate_of(point)});
}

std::pair<std::uint8_t, std::size_t> TapeDevice::gate_of(const Event& point) const {
  const auto mark = marks_.find({point.stream.id, point.position});
  return {point.stream.id, mark == marks_.end() ? 0 : mark->second};
}

std::optional<TapeDevice::Number> TapeDevice::start() {
  const auto next = std::ranges::find_if(unstarted_, [this](Number number) { return may_start(number); });
  if (next == unstarted_.end()) {
    return std::nullopt;
  }
  const Number number = *next;
  unstarted_.erase(next);
  Call& call = calls_[number];
  call.started = true;
  call.at = std::max(call.at, streams_[call.op.stream.id].at);
  running_ += is_point_to_point(call.op.kind) ? 0 : 1;
  return number;
}

bool TapeDevice::may_start(Number number) {
  const Call& call = calls_[number];
  if (!queues_) {
    return true;
  }
  const bool has_room = slots_ == 0 || running_ < slots_;
  const bool in_turn =
      is_point_to_point(call.op.kind) || (has_room && lanes_.at(call.op.group).front() == number);
  return in_turn && reaches(call.op.stream.id, call.gate) && starts_before_end(number);
}

// True if everything that it waits for had ended by then.
bool TapeDevice::starts_before_end(Number number) const {
  if (!over_at_end_) {
    return true;
  }
  const Call& call = calls_[number];
  for (Number before = 0; before < number && !is_point_to_point(call.op.kind); ++before) {
    const Op& other = calls_[before].op;
    if (other.group == call.op.group && !is_point_to_point(other.kind) && !over_at_end_->at(before)) {
      return false;
    }
  }
  return is_over_at_end(streams_.at(call.op.stream.id), call.gate);
}

bool TapeDevice::is_over_at_end(const StreamState& stream, std::size_t gate) const {
  for (std::size_t i = 0; i < gate; ++i) {
    const Held& held = stream.awaited[i];
    if (held.stream ? !is_over_at_end(streams_.at(held.stream->first), held.stream->second)
                    : !over_at_end_->at(held.call)) {
      return false;
    }
  }
  return true;
}

// A point is recorded before a stream waits for it, so it never comes after the point that the stream has to reach.
bool TapeDevice::reaches(std::uint8_t stream, std::size_t gate) {
  StreamState& state = streams_[stream];
  while (state.through < gate) {
    const Held held = state.awaited[state.through];
    if (held.stream ? !reaches(held.stream->first, held.stream->second) : !calls_[held.call].done) {
      return false;
    }
    state.at = std::max(state.at, held.stream ? streams_[held.stream->first].at : calls_[held.call].at);
    ++state.through;
  }
  return true;
}

void TapeDevice::finish(Number number, Time at) {
  Call& call = calls_[number];
  if (call.done) {
    return;
  }
  call.done = true;
  call.at = at;
  if (!is_point_to_point(call.op.kind)) {
    running_ -= call.started ? 1 : 0;
    std::erase(lanes_.at(call.op.group), number);
  }
  if (!call.started) {
    std::erase(unstarted_, number);
  }
}

void TapeDevice::finish_up_to(Number number, Time at) {
  const Op op = calls_[number].op;
  if (queues_ && !is_point_to_point(op.kind)) {
    const std::deque<Number> lane = lanes_.at(op.group);
    for (const Number before : lane) {
      if (before < number) {
        finish(before, at);
      }
    }
  }
  finish(number, at);
}

bool TapeDevice::is_over(const Event& point) {
  const auto [stream, gate] = gate_of(point);
  return reaches(stream, gate);
}

bool TapeDevice::is_idle() const {
  return std::ranges::all_of(calls_, [](const Call& call) { return call.done; });
}

bool TapeDevice::streams_are_idle() {
  std::vector<std::uint8_t> ids;
  for (const auto& [id, state] : streams_) {
    ids.push_back(id);
  }
  return std::ranges::all_of(ids,
                             [this](std::uint8_t id) { return reaches(id, streams_[id].awaited.size()); });
}

std::optional<TapeDevice::Number> TapeDevice::blocking(Number number) const {
  const Call& call = calls_[number];
  if (call.done) {
    return std::nullopt;
  }
  if (!queues_ || is_point_to_point(call.op.kind)) {
    return number;
  }
  const Call& front = calls_[lanes_.at(call.op.group).front()];
  if (front.started) {
    return lanes_.at(call.op.group).front();
  }
  const StreamState& stream = streams_.at(front.op.stream.id);
  return stream.through < front.gate ? blocking(stream) : running();
}

std::optional<TapeDevice::Number> TapeDevice::blocking(const StreamState& stream) const {
  if (stream.through == stream.awaited.size()) {
    return std::nullopt;
  }
  const Held& held = stream.awaited[stream.through];
  return held.stream ? blocking(streams_.at(held.stream->first)) : blocking(held.call);
}

std::optional<TapeDevice::Number> TapeDevice::blocking(const Event& point) const {
  const auto stream = streams_.find(point.stream.id);
  return stream == streams_.end() ? std::nullopt : blocking(stream->second);
}

std::optional<TapeDevice::Number> TapeDevice::blocking() const {
  for (const auto& [id, stream] : streams_) {
    if (const std::optional<Number> number = blocking(stream)) {
      return number;
    }
  }
  return running();
}

// Returns the first launched of the calls that the GPU is running.
std::optional<TapeDevice::Number> TapeDevice::running() const {
  const auto first =
      std::ranges::find_if(calls_, [](const Call& call) { return call.started && !call.done; });
  return first == calls_.end() ? std::nullopt : std::optional(static_cast<Number>(first - calls_.begin()));
}

}  // namespace rollcall::conformance
