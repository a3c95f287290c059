#include "tests/conformance/op_tape.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/dist/error.h"
#include "sim/dist/rank_context.h"

namespace rollcall::conformance {
namespace {

class TapeWriter final : public ForwardingBackend {
 public:
  TapeWriter(Backend& inner, OpTape& tape) : ForwardingBackend(inner), tape_(tape) {}

  Work issue(const Op& op) override {
    note_issue(op, -1);
    try {
      return issued(inner().issue(op));
    } catch (const Error&) {
      self().events.pop_back();  // refused: it never was
      throw;
    }
  }

  std::vector<Work> issue_batch(std::span<const Op> ops) override {
    const std::int64_t first = calls_;
    for (const Op& op : ops) {
      note_issue(op, first);
    }
    calls_ = first;
    std::vector<Work> works;
    try {
      works = inner().issue_batch(ops);
    } catch (const Error&) {
      self().events.resize(self().events.size() - ops.size());
      throw;
    }
    for (Work& work : works) {
      work = issued(work);
    }
    calls_ = first + static_cast<std::int64_t>(ops.size());
    return works;
  }

  void wait(const Work& work) override {
    const auto known = numbers_.find(key_of(work));
    TapeEvent event{.kind = TapeEvent::Kind::wait};
    event.call = known == numbers_.end() ? -1 : known->second;
    inside(event, [&] { inner().wait(work); });
  }
  void wait_any(std::span<const Work> works) override {
    TapeEvent event{.kind = TapeEvent::Kind::wait};
    event.call = numbers_.at(key_of(works.front()));
    inside(event, [&] { inner().wait_any(works); });
  }
  void synchronize(const Event& point) override {
    inside({.kind = TapeEvent::Kind::synchronize}, [&] { inner().synchronize(point); });
  }
  void synchronize_device() override {
    inside({.kind = TapeEvent::Kind::synchronize}, [&] { inner().synchronize_device(); });
  }
  void settle(Storage& storage) override {
    inside({.kind = TapeEvent::Kind::synchronize}, [&] { inner().settle(storage); });
  }

  ProcessGroup manage(GroupCall call) override {
    TapeEvent event{.kind = TapeEvent::Kind::group_call};
    event.op = call.op;
    event.ranks = call.ranks;
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
    TapeEvent event{.kind = TapeEvent::Kind::store_call};
    event.op = call.op;
    event.keys = call.keys;
    event.want = call.want.value_or("");
    StoreReply reply;
    inside(event, [&] { reply = inner().store(call); });
    self().events.back().got = reply.value;
    return reply;
  }

  void compute(Duration duration) override {
    TapeEvent event{.kind = TapeEvent::Kind::compute};
    event.duration = duration;
    inside(event, [&] { inner().compute(duration); });
  }
  void observe(const Observation& observation) override {
    TapeEvent event{.kind = TapeEvent::Kind::observe, .returned = true};
    event.observation = observation;
    self().events.push_back(event);
    inner().observe(observation);
  }

 private:
  using Key = std::tuple<GroupId, std::int64_t, bool>;
  static Key key_of(const Work& work) { return {work.group(), work.seq(), work.is_point_to_point()}; }

  RankTape& self() { return tape_.ranks[static_cast<std::size_t>(this_rank().rank)]; }

  template <typename Call>
  void inside(TapeEvent event, Call&& call) {
    know(this_rank().world);
    TapeEvent& noted = self().events.emplace_back(std::move(event));
    try {
      call();
    } catch (const Error&) {
      noted.returned = true;
      throw;
    }
    noted.returned = true;  // not so when the run ends around the rank
  }

  void note_issue(const Op& op, std::int64_t batch) {
    know(this_rank().world);
    TapeEvent event{.kind = TapeEvent::Kind::issue, .returned = true};
    event.op = without_values(op);
    event.call = calls_++;
    event.batch = batch;
    self().events.push_back(event);
    if (batch < 0) {
      --calls_;  // counted once the backend has taken it
    }
  }

  Work issued(const Work& work) {
    numbers_[key_of(work)] = calls_++;
    return work.is_point_to_point()
               ? Work::point_to_point(*this, work.group(), work.rank(), work.seq(), work.message())
               : Work(*this, work.group(), work.rank(), work.seq());
  }

  void know(const ProcessGroup& group) {
    if (!group) {
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
};

// However the rank ends, also when the run ends around it.
struct EndOfTape {
  OpTape& tape;
  ~EndOfTape() {
    tape.scopes = *this_rank().scopes;
    tape.ranks[static_cast<std::size_t>(this_rank().rank)].inputs = this_rank().inputs_taken;
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

}  // namespace rollcall::conformance
