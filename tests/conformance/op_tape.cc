#include "tests/conformance/op_tape.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/base/error.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/stream.h"

namespace rollcall::conformance {
namespace {

using Kind = TapeEvent::Kind;
using End = TapeEvent::End;

class TapeWriter final : public ForwardingBackend, private Streams, private ForwardingObserver {
 public:
  TapeWriter(Backend& inner, OpTape& tape)
      : ForwardingBackend(inner), ForwardingObserver(inner.observer()), tape_(tape) {}

  Streams* streams() override { return inner().streams() != nullptr ? this : nullptr; }
  Observer& observer() override { return *this; }

  Work issue(const Op& op) override {
    TapeEvent& event = note_issue(op, -1);
    Work work;
    try {
      inside(event, [&] { work = inner().issue(op); });
    } catch (const Error&) {
      event.refused = event.until == event.at;
      throw;
    }
    event.refused = work.seq() == Work::no_slot;  // its group's connections are closed: it meets no call
    return event.refused ? work : issued(op, work);
  }

  std::vector<Work> issue_batch(std::span<const Op> ops) override {
    const std::size_t before = self().events.size();
    for (const Op& op : ops) {
      note_issue(op, calls_).end = End::returned;
    }
    std::vector<Work> works;
    try {
      works = inner().issue_batch(ops);
    } catch (const Error&) {
      self().events.resize(before);
      throw;
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      works[i] = issued(ops[i], works[i]);
    }
    return works;
  }

  void wait(const Work& work) override {
    inside(note_wait({&work, 1}), [&] { inner().wait(work); });
  }
  void wait_for(const Work& work, Duration timeout) override {
    TapeEvent& event = note_wait({&work, 1});
    event.on_host = event.limited = true;
    inside(event, [&] { inner().wait_for(work, timeout); });
  }
  void wait_any(std::span<const Work> works) override {
    TapeEvent& event = note_wait(works);
    event.on_host = true;
    inside(event, [&] { inner().wait_any(works); });
  }
  void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) override {
    note_issue(op, -1).end = End::returned;
    TapeEvent& event = note(Kind::wait);
    event.calls = {calls_++};
    self().works.emplace_back();
    event.limited = op.rank == 0 && limits.timeout.has_value();
    inside(event, [&] { inner().monitored_barrier(op, limits); });
  }

  ProcessGroup manage(GroupCall call) override {
    TapeEvent& event = note(Kind::group_call);
    event.op = call.op;
    event.ranks = call.ranks;
    event.limited = call.timeout.has_value();
    ProcessGroup made;
    inside(event, [&] { made = inner().manage(std::move(call)); });
    know(made);
    return made;
  }
  ProcessGroup find_group(std::string_view name) override {
    const ProcessGroup group = inner().find_group(name);
    know(group);
    return group;
  }

  StoreReply store(const StoreCall& call) override {
    TapeEvent& event = note(Kind::store_call);
    event.op = call.op;
    event.keys = call.keys;
    event.sets = sets_key(call);
    event.want = call.want.value_or("");
    event.limited = call.timeout.has_value();
    StoreReply reply;
    inside(event, [&] { reply = inner().store(call); });
    event.got = reply.value;
    return reply;
  }

  void compute(Duration duration) override {
    inside(note(Kind::compute), [&] { inner().compute(duration); });
  }

 private:
  Event record_event(Stream stream) override {
    const Event point = inner().streams()->record_event(stream);
    TapeEvent& event = note(Kind::record);
    event.end = End::returned;
    event.point = point;
    return point;
  }
  void stream_wait(Stream stream, const Event& point) override {
    TapeEvent& event = note(Kind::stream_wait);
    event.stream = stream;
    event.point = point;
    inside(event, [&] { inner().streams()->stream_wait(stream, point); });
  }
  void synchronize(const Event& point) override {
    TapeEvent& event = note(Kind::wait_event);
    event.point = point;
    inside(event, [&] { inner().streams()->synchronize(point); });
  }
  void synchronize_device() override {
    inside(note(Kind::wait_device), [&] { inner().streams()->synchronize_device(); });
  }
  void settle(Storage& storage) override {
    TapeEvent& event = note(Kind::wait_tensor);
    event.calls = users_[&storage];
    inside(event, [&] { inner().streams()->settle(storage); });
  }
  void launch_kernel(Stream stream, const Kernel& kernel) override {
    inner().streams()->launch_kernel(stream, kernel);
  }
  void observe(const Observation& observation) override {
    TapeEvent& event = note(Kind::observe);
    event.end = End::returned;
    event.observation = observation;
    ForwardingObserver::observe(observation);
  }

  using Key = std::tuple<GroupId, std::int64_t, bool>;
  static Key key_of(const Work& work) { return {work.group(), work.seq(), work.is_point_to_point()}; }

  RankTape& self() { return tape_.ranks[static_cast<std::size_t>(this_rank().rank)]; }

