#include "scenarios/watch/attach.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <set>
#include <system_error>
#include <thread>

#include <poll.h>
#include <unistd.h>

#include <fmt/core.h>

#include "real/process/process.h"
#include "real/process/process_state.h"
#include "scenarios/watch/clock.h"
#include "sim/base/parse_number.h"
#include "sim/report/rank_set.h"
#include "traces/logs/watch_log.h"
#include "traces/watch/live_ring.h"

namespace rollcall::watch {

namespace {

namespace fs = std::filesystem;

constexpr Duration server_answer_within = 4 * second;
constexpr Rank ranks_max = 1 << 20;

std::optional<std::uint16_t> port_in(std::string_view text) {
  const auto port = parse_number<std::uint16_t>(text);
  return port && *port > 0 ? port : std::nullopt;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The environment that a process was started with.
std::map<std::string, std::string> environment_of(pid_t process) {
  std::map<std::string, std::string> variables;
  const std::string bytes = contents(fmt::format("/proc/{}/environ", process));
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', begin), bytes.size());
    const std::string_view entry = std::string_view(bytes).substr(begin, end - begin);
    const std::size_t equals = entry.find('=');
    if (equals != std::string_view::npos) {
      variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
    begin = end + 1;
  }
  return variables;
}

std::optional<Rank> rank_in(const std::map<std::string, std::string>& environment) {
  const auto place = environment.find("RANK");
  Rank rank = -1;
  if (place != environment.end()) {
    std::from_chars(place->second.data(), place->second.data() + place->second.size(), rank);
  }
  return rank >= 0 && rank < ranks_max ? std::optional(rank) : std::nullopt;
}

// A process and its descendants, ancestors first.
std::vector<pid_t> family_of(pid_t process) {
  constexpr std::size_t family_max = 65536;
  std::vector<pid_t> family = {process};
  for (std::size_t i = 0; i < family.size() && family.size() < family_max; ++i) {
    const std::vector<pid_t> children = real::children_of(family[i]);
    family.insert(family.end(), children.begin(), children.end());
  }
  return family;
}

// The rings that processes of a family write, by rank, if `rollcall watch` started them.
std::map<Rank, std::pair<pid_t, fs::path>> rings_of(const std::vector<pid_t>& family) {
  std::map<Rank, std::pair<pid_t, fs::path>> rings;
  std::set<std::string> folders;
  for (const pid_t process : family) {
    const std::map<std::string, std::string> environment = environment_of(process);
    if (const auto folder = environment.find("ROLLCALL_RINGS"); folder != environment.end()) {
      folders.insert(folder->second);
    }
  }
  for (const std::string& folder : folders) {
    std::error_code gone;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, gone)) {
      const std::optional<LiveRing> ring =
          entry.path().extension() == ".ring" ? LiveRing::open(entry.path()) : std::nullopt;
      if (ring && std::find(family.begin(), family.end(), ring->pid()) != family.end()) {
        rings.emplace(ring->rank(), std::make_pair(static_cast<pid_t>(ring->pid()), entry.path()));
      }
    }
  }
  return rings;
}

// The output of a program; nothing if it does not exist or fails.
std::optional<std::string> output_of(const std::vector<std::string>& command, Duration within) {
  real::Pipe pipe;
  real::ChildProcess program([&] {
    ::dup2(pipe.write.number(), STDOUT_FILENO);
    real::execute(command);
  });
  pipe.write.close();
  std::string output;
  std::array<char, 65536> buffer;
  const Time until = monotonic_now() + within;
  for (;;) {
    pollfd polled = {pipe.read.number(), POLLIN, 0};
    const Duration left = until - monotonic_now();
    if (left <= 0 || ::poll(&polled, 1, static_cast<int>(left / millisecond) + 1) == 0) {
      return std::nullopt;
    }
    const ssize_t count = ::read(pipe.read.number(), buffer.data(), buffer.size());
    if (count <= 0) {
      break;
    }
    output.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return program.wait() == 0 ? std::optional(output) : std::nullopt;
}

// The folders of the two samples.
const std::string first = "first";
const std::string later = "later";

class Collector {
 public:
  Collector(const std::string& folder, Duration apart) : folder_(folder), apart_(apart) {
    fs::create_directories(folder_ / first);
    fs::create_directories(folder_ / later);
  }

  void ask(const DebugServer& server) {
    std::vector<std::pair<Rank, Address>> ranks;
    try {
      ranks = rank_servers(ask_http(server.address, Method::get, "/tcpstore", server_answer_within));
    } catch (const NoAnswer& problem) {
      collected_.missing.emplace_back(problem.what());
      return;
    }
    if (ranks.empty()) {
      collected_.missing.push_back(fmt::format("{}:{}: its store names no servers of ranks",
                                               server.address.host, server.address.port));
    }
    for (auto& [rank, address] : ranks) {
      servers_.emplace(rank, std::make_pair(address, server.address.host));
    }
  }

  // Takes the first process of each rank: its workers have its variables, too.
  void ask(const Process& process) {
    if (!real::process_state(process.id).exists()) {
      collected_.missing.push_back(fmt::format("process {}: there is no such process", process.id));
      return;
    }
    const std::vector<pid_t> family = family_of(process.id);
    bool names_ranks = false;  // perhaps of a rank that is known already, from its launcher
    for (const auto& [rank, place] : rings_of(family)) {
      processes_.emplace(rank, Place{place.first, place.second});
      names_ranks = true;
    }
    for (const pid_t each : family) {
      const std::optional<Rank> rank = rank_in(environment_of(each));
      if (rank && processes_.size() < ranks_max) {
        processes_.emplace(*rank, Place{each, {}});
      }
      names_ranks = names_ranks || rank;
    }
    if (!names_ranks) {
      const Rank next = processes_.empty() ? 0 : processes_.rbegin()->first + 1;
      processes_.emplace(next, Place{process.id, {}});
      collected_.got.push_back(
          fmt::format("process {}, which is taken to be rank {}: nothing there has RANK in its environment",
                      process.id, next));
    }
  }

  void ask(const NcclRas& ras) {
    try {
      write(first + "/nccl_ras.txt", ask_server(ras.address, "VERBOSE STATUS\n", server_answer_within * 3));
      collected_.got.push_back(fmt::format("NCCL RAS at {}:{}", ras.address.host, ras.address.port));
    } catch (const NoAnswer& problem) {
      collected_.missing.emplace_back(problem.what());
    }
  }

  Collected finish() {
    ask_servers(first);
    look_at_processes(first);
    if (!servers_.empty() || !rings_.empty()) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(apart_));
      ask_servers(later);
      look_at_processes(later);
    }
    if (!log_.empty()) {
      write(first + "/watch.log", fmt::format("{}\n{}", traces::watch_log_title, log_));
    }
    say("recordings", recordings_);
    say("rings", rings_);
    say("Python stacks", stacks_);
    return std::move(collected_);
  }

