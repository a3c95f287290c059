#include "scenarios/record/script_run.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "real/process/interrupts.h"
#include "scenarios/record/recorder_files.h"

namespace rollcall::scenario {
namespace {

using real::Descriptor;
using real::Pipe;

constexpr int no_torch = 77;  // the recorder's exit code for it

// Opens the socket that the ranks' processes connect to.
Descriptor listen_at(const std::string& path) {
  Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un here = {};
  here.sun_family = AF_UNIX;
  if (path.size() >= sizeof here.sun_path) {
    errno = ENAMETOOLONG;
    real::throw_errno(path.c_str());
  }
  path.copy(here.sun_path, path.size());
  if (!listener.is_open() ||
      ::bind(listener.number(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
      ::listen(listener.number(), SOMAXCONN) != 0) {
    real::throw_errno(path.c_str());
  }
  return listener;
}

// The Python process that forks the ranks when told to start. It ends them, and then itself, when `stop` is called or
// this process dies.
class Launcher {
 public:
  Launcher(const std::vector<std::string>& command, bool is_silent)
      : process_([&] {
          ::prctl(PR_SET_PDEATHSIG, 0);  // it must end its ranks before it dies: the pipe tells it when
          ::setpgid(0, 0);               // Ctrl-C is only for this process
          ::dup2(input_.read.number(), STDIN_FILENO);
          ::dup2(life_.write.number(), STDOUT_FILENO);
          if (is_silent) {
            ::dup2(Descriptor(::open("/dev/null", O_WRONLY)).number(), STDERR_FILENO);
          }
          real::execute(command);
        }) {
    input_.read.close();
    life_.write.close();
  }

  // Returns true if this Python has torch. Blocks until that is known; the import of torch continues meanwhile.
  bool has_torch() const {
    char byte = 0;
    ssize_t count = 0;
    while ((count = ::read(life_.read.number(), &byte, 1)) < 0 && errno == EINTR) {
    }
    return count == 1;
  }

  // Sends nothing to a launcher that has ended: its exit code says why.
  void go() const {
    if (::write(input_.write.number(), "g", 1) < 0 && errno != EPIPE) {
      real::throw_errno("write");
    }
  }
  void stop() { input_.write.close(); }
  // Ends it, and the ranks, when it is closed.
  const Descriptor& input() const { return input_.write; }
  // Its exit code.
  int wait() {
    const int status = process_.wait();
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
  }
  // Its standard output, which has no other use, and closes when the launcher ends.
  const Descriptor& life() const { return life_.read; }

 private:
  Pipe input_;
  Pipe life_;
  real::ChildProcess process_;
};

std::vector<std::string> command_of(const ScriptOptions& options, Answers answers, const std::string& python,
                                    const std::string& package, const std::string& folder,
                                    const std::string& records) {
  std::vector<std::string> command = {
      python,         package,
      "--mode",       answers == Answers::fake ? "fake" : "simulator",
      "--world-size", std::to_string(options.world_size),
      "--records",    records,
      "--hub",        folder + "/hub",
      "--patience",   std::to_string(options.patience.count()),
      "--jobs",       std::to_string(std::max(1U, std::thread::hardware_concurrency())),
      "--ranks-see",  std::to_string(options.gpus_per_host)};
  if (!options.pretends_gpus) {
    command.emplace_back("--no-pretend");
  }
  if (options.kernels) {
    command.emplace_back("--kernels");
    if (!options.kernels_from.empty()) {
      command.insert(command.end(), {"--kernels-from", options.kernels_from});
    }
  }
  if (options.begins_on_gpus) {
    command.emplace_back("--begin-on-gpus");
  }
  if (!options.says_that_it_pretends) {
    command.emplace_back("--quiet");
  }
  if (answers == Answers::fake && options.sampled > 0) {
    command.insert(command.end(), {"--sample", std::to_string(options.sampled)});
  }
  command.push_back(options.script);
  command.insert(command.end(), options.arguments.begin(), options.arguments.end());
  return command;
}

// The rank that has connected, from its first line: {"rank":3}. -1 for an unknown process.
Rank greeted_rank(const Descriptor& connection) {
  std::string line;
  char byte = 0;
  while (line.size() < 100 && ::recv(connection.number(), &byte, 1, 0) == 1 && byte != '\n') {
    line += byte;
  }
  Rank rank = -1;
  constexpr std::string_view begin = "{\"rank\":";
  if (line.starts_with(begin)) {
    std::from_chars(line.data() + begin.size(), line.data() + line.size(), rank);
  }
  return rank;
}

// One connection per rank, by rank; none if the launcher ends first.
std::vector<Descriptor> accept_ranks(const Descriptor& listener, const Launcher& launcher, Rank world_size) {
  std::vector<Descriptor> connections(static_cast<std::size_t>(world_size));
  for (Rank accepted = 0; accepted < world_size;) {
    std::array<pollfd, 2> ready = {{{listener.number(), POLLIN, 0}, {launcher.life().number(), POLLIN, 0}}};
    const int count = ::poll(ready.data(), ready.size(), -1);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0 || (ready[0].revents & POLLIN) == 0) {
      return {};
    }
    Descriptor connection(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
    const Rank rank = greeted_rank(connection);
    if (rank >= 0 && rank < world_size) {
      connections[static_cast<std::size_t>(rank)] = std::move(connection);
      ++accepted;
    }
  }
  return connections;
}

// The folder that ranks write to. Records of an earlier run there would be mistaken for this one's.
std::string records_folder(const std::string& wanted, const real::PrivateFolder& folder) {
  namespace fs = std::filesystem;
  const fs::path records = wanted.empty() ? fs::path(folder.path()) / "records" : fs::absolute(wanted);
  fs::create_directories(records);
  for (const fs::directory_entry& entry : fs::directory_iterator(records)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("rank") && name.ends_with(".jsonl")) {
      fs::remove(entry.path());
    }
  }
  return records;
}

// Starts them all, because a program that only selects a Python may take long, and returns the first in order that has
// torch. Those before it are removed from `pythons`; null if none has torch.
std::unique_ptr<Launcher> first_with_torch(
    std::vector<std::string>& pythons,
    const std::function<std::vector<std::string>(const std::string&)>& command, bool is_silent) {
  std::vector<std::unique_ptr<Launcher>> launchers;
  for (const std::string& python : pythons) {
    launchers.push_back(std::make_unique<Launcher>(command(python), is_silent));
  }
  for (std::unique_ptr<Launcher>& launcher : launchers) {
    if (launcher->has_torch() && real::Interrupts::pending() == 0) {
      return std::move(launcher);
    }
    pythons.erase(pythons.begin());
  }
  return nullptr;
}

SimulatedRanks simulate(const Descriptor& listener, Launcher& launcher, const std::string& records,
                        const ScriptOptions& options) {
  std::vector<Descriptor> connections = accept_ranks(listener, launcher, options.world_size);
  if (connections.empty()) {
    return {};
  }
  SimulatedRanks simulated = simulate_ranks(
      std::move(connections), records, options.gpus_per_host > 0 ? options.gpus_per_host : options.world_size,
      options.patience, options.timeline);
  if (simulated.stands_still || !simulated.silent.empty() || !simulated.problem.empty()) {
    launcher.stop();
  }
  return simulated;
}

// Ranks that were not run are copies of the first one that was.
void complete_sample(traces::ScriptRecord& record, Rank world_size) {
  for (const traces::ScriptRank& rank : record.ranks) {
    record.sampled.insert(rank.rank);
  }
  const traces::ScriptRank first = record.ranks.front();
  for (Rank rank = 0; rank < world_size; ++rank) {
    if (!record.sampled.contains(rank)) {
      record.ranks.push_back(first);
      record.ranks.back().rank = rank;
    }
  }
  std::ranges::sort(record.ranks, {}, &traces::ScriptRank::rank);
}

// Notes ranks that were asked for their position although they did not wait for others. Without a simulator, no rank
// waits.
void note_stopped(ScriptRun& run, Answers answers) {
  for (traces::ScriptRank& rank : run.record.ranks) {
    const bool waits = answers == Answers::simulator && !run.simulated.silent.contains(rank.rank);
    if (!rank.stack.empty() && !waits && rank.end.how == traces::ScriptEnd::How::unknown) {
      rank.end.how = traces::ScriptEnd::How::stopped;
      rank.end.site = rank.place;
    }
  }
}

ScriptRun run_once(const ScriptOptions& options, Answers answers) {
  real::Interrupts interrupts;  // lives as long as the folder and the processes
  const real::PrivateFolder folder;
  const std::string records = records_folder(options.records, folder);
  const std::string package = unpack_recorder(folder.path());
  const Descriptor listener = listen_at(folder.path() + "/hub");
  const auto command = [&](const std::string& python) {
    return command_of(options, answers, python, package, folder.path(), records);
  };
  std::vector<std::string> pythons = {"python3", "/usr/bin/python3"};
  if (!options.python.empty()) {
    pythons = {options.python};
  }
  const std::string tried = fmt::format("{}", fmt::join(pythons, ", "));
  while (const std::unique_ptr<Launcher> launcher = first_with_torch(pythons, command, options.is_silent)) {
    interrupts.cut_on_signal(launcher->input().number());
    launcher->go();
    ScriptRun run;
    if (answers == Answers::simulator) {
      run.simulated = simulate(listener, *launcher, records, options);
    }
    const int code = launcher->wait();
    interrupts.cut_on_signal(-1);
    run.was_interrupted = real::Interrupts::pending() != 0;
    run.record = traces::read_script_record(records);
    run.record.was_interrupted = run.was_interrupted;
    if (run.was_interrupted) {
      return run;
    }
    note_stopped(run, answers);
    const Rank ran = static_cast<Rank>(run.record.ranks.size());
    if (answers == Answers::fake && ran == options.sampled && ran < options.world_size && ran > 0) {
      complete_sample(run.record, options.world_size);
    }
    if (code != no_torch && !run.record.ranks.empty()) {
      return run;
    }
    pythons.erase(pythons.begin());  // its torch does not work
  }
  if (real::Interrupts::pending() != 0) {
    return {{}, {}, true};
  }
  throw NoTorch(fmt::format("no Python with torch.distributed (tried {}); choose one with --python", tried));
}

}  // namespace

ScriptRun run_script(const ScriptOptions& options, Answers answers) {
  ScriptRun run = run_once(options, answers);
  run.began_on_gpus = options.begins_on_gpus;
  if (run.was_interrupted || options.begins_on_gpus ||
      std::ranges::none_of(run.record.ranks, &traces::ScriptRank::begins_again)) {
    return run;
  }
  ScriptOptions again = options;
  again.begins_on_gpus = true;
  again.says_that_it_pretends = false;  // already done
  return run_script(again, answers);
}

traces::ScriptRecord run_live(const std::vector<std::string>& command, const std::string& records,
                              int& code) {
  const real::PrivateFolder folder;
  const std::string written = records_folder(records, folder);
  const std::string hook = unpack_recorder(folder.path()) + "/hook";
  const char* path = std::getenv("PYTHONPATH");
  const std::string places = path == nullptr ? hook : hook + ":" + path;
  real::ChildProcess job([&] {
    ::setenv("PYTHONPATH", places.c_str(), 1);
    ::setenv("ROLLCALL_RECORDS", written.c_str(), 1);
    real::execute(command);
  });
  const int status = job.wait();
  code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return traces::read_script_record(written);
}

}  // namespace rollcall::scenario
