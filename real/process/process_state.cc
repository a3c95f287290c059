#include "real/process/process_state.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

namespace rollcall::real {

namespace {

constexpr int generations_max = 3;                     // workers of a data loader, and their descendants
constexpr std::uint64_t bytes_per_fault = 128 * 1024;  // Linux's default readahead
constexpr double busy_share = 0.2;                     // of a core
constexpr double wants_share = 0.8;                    // of the time, on a machine that grants less
constexpr std::uint64_t busy_bytes = 256 * 1024;       // a second

// The fields of /proc/PID/stat after the name, which may hold anything; the first is the state (proc(5), field 3).
std::vector<std::string> fields_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  const std::size_t end = line.rfind(") ");
  std::vector<std::string> fields;
  if (end != std::string::npos) {
    std::istringstream rest(line.substr(end + 2));
    for (std::string field; rest >> field;) {
      fields.push_back(std::move(field));
    }
  }
  return fields;
}

std::uint64_t number(const std::vector<std::string>& fields, std::size_t field) {
  constexpr std::size_t first = 3;
  return field - first < fields.size() ? std::strtoull(fields[field - first].c_str(), nullptr, 10) : 0;
}

void add_io(pid_t process, ProcessState& state) {
  std::ifstream file(fmt::format("/proc/{}/io", process));
  std::string name;
  std::uint64_t value = 0;
  while (file >> name >> value) {
    if (name == "rchar:" || name == "wchar:") {
      state.io_bytes += value;
    }
  }
}

// The time that a thread has run, and has waited for a processor (Documentation/scheduler/sched-stats.rst).
std::optional<std::uint64_t> runnable_ns(const std::filesystem::path& thread) {
  std::ifstream file(thread / "schedstat");
  std::uint64_t ran = 0;
  std::uint64_t waited = 0;
  return file >> ran >> waited ? std::optional(ran + waited) : std::nullopt;
}

void add_runnable(pid_t process, std::map<pid_t, std::uint64_t>& threads) {
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), gone)) {
    if (const std::optional<std::uint64_t> time = runnable_ns(task.path())) {
      threads[static_cast<pid_t>(std::atoi(task.path().filename().c_str()))] = *time;
    }
  }
}

void add_use(pid_t process, int generation, ProcessState& state) {
  const std::vector<std::string> fields = fields_of(process);
  constexpr std::size_t user_time = 14;
  constexpr std::size_t major_faults = 12;
  const std::uint64_t own = number(fields, user_time) + number(fields, user_time + 1);
  const std::uint64_t of_ended = number(fields, user_time + 2) + number(fields, user_time + 3);
  (generation == 0 ? state.cpu_ticks : state.workers_ticks) += own;
  state.workers_ticks += of_ended;
  if (generation == 0) {
    state.runnable_ns = runnable_ns(fmt::format("/proc/{}", process)).value_or(0);
  } else {
    add_runnable(process, state.workers_runnable_ns);
  }
  add_io(process, state);
  state.io_bytes += number(fields, major_faults) * bytes_per_fault;
  if (generation == generations_max) {
    return;
  }
  for (const pid_t child : children_of(process)) {
    add_use(child, generation + 1, state);
  }
}

}  // namespace

std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  std::error_code gone;  // meanwhile
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), gone)) {
    std::ifstream file(task.path() / "children");
    for (pid_t child = 0; file >> child;) {
      children.push_back(child);
    }
  }
  return children;
}

std::vector<pid_t> siblings_of(const std::vector<pid_t>& processes) {
  std::set<pid_t> parents;
  for (const pid_t process : processes) {
    constexpr std::size_t parent = 4;
    parents.insert(static_cast<pid_t>(number(fields_of(process), parent)));
  }
  std::vector<pid_t> siblings;
  for (const pid_t parent : parents) {
    if (parent <= 1) {
      continue;  // it has no parent, or the parent has died
    }
    for (const pid_t child : children_of(parent)) {
      std::ifstream file(fmt::format("/proc/{}/cmdline", child));
      const std::string command{std::istreambuf_iterator<char>(file), {}};
      const bool is_helper = command.find("multiprocessing.resource_tracker") != std::string::npos ||
                             command.find("multiprocessing.forkserver") != std::string::npos;
      if (!is_helper && !command.empty() && std::ranges::find(processes, child) == processes.end()) {
        siblings.push_back(child);
      }
    }
  }
  return siblings;
}

Effort effort(const ProcessState& before, const ProcessState& now, Duration elapsed) {
  const double seconds = static_cast<double>(elapsed) / static_cast<double>(second);
  // The use of a child that was not waited for is lost with it.
  const auto grown = [](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(to - std::min(from, to));
  };
  const auto wants = [&](std::uint64_t from, std::uint64_t to) {
    return grown(from, to) > wants_share * static_cast<double>(elapsed);
  };
  const bool workers_want = std::ranges::any_of(now.workers_runnable_ns, [&](const auto& thread) {
    const auto known = before.workers_runnable_ns.find(thread.first);
    return known != before.workers_runnable_ns.end() && wants(known->second, thread.second);
  });
  const double busy_ticks = busy_share * seconds * static_cast<double>(::sysconf(_SC_CLK_TCK));
  return {
      grown(before.cpu_ticks, now.cpu_ticks) > busy_ticks || wants(before.runnable_ns, now.runnable_ns),
      grown(before.workers_ticks, now.workers_ticks) > busy_ticks || workers_want,
      now.state == 'D' || grown(before.io_bytes, now.io_bytes) > seconds * static_cast<double>(busy_bytes)};
}

ProcessState process_state(pid_t process) {
  ProcessState state;
  const std::vector<std::string> fields = fields_of(process);
  if (fields.empty()) {
    return state;
  }
  state.state = fields.front().front();
  if (state.state == 'Z') {
    constexpr std::size_t exit_code = 52;
    state.wait_status = static_cast<int>(number(fields, exit_code));
    return state;
  }
  add_use(process, 0, state);
  return state;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string end_phrase(int status) {
  return WIFSIGNALED(status) ? fmt::format("killed by {}", signal_name(WTERMSIG(status)))
                             : fmt::format("exited with code {}", WEXITSTATUS(status));
}

std::uint64_t killed_for_memory() {
  std::ifstream own("/proc/self/cgroup");
  std::string line;
  std::uint64_t killed = 0;
  while (std::getline(own, line)) {
    if (!line.starts_with("0::")) {
      continue;
    }
    std::ifstream events("/sys/fs/cgroup" + line.substr(3) + "/memory.events");
    std::string name;
    std::uint64_t value = 0;
    while (events >> name >> value) {
      killed = name == "oom_kill" ? value : killed;
    }
  }
  return killed;
}

}  // namespace rollcall::real