 private:
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream out(folder_ / name, std::ios::binary);
    out << bytes;
    if (!out.flush()) {
      throw std::system_error(errno, std::generic_category(), (folder_ / name).string());
    }
  }

  void say(const char* what, const RankSet& ranks) {
    if (!ranks.empty()) {
      collected_.got.push_back(fmt::format("{} of {}", what, ranks_phrase(ranks)));
    }
  }

  // Asks all servers at the same time, so that servers that do not answer cost the time of one.
  void ask_servers(const std::string& moment) {
    struct Question {
      Rank rank;
      const char* path;
      std::string file;
      RankSet* got;
      std::future<std::string> answer;
    };
    std::vector<Question> questions;
    for (const auto& [rank, place] : servers_) {
      const auto add = [&, rank = rank, place = place](const char* path, std::string file, RankSet* got) {
        const auto fetch = [place, path] {
          try {
            return ask_http(place.first, Method::post, path, server_answer_within);
          } catch (const NoAnswer&) {  // a machine's name for itself may be unknown elsewhere
            return ask_http({place.second, place.first.port}, Method::post, path, server_answer_within);
          }
        };
        questions.push_back({rank, path, std::move(file), got, std::async(std::launch::async, fetch)});
      };
      if (moment == first) {
        add("/handler/dump_traceback", fmt::format("{}/rank_{}.stack", first, rank), &stacks_);
      }
      add("/handler/fr_trace_json", fmt::format("{}/cpu_trace_rank_{}.json", moment, rank), &recordings_);
      add("/handler/dump_nccl_trace_json", fmt::format("{}/nccl_trace_rank_{}.json", moment, rank),
          &recordings_);
    }
    for (Question& question : questions) {
      try {
        const std::string answer = question.answer.get();
        const bool is_recording = question.got == &recordings_;
        if (is_recording && answer.find("\"entries\"") == std::string::npos) {
          continue;  // its recorder has recorded nothing
        }
        write(question.file, answer);
        question.got->insert(question.rank);
      } catch (const NoAnswer& problem) {
        if (moment == first && question.got == &stacks_) {
          collected_.missing.push_back(fmt::format("rank {}: {}", question.rank, problem.what()));
        }
      }
    }
  }

  void look_at_processes(const std::string& moment) {
    for (const auto& [rank, place] : processes_) {
      const real::ProcessState state = real::process_state(place.process);
      if (moment == first && state.is_stopped()) {
        log_ +=
            fmt::format("rank {} stopped: by a signal, SIGSTOP or SIGTSTP; `kill -CONT {}` lets it go on\n",
                        rank, place.process);
      }
      if (moment == first && state.has_ended()) {
        log_ += fmt::format("rank {} ended: {}\n", rank,
                            state.wait_status ? real::end_phrase(*state.wait_status) : "it is gone");
      }
      if (!place.ring.empty()) {
        take_ring(rank, place.ring, moment, state);
      } else if (moment == first) {
        take_stack(rank, place.process);
      }
    }
  }

  void take_ring(Rank rank, const fs::path& path, const std::string& moment,
                 const real::ProcessState& state) {
    std::optional<LiveRing> ring = LiveRing::open(path);
    if (!ring) {
      return;
    }
    const std::uint64_t question = ring->answered() + 1;
    ring->ask(question);
    const Time until = monotonic_now() + (state.is_stopped() ? 0 : server_answer_within / 4);
    while (ring->answered() != question && monotonic_now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    write(fmt::format("{}/rank_{}.ring", moment, rank), contents(path));
    rings_.insert(rank);
    for (const char* kind : {".held", ".stack"}) {
      const std::string stack = contents(fs::path(path).replace_extension(kind));
      if (moment == first && !stack.empty()) {
        write(fmt::format("{}/rank_{}{}", first, rank, kind), stack);
        stacks_.insert(rank);
      }
    }
  }

  void take_stack(Rank rank, pid_t process) {
    const std::optional<std::string> stack = output_of(
        {"py-spy", "dump", "--nonblocking", "--pid", std::to_string(process)}, server_answer_within * 2);
    if (stack) {
      write(fmt::format("{}/rank_{}.stack", first, rank), *stack);
      stacks_.insert(rank);
    } else if (!says_py_spy_) {
      says_py_spy_ = true;
      collected_.missing.push_back(
          fmt::format("rank {}: `py-spy dump --pid {}` gave no stack (is py-spy here, and may it look at "
                      "other processes?)",
                      rank, process));
    }
  }

  struct Place {
    pid_t process = 0;
    fs::path ring;  // empty: it is not watched
  };

  fs::path folder_;
  Duration apart_;
  Collected collected_;
  std::map<Rank, std::pair<Address, std::string>> servers_;  // with the host of the page
  std::map<Rank, Place> processes_;
  RankSet recordings_;
  RankSet rings_;
  RankSet stacks_;
  std::string log_;
  bool says_py_spy_ = false;
};

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const std::optional<std::uint16_t> port =
      colon == std::string_view::npos ? std::nullopt : port_in(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  const bool is_name = !host.empty() && host.find_first_of("/ ") == std::string_view::npos;
  return port && is_name ? std::optional(Address{std::string(host), *port}) : std::nullopt;
}