  TapeEvent& note(Kind kind) {
    know(this_rank().world);
    TapeEvent& event = self().events.emplace_back();
    event.kind = kind;
    event.at = event.until = inner().now();
    return event;
  }

  TapeEvent& note_issue(const Op& op, std::int64_t batch) {
    TapeEvent& event = note(Kind::issue);
    event.op = without_values(op);
    event.batch = batch;
    return event;
  }

  TapeEvent& note_wait(std::span<const Work> works) {
    TapeEvent& event = note(Kind::wait);
    event.stream = this_rank().stream;
    for (const Work& work : works) {
      if (const auto known = numbers_.find(key_of(work)); known != numbers_.end()) {
        event.calls.push_back(known->second);
      }
    }
    return event;
  }

  // Records how the call ended, in every case: the run may end while the rank is in the call.
  template <typename Call>
  void inside(TapeEvent& event, Call&& call) {
    struct Clock {
      Backend& backend;
      TapeEvent& event;
      ~Clock() { event.until = backend.now(); }
    } const clock{inner(), event};
    try {
      call();
      event.end = End::returned;
    } catch (const Error&) {
      event.end = End::raised;
      throw;
    }
  }

  Work issued(const Op& op, const Work& work) {
    numbers_[key_of(work)] = calls_;
    for_each_tensor(op, [this](Storage* storage) { users_[storage].push_back(calls_); });
    ++calls_;
    self().works.push_back(work);
    return work;
  }

  template <typename Use>
  static void for_each_tensor(const Op& op, Use&& use) {
    for (Storage* storage : {op.tensors.input, op.tensors.output}) {
      if (storage != nullptr) {
        use(storage);
      }
    }
    for (const TensorList* list : {op.tensors.inputs, op.tensors.outputs}) {
      for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        use((*list)[i].storage());
      }
    }
  }

  void know(const ProcessGroup& group) {
    if (!group || group == ProcessGroup::non_member()) {
      return;
    }
    tape_.groups.resize(std::max<std::size_t>(tape_.groups.size(), group.id() + 1));
    tape_.groups[group.id()] = group.members();
  }

  Storage* stand_in(const Storage* storage, const Op& op) {
    return storage == nullptr
               ? nullptr
               : tape_.tensors.emplace_back(Tensor::meta(storage->shape, op.dtype, op.device)).storage();
  }
  const TensorList* stand_ins(const TensorList* tensors, const Op& op) {
    if (tensors == nullptr) {
      return nullptr;
    }
    TensorList& list = tape_.lists.emplace_back();
    for (const Tensor& tensor : *tensors) {
      list.push_back(Tensor::meta(tensor.shape(), op.dtype, op.device));
    }
    return &list;
  }
  Op without_values(Op op) {
    op.tensors.input = stand_in(op.tensors.input, op);
    op.tensors.output = stand_in(op.tensors.output, op);
    op.tensors.inputs = stand_ins(op.tensors.inputs, op);
    op.tensors.outputs = stand_ins(op.tensors.outputs, op);
    op.tensors.splits =
        op.tensors.splits == nullptr ? nullptr : &tape_.splits.emplace_back(*op.tensors.splits);
    return op;
  }

  OpTape& tape_;
  std::int64_t calls_ = 0;
  std::map<Key, std::int64_t> numbers_;
  std::map<const Storage*, std::vector<std::int64_t>> users_;  // looked up, never iterated
};

// Runs in every case when the rank ends, also if the run ends before the rank does.
struct EndOfTape {
  OpTape& tape;
  ~EndOfTape() {
    RankTape& self = tape.ranks[static_cast<std::size_t>(this_rank().rank)];
    tape.scopes = *this_rank().scopes;
    self.inputs = this_rank().inputs_taken;
    self.ran_out = this_rank().ran_out;
    for (const Work& work : self.works) {
      self.completed.push_back(work.is_completed());
    }
  }
};

}  // namespace

std::unique_ptr<Backend> tape_around(Backend& inner, OpTape& tape) {
  return std::make_unique<TapeWriter>(inner, tape);
}

void run_on_tape(OpTape& tape, const std::function<void()>& program) {
  const EndOfTape end{tape};
  RankTape& self = tape.ranks[static_cast<std::size_t>(this_rank().rank)];
  try {
    program();
    self.end = RankTape::End::finished;
  } catch (const Error& error) {
    self.end = RankTape::End::raised;
    self.type = error.type();
    self.text = error.what();
    throw;
  }
}

void note_deaths(OpTape& tape, const Report& report) {
  for (const RankClass& ranks : report.ranks) {
    for (const Rank rank :
         ranks.state == RankClass::State::crashed ? ranks.ranks.to_vector() : std::vector<Rank>()) {
      RankTape& dead = tape.ranks[static_cast<std::size_t>(rank)];
      dead.end = RankTape::End::died;
      dead.type = ranks.exception;
    }
  }
}

}  // namespace rollcall::conformance
