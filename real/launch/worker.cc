#include "real/launch/worker.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "sim/c10d/backend_traits.h"
#include "sim/c10d/rank_context.h"
#include "sim/train/checkpoint_files.h"

namespace rollcall::real {
namespace {

// Writes records to a pipe. If the other end is closed, the supervisor is gone, and this process should end, too.
class PipeSink final : public RecordSink {
 public:
  explicit PipeSink(int descriptor) : descriptor_(descriptor) {}

  void write(const Record& record) override {
    const std::string bytes = encode(record);
    const std::lock_guard lock(mutex_);
    write_or_exit(bytes);
  }

  // From std::terminate's handler: another thread may hold the lock forever.
  void write_last(const Record& record) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) {
      write_or_exit(encode(record));
    }
  }

 private:
  void write_or_exit(const std::string& bytes) const {
    if (!write_all(descriptor_, bytes)) {
      std::perror("this rank cannot write its log");
      ::_exit(EXIT_FAILURE);
    }
  }

  int descriptor_;
  std::mutex mutex_;
};

// For the terminate handler, which takes no arguments.
PipeSink* last_sink = nullptr;
const RunClock* last_clock = nullptr;

// The text that the C++ library's own handler would print.
std::string termination_text() {
  const std::exception_ptr current = std::current_exception();
  if (current == nullptr) {
    return "terminate called without an active exception";
  }
  int status = 0;
  char* const type =
      abi::__cxa_demangle(abi::__cxa_current_exception_type()->name(), nullptr, nullptr, &status);
  std::string text =
      fmt::format("terminate called after throwing an instance of '{}'", status == 0 ? type : "an exception");
  std::free(type);
  try {
    std::rethrow_exception(current);
  } catch (const std::exception& error) {
    text += fmt::format("\n  what():  {}", error.what());
  } catch (...) {
    // only its type is known
  }
  return text;
}

// Gloo throws in its own threads, where nothing can catch the exception: the process aborts. Logs why before it does.
[[noreturn]] void log_and_abort() {
  Record record;
  record.kind = Record::Kind::die;
  record.at = last_clock->now();
  record.text = termination_text();
  last_sink->write_last(record);
  std::abort();
}

// The supervisor's standard streams are for its report.
void redirect_streams(const std::string& errors) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int file = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(file >= 0 ? file : null, STDERR_FILENO);
}

void linger(int hold) {
  char byte = 0;
  while (::read(hold, &byte, 1) < 0 && errno == EINTR) {
  }
}

// Ends this process as if the signal had come from outside, because the program asked for it.
[[noreturn]] void die_of(std::string_view name) {
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* abbreviation = ::sigabbrev_np(signal);
    if (abbreviation != nullptr && name == fmt::format("SIG{}", abbreviation)) {
      std::signal(signal, SIG_DFL);
      ::kill(::getpid(), signal);
    }
  }
  std::abort();  // not the name of a signal, or of a signal that does not end a process
}

// Ends like Python: the process group's destructor lets calls in progress finish, so that others
// get this rank's part of them. A call that never finishes keeps the process until the supervisor releases it.
[[noreturn]] void leave(std::unique_ptr<Backend> backend, int hold) {
  std::thread([hold] {
    linger(hold);
    ::_exit(EXIT_SUCCESS);
  }).detach();
  backend.reset();
  ::_exit(EXIT_SUCCESS);
}

// What a process does when its program has ended.
enum class Departure { stays, leaves, is_torn_away };

// Runs the program and logs how it ended. A rank that failed because others are gone leaves at once, so that the next
// ones notice. Other ranks stay until all are done, or leave if options.finished_ranks_exit is set.
Departure run_program(const Worker& worker, Recorder& recorder) {
  using Kind = Record::Kind;
  try {
    worker.plan.program(worker.seat.rank);
    recorder.finish();
    recorder.note(Kind::finish);
  } catch (const LostPeerError& error) {
    recorder.note(Kind::raise, error.type(), error.what());
    return Departure::is_torn_away;
  } catch (const ProcessKilled& death) {
    die_of(death.signal);
  } catch (const StepLimitReached&) {
    recorder.note(Kind::limit, {}, {}, worker.plan.options.ops);
  } catch (const Error& error) {
    recorder.look_back();
    recorder.note(Kind::raise, error.type(), error.what());
  } catch (const std::exception& error) {
    recorder.note(Kind::raise, "std::exception", error.what());
  } catch (...) {
    recorder.note(Kind::raise, "exception", "of a type that is not a std::exception");
  }
  return worker.plan.options.finished_ranks_exit ? Departure::leaves : Departure::stays;
}

}  // namespace

std::string last_words(const std::string& path) {
  std::ifstream file(path);
  std::string words;
  for (std::string line; std::getline(file, line);) {
    words = line.empty() ? words : line;
  }
  return words;
}

Worker::Worker(const Plan& run, const RunClock& run_clock, Rank rank, std::string error_file)
    : plan(run),
      clock(run_clock),
      seat{.rank = rank,
           .groups = run.groups,
           .torch = run.options.torch,
           .timeout = run.options.timeout,
           .time_scale = run.options.time_scale,
           .eager = run.options.eager_communicators},
      errors(std::move(error_file)) {}

void run_worker(Worker worker) {
  worker.log.read.close();
  worker.hold.write.close();
  redirect_streams(worker.errors);
  PipeSink sink(worker.log.write.number());
  last_sink = &sink;
  last_clock = &worker.clock;
  std::set_terminate(log_and_abort);

  const Options& options = worker.plan.options;
  ScopeTable scopes;
  CheckpointFiles files;  // this process's own
  StepBudget steps(options.ops);
  RankContext context;
  context.scopes = &scopes;
  context.files = &files;
  context.torch = &traits_of(options.torch);
  context.rank = worker.seat.rank;
  context.world = ProcessGroup(worker.seat.groups.front(), worker.seat.rank);
  context.gpus = options.gpus_per_host;
  context.device =
      options.devices.empty() ? cpu_device : options.devices[static_cast<std::size_t>(worker.seat.rank)];
  context.is_device_bound = options.eager_communicators && traits_of(options.backend).queues_calls;
  context.steps = &steps;
  try {
    worker.seat.store = std::make_shared<Store>(std::move(worker.hub));
    std::unique_ptr<Backend> backend = worker.plan.backend.connect(worker.seat);
    const std::unique_ptr<Backend> decorated =
        options.decorate ? options.decorate(*backend, worker.seat.rank) : nullptr;
    Recorder recorder(decorated != nullptr ? *decorated : *backend, sink, worker.clock);
    context.backend = &recorder;
    if (auto* device = dynamic_cast<WatchedDevice*>(backend.get())) {
      device->watch(recorder);
    }
    detail::current_rank = &context;
    recorder.note(Record::Kind::begin);
    switch (run_program(worker, recorder)) {
      case Departure::stays:
        linger(worker.hold.read.number());
        break;
      case Departure::leaves:
        leave(std::move(backend), worker.hold.read.number());
      case Departure::is_torn_away:
        break;
    }
    ::_exit(EXIT_SUCCESS);
  } catch (const std::exception& error) {
    Record record;
    record.kind = Record::Kind::raise;
    record.at = worker.clock.now();
    record.type = "ConnectionError";
    record.text = error.what();
    sink.write(record);
  }
  ::_exit(EXIT_FAILURE);
}

}  // namespace rollcall::real
