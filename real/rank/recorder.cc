#include "real/rank/recorder.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "sim/c10d/rank_context.h"

namespace rollcall::real {
namespace {

std::vector<Shape> shapes_of(const TensorList& list) {
  std::vector<Shape> shapes;
  for (const Tensor& tensor : list) {
    shapes.push_back(tensor.shape());
  }
  return shapes;
}

template <typename T, typename F>
auto if_given(const T* pointer, F&& value_of) -> std::optional<decltype(value_of(*pointer))> {
  return pointer != nullptr ? std::optional(value_of(*pointer)) : std::nullopt;
}

void log_scopes(const ScopeTable& scopes, ScopeId scope, LoggedOp& logged) {
  for (; scope != no_scope; scope = scopes.parent(scope)) {
    const Pairing own = scopes.pairing(scope);
    const bool inherited = own == scopes.pairing(scopes.parent(scope));
    logged.names.emplace_back(scopes.name(scope));
    logged.pairings.emplace_back(own.strict && !inherited ? scopes.pairing_name(own) : std::string_view());
  }
  std::ranges::reverse(logged.names);
  std::ranges::reverse(logged.pairings);
}

LoggedOp log_op(const Op& op, const ScopeTable& scopes) {
  const auto shape_of = [](const Storage& storage) { return storage.shape; };
  LoggedOp logged;
  logged.op = op;
  logged.op.tensors = {};
  logged.op.scope = no_scope;
  logged.op.site.file = nullptr;
  logged.file = op.site.file != nullptr ? op.site.file : "";
  logged.input = if_given(op.tensors.input, shape_of);
  logged.output = if_given(op.tensors.output, shape_of);
  logged.inputs = if_given(op.tensors.inputs, shapes_of);
  logged.outputs = if_given(op.tensors.outputs, shapes_of);
  logged.splits = if_given(op.tensors.splits, [](const SplitSizes& splits) { return splits; });
  log_scopes(scopes, op.scope, logged);
  return logged;
}

}  // namespace

Record Recorder::make(Record::Kind kind, std::int64_t call) const {
  Record record;
  record.kind = kind;
  record.at = clock_.now();
  record.call = call;
  record.inputs =
      detail::current_rank != nullptr ? this_rank().inputs_taken : -1;  // null: its program is over
  return record;
}

void Recorder::note(Record::Kind kind, const std::string& type, const std::string& text, std::int64_t value) {
  Record record = make(kind, -1);
  record.type = type;
  record.text = text;
  record.value = value;
  sink_.write(record);
}

void Recorder::log_error(Record::Kind kind, std::int64_t call, const Error& error) {
  Record record = make(kind, call);
  record.type = error.type();
  record.text = error.what();
  record.lost_peer = dynamic_cast<const LostPeerError*>(&error) != nullptr;
  sink_.write(record);
}

Record Recorder::make_issue(const Op& op, std::int64_t batch) {
  Record record = make(Record::Kind::issue, calls_++);
  record.value = batch;
  record.op = log_op(op, *this_rank().scopes);
  return record;
}

std::int64_t Recorder::log_issue(const Op& op, std::int64_t batch) {
  const Record record = make_issue(op, batch);
  sink_.write(record);
  return record.call;
}

Work Recorder::accepted(const Op& op, std::int64_t number, const Work& work) {
  const Key key = key_of(work);
  open_[key] = {number, work, results_of(op), op.kind == OpKind::recv && op.root < 0};
  if (device_ != nullptr) {
    note_launch(op, key);
  }
  return work;
}

// ---- Calls on a GPU ----

// The host must ask before it reads or writes the results: Storage::pending.
void Recorder::note_launch(const Op& op, Key key) {
  Call& call = open_[key];
  for (const Tensor& given : given_tensors(op)) {
    if (const auto user = users_.find(given.storage()); user != users_.end()) {
      user->second = call.number;
    }
  }
  for (const Tensor& result : call.results) {
    if (const auto writer = writers_.find(result.storage());
        writer != writers_.end() && writer->second != key) {
      Call& before = open_.at(writer->second);
      before.is_closed = true;  // the host will never see its results
      let_go(before);
    }
    if (writers_.emplace(result.storage(), key).second) {
      result.storage()->begin_use();
      users_[result.storage()] = call.number;
    }
  }
}

// Lets the host touch the call's results.
void Recorder::let_go(Call& call) {
  for (const Tensor& result : call.results) {
    if (writers_.erase(result.storage()) > 0) {
      users_.erase(result.storage());
      result.storage()->end_use();
    }
  }
}

bool Recorder::note_completed(Open call) {
  if (call->second.is_complete || !inner().is_completed(call->second.work)) {
    return call->second.is_complete;
  }
  call->second.is_complete = true;
  Record record = make(Record::Kind::complete, call->second.number);
  record.ran_from = call->second.ran_from;
  record.ran_to = call->second.ran_to;
  sink_.write(record);
  return true;
}

// A group's collectives complete in their order.
bool Recorder::note_completed() {
  bool any = false;
  for (auto call = open_.begin(); call != open_.end();) {
    const auto next = std::next(call);
    const bool was_complete = call->second.is_complete;
    if (!note_completed(call) && !std::get<2>(call->first)) {
      call = std::find_if(next, open_.end(), [&](const auto& other) {
        return std::get<0>(other.first) != std::get<0>(call->first) || std::get<2>(other.first);
      });
      continue;
    }
    any = any || was_complete != call->second.is_complete;
    if (call->second.is_complete && (call->second.is_closed || call->second.results.empty())) {
      open_.erase(call);
    }
    call = next;
  }
  return any;
}

void Recorder::ran(const Work& work, Duration from, Duration to) {
  if (const auto call = open_.find(key_of(work)); call != open_.end()) {
    call->second.ran_from = device_clock_ + from;
    call->second.ran_to = device_clock_ + to;
  }
}

// Called repeatedly, so only changes are written. Any record of a rank means that it continues, so its wait is written
// last.
void Recorder::blocked_in(const Work& work) {
  const bool any = note_completed();
  const auto call = open_.find(key_of(work));
  if (call != open_.end() && (any || blocked_in_ != call->second.number)) {
    blocked_in_ = call->second.number;
    sink_.write(make(Record::Kind::wait, blocked_in_));
  }
}

void Recorder::connecting() {
  const bool any = note_completed();
  if (any || !std::exchange(is_connecting_, true)) {
    sink_.write(make(Record::Kind::wait, issuing_));
  }
}

void Recorder::connected() {
  is_connecting_ = false;
  sink_.write(make(Record::Kind::connect, issuing_));
}

// Logs the call's results if they have reached the host.
void Recorder::note_seen(Open call) {
  const TensorList& results = call->second.results;
  const auto is_here = [](const Tensor& result) { return result.storage()->pending == 0; };
  if (note_completed(call) && std::ranges::all_of(results, is_here)) {
    Record record = make(Record::Kind::result, call->second.number);
    record.digest = digest_of(results);
    sink_.write(record);
  }
}

// The host is about to see the call's results. The call's other results are fetched as well, if that does not mean
// waiting for later calls.
void Recorder::close(Open call) {
  Call& own = call->second;
  std::vector<Storage*> alone;
  for (const Tensor& result : own.results) {
    if (users_.at(result.storage()) == own.number) {
      alone.push_back(result.storage());
    }
  }
  let_go(own);
  for (Storage* storage : alone) {
    if (storage->pending != 0) {
      device_->settle(*storage);
    }
  }
  note_seen(call);
  own.is_closed = true;
}

void Recorder::settle(Storage& storage) {
  blocked_in_ = -1;
  if (const auto writer = writers_.find(&storage); writer != writers_.end()) {
    close(open_.find(writer->second));
  }
  if (storage.pending != 0) {
    device_->settle(storage);
  }
  note_completed();
}

void Recorder::synchronize(const Event& event) {
  blocked_in_ = -1;
  device_->synchronize(event);
  note_completed();
}

void Recorder::synchronize_device() {
  blocked_in_ = -1;
  device_->synchronize_device();
  note_completed();
}

void Recorder::finish() {
  if (device_ == nullptr) {
    return;
  }
  for (int id = 0; id <= this_rank().streams; ++id) {
    synchronize(device_->record_event(Stream{static_cast<std::uint8_t>(id)}));
  }
  while (!writers_.empty()) {
    const auto call = open_.find(writers_.begin()->second);
    if (note_completed(call)) {
      close(call);
    } else {
      let_go(call->second);  // the program does not wait for it
    }
  }
}

void Recorder::look_back() {
  constexpr auto step = std::chrono::milliseconds(5);
  for (int steps = 0; device_ != nullptr && steps < 40; ++steps) {
    note_completed();
    if (std::ranges::all_of(open_, [](const auto& entry) { return entry.second.is_complete; })) {
      return;
    }
    std::this_thread::sleep_for(step);
  }
}

Recorder::~Recorder() {
  while (!writers_.empty()) {
    const auto call = open_.find(writers_.begin()->second);
    let_go(call->second);
    note_seen(call);
  }
  if (device_ != nullptr) {
    note_completed();
  }
}

Work Recorder::issue(const Op& op) {
  const std::int64_t number = issuing_ = log_issue(op, no_batch);
  try {
    return accepted(op, number, inner().issue(op));
  } catch (const Error& error) {
    log_error(Record::Kind::refuse, number, error);
    throw;
  }
}

std::vector<Work> Recorder::issue_batch(std::span<const Op> ops) {
  const std::int64_t first = issuing_ = calls_;
  for (const Op& op : ops) {
    log_issue(op, first);
  }
  try {
    std::vector<Work> works = inner().issue_batch(ops);
    for (std::size_t i = 0; i < works.size(); ++i) {
      works[i] = accepted(ops[i], first + static_cast<std::int64_t>(i), works[i]);
    }
    return works;
  } catch (const Error& error) {
    for (std::int64_t call = first; call < calls_; ++call) {
      log_error(Record::Kind::refuse, call, error);  // a batch is refused as a whole
    }
    throw;
  }
}

void Recorder::wait(const Work& work) {
  wait_on_host(work, [&] { inner().wait(work); });
}

void Recorder::wait_for(const Work& work, Duration timeout) {
  wait_on_host(work, [&] { inner().wait_for(work, timeout); });
}

void Recorder::wait_on_host(const Work& work, const std::function<void()>& wait) {
  const auto found = open_.find(key_of(work));
  if (found == open_.end()) {
    wait();  // it has completed before
    return;
  }
  Call& call = found->second;
  blocked_in_ = -1;
  if (device_ == nullptr) {
    sink_.write(make(Record::Kind::wait, call.number));
  }
  try {
    wait();
  } catch (const Error& error) {
    log_error(Record::Kind::fail, call.number, error);
    throw;
  }
  if (device_ != nullptr) {
    note_completed(found);
    return;
  }
  Record record = make(Record::Kind::complete, call.number);
  record.digest = digest_of(call.results);
  if (call.from_anyone) {
    record.source = sources_[found->first] = inner().source_of(work);
  }
  sink_.write(record);
  open_.erase(found);
}

// In the log, the rank waits in the first of the calls; each has its own record once it is waited for.
void Recorder::wait_any(std::span<const Work> works) {
  const auto is_open = [this](const Work& work) { return open_.contains(key_of(work)); };
  blocked_in_ = -1;
  if (device_ == nullptr && std::ranges::all_of(works, is_open)) {
    sink_.write(make(Record::Kind::wait, open_.at(key_of(works.front())).number));
  }
  inner().wait_any(works);
}

template <typename Run>
auto Recorder::log_blocking(const Record& issue, Run&& run) {
  sink_.write(issue);
  sink_.write(make(Record::Kind::wait, issue.call));
  Record end = make(Record::Kind::complete, issue.call);
  try {
    const auto result = run(end);
    end.at = clock_.now();
    sink_.write(end);
    return result;
  } catch (const NotImplementedError& error) {
    log_error(Record::Kind::refuse, issue.call, error);
    throw;
  } catch (const Error& error) {
    log_error(Record::Kind::fail, issue.call, error);
    throw;
  }
}

ProcessGroup Recorder::manage(GroupCall call) {
  Record issue = make_issue(call.op, no_batch);
  issue.op.ranks = call.ranks;
  issue.op.group_name = call.name;
  issue.op.limit = call.timeout;
  return log_blocking(issue, [&](Record&) { return inner().manage(std::move(call)); });
}

void Recorder::monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) {
  Record issue = make_issue(op, no_batch);
  issue.op.limit = limits.timeout;
  log_blocking(issue, [&](Record&) {
    inner().monitored_barrier(op, limits);
    return true;
  });
}

