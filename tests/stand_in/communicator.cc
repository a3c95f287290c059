#include "tests/stand_in/communicator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include <unistd.h>

#include "tests/stand_in/arithmetic.h"
#include "tests/stand_in/memory.h"
#include "tests/stand_in/rules.h"

namespace rollcall::stand_in {
namespace {

// Distinct hosts have distinct digests; a process can set its host with NCCL_HOSTID.
std::uint64_t host_digest() {
  const char* const name = std::getenv("NCCL_HOSTID");
  return name != nullptr ? std::hash<std::string_view>()(name) | 1 : 0;
}

std::size_t bytes_of_call(const Call& call) { return call.count * size_of(call.type); }

}  // namespace

Communicator::Communicator(std::shared_ptr<Shared> shared, int rank, int size, int device, bool blocks)
    : shared_(std::move(shared)),
      rank_(rank),
      size_(size),
      device_(device),
      blocks_(blocks),
      sent_(static_cast<std::size_t>(size)),
      received_(static_cast<std::size_t>(size)) {}

bool Communicator::until(const std::function<bool()>& condition) {
  return wait_for(*shared_, condition, [this] { return is_aborted_.load(); });
}

ncclResult_t Communicator::connect() {
  if (!blocks_) {
    std::thread([self = shared_from_this()] { self->join(); }).detach();
    return ncclInProgress;
  }
  join();
  return state_;
}

bool Communicator::is_duplicate() const {
  for (int other = 0; other < size_; ++other) {
    const Member& member = shared_->members[other];
    const Member& own = shared_->members[rank_];
    if (other != rank_ && member.device == own.device && member.host == own.host) {
      return true;
    }
  }
  return false;
}

bool Communicator::join() {
  int nobody = 0;
  require(shared_->size.compare_exchange_strong(nobody, size_) || nobody == size_,
          "members of one communicator gave different sizes");
  Member& own = shared_->members[rank_];
  own.memory = memory_descriptor();
  own.device = device_;
  own.host = host_digest();
  require(own.process.exchange(::getpid()) == 0, "a rank of a communicator came twice");
  announce(*shared_);
  const bool all_came = until([this] {
    return std::all_of(shared_->members, shared_->members + size_,
                       [](const Member& member) { return member.process != 0; });
  });
  if (!all_came) {
    return false;
  }
  if (is_duplicate()) {
    state_ = ncclInvalidUsage;
    return false;
  }
  for (int member = 0; member < size_; ++member) {
    const Member& other = shared_->members[member];
    memories_.push_back(open_memory(other.process, other.memory));
    if (memories_.back() == nullptr) {
      state_ = ncclRemoteError;
      return false;
    }
  }
  state_ = ncclSuccess;
  return true;
}

// The first query after a launch finds it in progress; the second issues it and finds it issued.
ncclResult_t Communicator::state() {
  const std::lock_guard lock(mutex_);
  if (!held_.empty()) {
    if (!std::exchange(was_asked_, true)) {
      return ncclInProgress;
    }
    for (const Call& call : held_) {
      call.stream->let_go();
    }
    issue(std::exchange(held_, {}));
    state_ = ncclSuccess;
  }
  return state_;
}

ncclResult_t Communicator::launch(std::vector<Call> calls) {
  const std::lock_guard lock(mutex_);
  if (blocks_) {
    issue(calls);
    return ncclSuccess;
  }
  for (const Call& call : calls) {
    call.stream->hold();
  }
  held_ = std::move(calls);
  was_asked_ = false;
  state_ = ncclInProgress;
  return ncclInProgress;
}

// The kernel runs on the first stream; the others wait for it, and it waits for them. A communicator's kernels run in
// the order in which they were issued.
void Communicator::issue(const std::vector<Call>& calls) {
  const std::shared_ptr<Stream> main = calls.front().stream;
  std::vector<std::shared_ptr<Stream>> others;
  for (const Call& call : calls) {
    if (call.stream != main && std::ranges::find(others, call.stream) == others.end()) {
      others.push_back(call.stream);
    }
  }
  for (const std::shared_ptr<Stream>& other : others) {
    const auto reached = std::make_shared<Point>();
    other->push([reached] { reached->pass(); });
    main->push([reached] { reached->wait(); });
  }
  const SharedPoint before = main->is_capturing() ? nullptr : last_;
  const auto done = std::make_shared<Point>();
  main->push([self = shared_from_this(), calls, before, done] {
    if (before != nullptr) {
      before->wait();
    }
    self->run(calls);
    done->pass();
  });
  last_ = main->is_capturing() ? nullptr : done;
  for (const std::shared_ptr<Stream>& other : others) {
    other->push([done] { done->wait(); });
  }
}

void Communicator::run(const std::vector<Call>& calls) {
  {
    const std::lock_guard lock(running_mutex_);
    ++running_;
  }
  bool goes_on = !is_aborted_;
  for (const Call& call : calls) {
    goes_on = goes_on && (is_message(call.function) || run_collective(call));
  }
  if (goes_on) {
    run_messages(calls);
  }
  const std::lock_guard lock(running_mutex_);
  --running_;
  stopped_.notify_all();
}

// True if all members make the same call, as far as a kernel would notice. Different types and operators pass.
bool Communicator::agree(std::uint64_t number) const {
  const Descriptor& own = shared_->members[rank_].calls[number % calls_kept];
  return std::all_of(shared_->members, shared_->members + size_, [&](const Member& member) {
    const Descriptor& call = member.calls[number % calls_kept];
    return call.function == own.function && call.bytes == own.bytes && call.root == own.root;
  });
}

bool Communicator::run_collective(const Call& call) {
  const std::uint64_t number = collectives_++;
  Member& own = shared_->members[rank_];
  own.calls[number % calls_kept] = {static_cast<int>(call.function),
                                    call.type,
                                    call.op,
                                    call.scales ? 1 : 0,
                                    call.root,
                                    call.factor,
                                    call.count,
                                    bytes_of_call(call),
                                    call.from != nullptr ? offset_of(call.from) : 0};
  own.arrived = number + 1;
  announce(*shared_);
  const auto all = [&](auto&& count) {
    return until([&] {
      return std::all_of(shared_->members, shared_->members + size_,
                         [&](const Member& member) { return count(member) > number; });
    });
  };
  if (!all([](const Member& member) { return member.arrived.load(); })) {
    return false;
  }
  if (!agree(number)) {
    return until([] { return false; });  // a kernel whose steps do not match the others' spins forever
  }
  std::vector<std::byte> result;
  compute(call, number, result);
  own.read = number + 1;
  announce(*shared_);
  if (!all([](const Member& member) { return member.read.load(); })) {
    return false;
  }
  if (!result.empty()) {
    std::memcpy(bytes_of(call.into), result.data(), result.size());
  }
  return true;
}

void Communicator::compute(const Call& call, std::uint64_t number, std::vector<std::byte>& result) const {
  const std::size_t bytes = bytes_of_call(call);
  const auto input = [&](int member) {
    return memory_of(member) + shared_->members[member].calls[number % calls_kept].from;
  };
  const auto reduce_from = [&](std::size_t offset) {
    std::vector<Summand> summands;
    for (int member = 0; member < size_; ++member) {
      summands.push_back(
          {input(member) + offset, shared_->members[member].calls[number % calls_kept].factor});
    }
    result.resize(bytes);
    reduce(call.type, call.op, call.scales, summands, result.data(), call.count);
  };
  switch (call.function) {
    case Function::all_reduce:
      return reduce_from(0);
    case Function::reduce_scatter:
      return reduce_from(static_cast<std::size_t>(rank_) * bytes);
    case Function::reduce:
      return rank_ == call.root ? reduce_from(0) : void();
    case Function::broadcast:
      result.assign(input(call.root), input(call.root) + bytes);
      return;
    case Function::all_gather:
      for (int member = 0; member < size_; ++member) {
        result.insert(result.end(), input(member), input(member) + bytes);
      }
      return;
    case Function::send:
    case Function::recv:
      return;
  }
}

// The messages of a group progress together; those of one direction between two members run one after the other.
bool Communicator::run_messages(const std::vector<Call>& calls) {
  struct Open {
    const Call* call;
    std::uint64_t number;
    bool posted = false;
    bool done = false;
  };
  std::vector<Open> open;
  for (const Call& call : calls) {
    if (is_message(call.function)) {
      auto& counts = call.function == Function::send ? sent_ : received_;
      open.push_back({&call, counts[static_cast<std::size_t>(call.root)]++});
    }
  }
  return until([&] {
    bool all_done = true;
    for (Open& message : open) {
      message.done = message.done || (message.call->function == Function::send
                                          ? step_send(*message.call, message.number, message.posted)
                                          : step_receive(*message.call, message.number));
      all_done = all_done && message.done;
    }
    return all_done;
  });
}

// Nothing is buffered: a send is over when its receiver has read it.
bool Communicator::step_send(const Call& call, std::uint64_t number, bool& posted) {
  Channel& channel = shared_->channels[rank_][call.root];
  if (!posted && channel.posted == number && channel.taken == number) {
    channel.from = offset_of(call.from);
    channel.bytes = bytes_of_call(call);
    channel.posted = number + 1;
    posted = true;
    announce(*shared_);
  }
  return channel.taken > number;
}

bool Communicator::step_receive(const Call& call, std::uint64_t number) {
  Channel& channel = shared_->channels[call.root][rank_];
  if (channel.posted <= number || channel.bytes != bytes_of_call(call)) {
    return false;  // different sizes never match
  }
  if (channel.bytes > 0) {
    std::memcpy(bytes_of(call.into), memory_of(call.root) + channel.from, channel.bytes);
  }
  channel.taken = number + 1;
  announce(*shared_);
  return true;
}

void Communicator::abort() {
  is_aborted_ = true;
  {
    const std::lock_guard lock(mutex_);
    for (const Call& call : std::exchange(held_, {})) {
      call.stream->let_go();
    }
  }
  announce(*shared_);
  wait_for_kernels();
}

void Communicator::wait_for_kernels() {
  std::unique_lock lock(running_mutex_);
  stopped_.wait(lock, [this] { return running_ == 0; });
}

ncclResult_t Communicator::do_meanwhile(const std::function<ncclResult_t()>& work) {
  state_ = ncclInProgress;
  std::thread([self = shared_from_this(), work] {
    const ncclResult_t result = work();
    self->state_ = result == ncclInProgress ? ncclSuccess : result;
  }).detach();
  return ncclInProgress;
}

void Communicator::finalize() {
  if (const SharedPoint last = last_) {
    last->wait();
  }
  shared_->members[rank_].finalized = true;
  announce(*shared_);
  until([this] {
    return std::all_of(shared_->members, shared_->members + size_,
                       [](const Member& member) { return member.finalized.load(); });
  });
}

bool Communicator::is_idle() {
  const std::lock_guard lock(mutex_);
  return held_.empty() && (last_ == nullptr || last_->is_passed());
}

// All members announce their colors; the first member of each color by key makes the new rendezvous.
std::shared_ptr<Communicator> Communicator::split(int color, int key, bool blocks) {
  const std::uint64_t number = ++splits_;
  Member& own = shared_->members[rank_];
  own.color = color;
  own.key = key;
  own.split = number;
  announce(*shared_);
  const auto all = [&](auto&& count) {
    return until([&] {
      return std::all_of(shared_->members, shared_->members + size_,
                         [&](const Member& member) { return count(member) >= number; });
    });
  };
  if (!all([](const Member& member) { return member.split.load(); })) {
    return nullptr;
  }
  std::vector<std::pair<int, int>> part;  // by key, then rank
  for (int member = 0; member < size_; ++member) {
    if (shared_->members[member].color == color) {
      part.emplace_back(shared_->members[member].key, member);
    }
  }
  own.split_read = number;
  announce(*shared_);
  if (!all([](const Member& member) { return member.split_read.load(); }) || color < 0) {
    return nullptr;
  }
  std::ranges::sort(part);
  Member& maker = shared_->members[part.front().second];
  if (&maker == &own) {
    const Address address = make_rendezvous();
    own.part_process = address.process;
    own.part_number = address.number;
    own.part = number;
    announce(*shared_);
  }
  if (!until([&] { return maker.part >= number; })) {
    return nullptr;
  }
  const auto place = std::ranges::find(part, std::pair(key, rank_));
  return std::make_shared<Communicator>(open_rendezvous({maker.part_process, maker.part_number}),
                                        static_cast<int>(place - part.begin()), static_cast<int>(part.size()),
                                        device_, blocks);
}

}  // namespace rollcall::stand_in