std::optional<Target> parse_target(std::string_view text) {
  constexpr std::string_view ras = "ras:";
  constexpr std::string_view http = "http://";
  if (text.starts_with(ras)) {
    const std::string_view rest = text.substr(ras.size());
    if (const std::optional<Address> address = parse_address(rest)) {
      return NcclRas{*address};
    }
    const bool is_name = !rest.empty() && rest.find_first_of(":/ ") == std::string_view::npos;
    return is_name ? std::optional<Target>(NcclRas{{std::string(rest), ras_port}}) : std::nullopt;
  }
  if (text.starts_with(http)) {
    text.remove_prefix(http.size());
    text = text.substr(0, text.find('/'));
  }
  if (const auto process = parse_number<pid_t>(text); process && *process > 0) {
    return Process{*process};
  }
  const std::optional<Address> address = parse_address(text);
  return address ? std::optional<Target>(DebugServer{*address}) : std::nullopt;
}

std::vector<std::pair<Rank, Address>> rank_servers(std::string_view page) {
  constexpr std::string_view key = "debug_server/rank";
  constexpr std::string_view value = "http://";
  std::vector<std::pair<Rank, Address>> servers;
  for (std::size_t place = page.find(key); place != std::string_view::npos;
       place = page.find(key, place + 1)) {
    const std::string_view line =
        page.substr(place + key.size(), page.find('\n', place) - place - key.size());
    Rank rank = -1;
    std::from_chars(line.data(), line.data() + line.size(), rank);
    const std::size_t begin = line.find(value);
    if (rank < 0 || rank >= ranks_max || begin == std::string_view::npos) {
      continue;
    }
    const std::string_view rest = line.substr(begin + value.size());
    if (const std::optional<Address> address = parse_address(rest.substr(0, rest.find_first_of("'\"/ <&")))) {
      servers.emplace_back(rank, *address);
    }
  }
  return servers;
}

Collected collect(const std::vector<Target>& targets, const std::string& folder, Duration apart) {
  Collector collector(folder, apart);
  for (const Target& target : targets) {
    std::visit([&](const auto& each) { collector.ask(each); }, target);
  }
  return collector.finish();
}

}  // namespace rollcall::watch