StoreReply Recorder::store(const StoreCall& call) {
  Record issue = make_issue(call.op, no_batch);
  issue.op.store = call;
  issue.op.limit = call.timeout;
  return log_blocking(issue, [&](Record& end) {
    StoreReply reply = inner().store(call);
    end.text = reply.value;
    return reply;
  });
}

Rank Recorder::source_of(const Work& work) {
  const auto known = sources_.extract(key_of(work));
  return known.empty() ? inner().source_of(work) : known.mapped();
}

// A message that its program has let go of on gloo never completes, as far as anybody can know.
bool Recorder::drop(const Work& work) {
  const auto call = open_.find(key_of(work));
  if (device_ == nullptr && call != open_.end()) {
    sink_.write(make(Record::Kind::drop, call->second.number));
    open_.erase(call);
  }
  return inner().drop(work);
}

void Recorder::print(std::string_view text) {
  note(Record::Kind::print, {}, std::string(text));
  ForwardingObserver::print(text);
}

void Recorder::warn(std::string_view text) {
  note(Record::Kind::warn, {}, std::string(text));
  ForwardingObserver::warn(text);
}

void Recorder::observe(const Observation& observation) {
  Record record = make(Record::Kind::observe, -1);
  record.op = log_op(observation.op, *this_rank().scopes);
  record.observation = observation;
  record.text = observation.site.file != nullptr ? observation.site.file : "";
  sink_.write(record);
  ForwardingObserver::observe(observation);
}

}  // namespace rollcall::real
