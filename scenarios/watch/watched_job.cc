#include "scenarios/watch/watched_job.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

#include "scenarios/record/recorder_files.h"
#include "scenarios/watch/clock.h"
#include "scenarios/watch/signal_forwarding.h"
#include "sim/diagnose/dump_judge.h"
#include "traces/formats/recordings.h"
#include "traces/logs/host_stacks.h"
#include "traces/logs/python_errors.h"
#include "traces/logs/watch_log.h"
#include "traces/values/value.h"
#include "viz/base/write_file.h"
#include "viz/rows/phrases.h"

namespace rollcall::watch {

namespace {

namespace fs = std::filesystem;

constexpr Duration tick = 100 * millisecond;
constexpr Duration held_after = 1500 * millisecond;  // without a beat, of which there are ten a second
constexpr Duration processes_every = second;
constexpr Duration spins_after = 3 * second;
constexpr Duration judge_again_after = 5 * second;
constexpr Duration draw_every = 500 * millisecond;
constexpr Duration went_on_after = second;  // of moving: what is killed, or fails, is over sooner
constexpr Duration numbers_first = second;  // then twice as long, and so on: rings forget
constexpr Duration numbers_every_max = 300 * second;
constexpr Duration answer_within = 1500 * millisecond;
constexpr Duration evidence_within = 4 * second;

// Memory that outlives the ranks; a disk would also work, more slowly.
std::string folder_for_rings() {
  const fs::path memory = "/dev/shm";
  std::error_code none;
  return fs::is_directory(memory, none) && ::access(memory.c_str(), W_OK) == 0 ? memory.string()
                                                                               : std::string();
}

// Called in the child: runs the user's command as if it were not watched.
void become_job(const std::vector<std::string>& command, const std::string& hook,
                const std::string& records) {
  ::prctl(PR_SET_PDEATHSIG, 0);
  std::signal(SIGPIPE, SIG_DFL);
  SignalForwarding::release();
  const char* path = std::getenv("PYTHONPATH");
  ::setenv("PYTHONPATH", (path == nullptr || *path == '\0' ? hook : hook + ":" + path).c_str(), 1);
  ::setenv("ROLLCALL_RINGS", records.c_str(), 1);
  ::unsetenv("ROLLCALL_RECORDS");
  real::execute(command);
}

bool is_same_answer(const Diagnosis& a, const Diagnosis& b) {
  return a.finding.kind == b.finding.kind && a.finding.culprits == b.finding.culprits;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What the file says that the observer writes when the program raises. An error that is chained to another follows from
// it.
RankEnd::Error error_in(const std::string& path, Rank rank) {
  const std::string text = text_of(path);
  if (text.empty()) {
    return RankEnd::Error::none;
  }
  const std::vector<check::LogFact> errors = traces::read_python_errors(traces::log_of_one(text, rank));
  const bool is_own = !errors.empty() && errors.front().kind == check::LogFact::Kind::raised;
  return is_own ? RankEnd::Error::own : RankEnd::Error::of_others;
}

}  // namespace

WatchedJob::WatchedJob(const WatchOptions& options, const WatchListener& listener)
    : options_(options),
      listener_(listener),
      stall_(options.stall),
      killed_before_(real::killed_for_memory()) {
  if (options.records.empty()) {
    private_records_.emplace(folder_for_rings());
    records_ = private_records_->path();
    return;
  }
  std::error_code error;
  fs::create_directories(options.records, error);
  if (error) {
    throw viz::OutputError(
        fmt::format("cannot create the directory '{}': {}", options.records, error.message()));
  }
  records_ = fs::absolute(options.records);
  for (const fs::directory_entry& entry : fs::directory_iterator(records_)) {
    const std::string name = entry.path().filename();
    if (name == "watch.log" || (name.starts_with("rank_") && entry.is_regular_file())) {
      fs::remove(entry.path());  // of an earlier job
    }
  }
}

int WatchedJob::run() {
  if (options_.nodes && options_.nodes->node == 0) {
    hub_.emplace(*options_.nodes, records_);
  } else if (options_.nodes) {
    member_.emplace(*options_.nodes);
  }
  if (options_.page_port) {
    page_.emplace(*options_.page_port, [this] { return listener_.page(records_); });
    listener_.remark(fmt::format("the job is shown at {}", page_->url()));
  }
  const std::string hook = scenario::unpack_recorder(package_.path()) + "/hook";
  std::optional<SignalForwarding> forwarding(std::in_place);
  real::ChildProcess job([&] { become_job(options_.command, hook, records_); });
  forwarding->forward_to(job.id());
  {
    const real::Descriptor end = job.watch();
    if (options_.shows_row && StatusRow::is_possible(STDERR_FILENO)) {
      row_.emplace(STDERR_FILENO);
    }
    try {
      watch_until_the_end(end);
    } catch (const std::exception& error) {  // the job matters more than watching it
      listener_.remark(fmt::format("the job is not watched any longer: {}", error.what()));
    }
    pollfd ended = {end.number(), POLLIN, 0};
    row_.reset();
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
  }
  forwarding.reset();
  const int status = job.wait();
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == real::no_such_program && ranks_.empty()) {
    listener_.remark(
        fmt::format("'{}' cannot be started, or has exited with code {}", options_.command.front(), code));
  }
  say_end(code);
  return code;
}

void WatchedJob::watch_until_the_end(const real::Descriptor& end) {
  for (;;) {
    std::vector<pollfd> polled = {{end.number(), POLLIN, 0}};
    for (const auto& [rank, watched] : ranks_) {
      if (watched.process.is_open()) {
        polled.push_back({watched.process.number(), POLLIN, 0});
      }
    }
    if (page_) {
      page_->watch(polled);
    }
    const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(tick / millisecond));
    if (ready < 0 && errno != EINTR) {
      real::throw_errno("poll");
    }
    for (auto& [rank, watched] : ranks_) {
      bury(watched);
    }
    if (ready > 0 && polled.front().revents != 0) {
      return;
    }
    if (page_) {
      page_->serve();
    }
    look(monotonic_now());
  }
}

// The process id gives the exit status only until the parent has asked for it, so this must not be delayed.
void WatchedJob::bury(Watched& rank) {
  if (!rank.process.is_open()) {
    return;
  }
  pollfd polled = {rank.process.number(), POLLIN, 0};
  if (::poll(&polled, 1, 0) <= 0) {
    return;
  }
  rank.state = real::process_state(static_cast<pid_t>(rank.ring.pid()));
  rank.process.close();
  rank.look = rank.ring.look();
  rank.activity = RankMoment::Activity::gone;
  const std::optional<int> status = rank.state.wait_status;
  rank.ended_well = status ? *status == 0 : rank.look.has_ended;
  rank.end = status            ? real::end_phrase(*status)
             : rank.ended_well ? "its program finished, or ended itself"
                               : "it left no exit status";
  if (status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL &&
      real::killed_for_memory() > killed_before_) {
    rank.end += ", and the kernel has ended a process for lack of memory";
  }
  ended_.push_back(rank.ring.rank());
}

void WatchedJob::find_rings() {
  std::error_code gone;
  for (const fs::directory_entry& entry : fs::directory_iterator(records_, gone)) {
    if (entry.path().extension() != ".ring") {
      continue;
    }
    std::optional<LiveRing> ring = LiveRing::open(entry.path());
    if (!ring) {
      continue;
    }
    const auto known = ranks_.find(ring->rank());
    if (known != ranks_.end() && known->second.ring.identity() == ring->identity()) {
      continue;
    }
    if (known != ranks_.end()) {
      std::erase(ended_, ring->rank());
      ranks_.erase(known);  // it was restarted
      forget_earlier_job();
    }
    const auto pid = static_cast<pid_t>(ring->pid());
    real::Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    world_size_ = std::max(world_size_, ring->world_size());
    ranks_.emplace(ring->rank(), Watched{std::move(*ring), std::move(process)});
  }
}

// A rank has begun anew, and may be one of a smaller job: the ranks that have ended are not.
void WatchedJob::forget_earlier_job() {
  world_size_ = 0;
  for (auto entry = ranks_.begin(); entry != ranks_.end();) {
    const auto& [rank, watched] = *entry;
    if (watched.activity != RankMoment::Activity::gone) {
      world_size_ = std::max(world_size_, watched.ring.world_size());
      ++entry;
      continue;
    }
    const std::optional<LiveRing> now_there = LiveRing::open(path_of(rank, "ring"));
    if (now_there && now_there->identity() == watched.ring.identity()) {
      for (const std::string_view kind : files_of_ranks) {
        std::error_code ignored;  // it may not exist
        fs::remove(fmt::format("{}/rank_{}{}", records_, rank, kind), ignored);
      }
    }
    std::erase(ended_, rank);
    entry = ranks_.erase(entry);
  }
}

void WatchedJob::look_at_process(Watched& rank, Time now) {
  using Activity = RankMoment::Activity;
  if (rank.activity == Activity::gone || !rank.process.is_open()) {
    return;
  }
  const real::ProcessState before = rank.state;
  const Duration elapsed = now - rank.state_at;
  const bool is_first = rank.state_at == 0 || elapsed > 3 * processes_every;
  rank.state = real::process_state(static_cast<pid_t>(rank.ring.pid()));
  rank.state_at = now;
  if (rank.state.is_stopped()) {
    rank.activity = Activity::stopped;
    return;
  }
  if (rank.look.heartbeat_ns != 0 && calendar_now() - rank.look.heartbeat_ns > held_after) {
    rank.activity = Activity::held;
    return;
  }
  if (is_first) {
    rank.activity = Activity::quiet;
    return;
  }
  const real::Effort made = real::effort(before, rank.state, elapsed);
  const bool is_at_one_place = rank.at_place_since >= 0 && now - rank.at_place_since >= spins_after;
  // A rank that waits for a compiler or a worker that computes is at one place, too.
  const bool works = made.moves_bytes || made.workers_compute || (made.computes && !is_at_one_place);
  rank.activity = works ? Activity::works : made.computes ? Activity::spins : Activity::quiet;
}

// A rank that waits for others at the start is tolerated for a long time, because they may still be loading torch. If
// their processes are known, and do nothing, they are not.
void WatchedJob::look_at_missing(Time now) {
  std::vector<pid_t> known;
  for (const auto& [rank, watched] : ranks_) {
    known.push_back(static_cast<pid_t>(watched.ring.pid()));
  }
  std::map<pid_t, Stranger> strangers;
  for (const pid_t process : real::siblings_of(known)) {
    Stranger& stranger = strangers[process];
    stranger.state = real::process_state(process);
    stranger.state_at = now;
    const auto before = strangers_.find(process);
    if (before != strangers_.end()) {
      const real::Effort made =
          real::effort(before->second.state, stranger.state, now - before->second.state_at);
      stranger.is_quiet = stranger.state.state == 'S' && !made.any();
    }
  }
  strangers_ = std::move(strangers);
}

std::vector<RankMoment> WatchedJob::moments() const {
  std::vector<RankMoment> moments;
  const bool all_are_here =
      ranks_.size() == static_cast<std::size_t>(world_size_);  // ranks that are loading torch are not
  const bool others_do_nothing =
      !hub_ && !member_ && ranks_.size() + strangers_.size() == static_cast<std::size_t>(world_size_) &&
      std::ranges::all_of(strangers_, [](const auto& entry) { return entry.second.is_quiet; });
  for (const auto& [rank, watched] : ranks_) {
    RankMoment& moment = moments.emplace_back();
    moment.rank = rank;
    moment.moves = watched.look.issued + watched.look.finished;
    moment.waits = watched.look.waits && watched.activity != RankMoment::Activity::gone;
    moment.is_starting = watched.look.waits_in == "init_process_group" && !all_are_here && !others_do_nothing;
    moment.activity = watched.activity;
  }
  return moments;
}

std::vector<RankMoment> WatchedJob::moments_everywhere() const {
  std::vector<RankMoment> all = moments();
  if (hub_) {
    const std::vector<RankMoment> others = hub_->moments();
    all.insert(all.end(), others.begin(), others.end());
    const bool all_are_here = all.size() >= static_cast<std::size_t>(world_size_);
    for (RankMoment& rank : all) {
      rank.is_starting = rank.is_starting && !all_are_here;
    }
  }
  return all;
}

RankSet WatchedJob::all_ranks() const {
  RankSet ranks;
  for (const RankMoment& rank : moments_everywhere()) {
    ranks.insert(rank.rank);
  }
  return ranks;
}

// Node 0 judges, from what this node sends.
void WatchedJob::answer_hub(Time now) {
  if (!member_->serve(now, moments())) {
    return;
  }
  ask_where(all_ranks());
  write_log(false);
  for (auto& [rank, watched] : ranks_) {
    watched.ring.note_standstill(static_cast<std::uint64_t>(calendar_now() - stall_.silence(now)));
  }
  member_->send_evidence(records_);
  for (auto& [rank, watched] : ranks_) {
    watched.ring.note_standstill(0);  // only the rings that were sent are of a job that stands still
  }
}

void WatchedJob::look(Time now) {
  find_rings();
  for (auto& [rank, watched] : ranks_) {
    const std::uint64_t place = watched.look.place;
    watched.look = watched.ring.look();
    const bool is_elsewhere = watched.look.place != place || watched.at_place_since < 0;
    watched.at_place_since = is_elsewhere ? now : watched.at_place_since;
  }
  if (hub_) {
    hub_->serve(now);
  }
  const std::vector<RankMoment> moments = moments_everywhere();
  const Stall::State state = stall_.look(now, moments);
  draw_row(now, moments);
  if (member_) {
    answer_hub(now);
  }
  if (state == Stall::State::moves) {
    for (auto& [rank, watched] : ranks_) {
      watched.at_place_since = -1;
      watched.state_at = 0;
      watched.activity =
          watched.activity == RankMoment::Activity::gone ? watched.activity : RankMoment::Activity::quiet;
    }
    moves_since_ = moves_since_ < 0 ? now : moves_since_;
    if (said_ && now - moves_since_ >= went_on_after && !any_failed()) {
      say_went_on();
    }
    look_for_wrong_numbers(now);
    return;
  }
  moves_since_ = -1;
  if (stall_.silence(now) >= second && now - looked_at_ >= processes_every) {
    looked_at_ = now;
    for (auto& [rank, watched] : ranks_) {
      look_at_process(watched, now);
    }
    if (ranks_.size() < static_cast<std::size_t>(world_size_) && !hub_ && !member_) {
      look_at_missing(now);
    }
  }
  const bool is_due = !member_ && (!said_ || now - judged_at_ >= judge_again_after);
  if (state == Stall::State::stands_still && is_due) {
    ask_where(all_ranks());
    if (hub_) {
      hub_->collect(evidence_within);
    }
    say_standstill(monotonic_now());
  }
}

void WatchedJob::ask_where(const RankSet& ranks) {
  ++question_;
  for (auto& [rank, watched] : ranks_) {
    if (ranks.contains(rank)) {
      watched.ring.ask(question_);
    }
  }
  const Time until = monotonic_now() + answer_within;
  const auto is_open = [this](const auto& entry) {
    const bool can_answer = entry.second.activity != RankMoment::Activity::gone &&
                            entry.second.activity != RankMoment::Activity::stopped &&
                            entry.second.activity != RankMoment::Activity::held;
    return can_answer && entry.second.ring.answered() != question_;
  };
  while (monotonic_now() < until && std::any_of(ranks_.begin(), ranks_.end(), is_open)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::string WatchedJob::path_of(Rank rank, const char* what) const {
  return fmt::format("{}/rank_{}.{}", records_, rank, what);
}

// A stack that an interpreter's timer has written is current: the file is emptied when the interpreter continues.
check::DumpStack WatchedJob::read_stack(Rank rank) const {
  check::DumpStack stack = traces::program_stack(text_of(path_of(rank, "held")));
  return stack.empty() ? traces::program_stack(text_of(path_of(rank, "stack"))) : stack;
}

std::vector<RankEnd> WatchedJob::ends() const {
  std::vector<RankEnd> ends;
  for (const Rank rank : ended_) {
    const Watched& watched = ranks_.at(rank);
    RankEnd& end = ends.emplace_back();
    end.rank = rank;
    end.phrase = watched.end;
    end.wait_status = watched.state.wait_status;
    end.is_good = watched.ended_well;
    end.error = error_in(path_of(rank, "error"), rank);
  }
  return ends;
}

void WatchedJob::write_log(bool has_ended) const {
  using Activity = RankMoment::Activity;
  std::string text(traces::watch_log_title);
  text += '\n';
  text += has_ended ? line_of_failure(ends(), ranks_.size()) : lines_of_ended(ends());
  for (const auto& [rank, watched] : ranks_) {
    if (watched.activity == Activity::stopped) {
      text += fmt::format("rank {} stopped: by a signal, SIGSTOP or SIGTSTP; `kill -CONT {}` lets it go on\n",
                          rank, watched.ring.pid());
    } else if (watched.activity == Activity::held && !watched.look.waits) {
      text += fmt::format("rank {} stopped: code outside Python holds its interpreter\n", rank);
    }
  }
  const bool starts = std::any_of(ranks_.begin(), ranks_.end(), [](const auto& entry) {
    return entry.second.look.waits_in == "init_process_group";
  });
  const RankSet everywhere = all_ranks();
  for (Rank rank = 0; starts && !member_ && rank < world_size_; ++rank) {
    const auto known = ranks_.find(rank);
    const bool is_missing =
        known == ranks_.end() ? !everywhere.contains(rank) : known->second.look.issued == 0;
    if (is_missing) {
      text += fmt::format("rank {} missing: init_process_group\n", rank);
    }
  }
  std::ofstream(records_ + "/watch.log") << text;
}

std::optional<Diagnosis> WatchedJob::judge_records() const {
  const traces::ReadResult read = traces::read_recordings({records_});
  if (read.job.ranks.empty() && read.job.facts.empty()) {
    return std::nullopt;
  }
  return check::judge_dump(read.job);
}

void WatchedJob::say(Answer::Occasion occasion, const Diagnosis& diagnosis, Duration silence) {
  listener_.judged({occasion, diagnosis, stacks_of(diagnosis), silence});
}

void WatchedJob::say_standstill(Time now) {
  judged_at_ = now;
  const Duration silence = stall_.silence(now);
  write_log(false);
  for (auto& [rank, watched] : ranks_) {
    watched.ring.note_standstill(static_cast<std::uint64_t>(calendar_now() - silence));
  }
  const std::optional<Diagnosis> diagnosis = judge_records();
  if (diagnosis && !(said_ && is_same_answer(*said_, *diagnosis))) {
    said_ = diagnosis;
    say(Answer::Occasion::stands_still, *diagnosis, silence);
  }
}

// Calls that fail after a timeout move as well, and so do processes that end.
bool WatchedJob::any_failed() const {
  return std::ranges::any_of(ranks_, [](const auto& entry) {
    const Watched& rank = entry.second;
    return rank.activity == RankMoment::Activity::gone && !rank.ended_well;
  });
}

void WatchedJob::say_went_on() {
  said_.reset();
  for (auto& [rank, watched] : ranks_) {
    watched.ring.note_standstill(0);
  }
  listener_.went_on(stall_.ended_after());
}

void WatchedJob::say_failure() {
  write_log(true);
  const std::optional<Diagnosis> diagnosis = judge_records();
  if (diagnosis && diagnosis->finding.kind != FindingKind::no_fault) {
    say(Answer::Occasion::failed, *diagnosis, 0);
  }
}

// Calls of different kinds may be paired, and all of them finish: a join hook that counts wrong never hangs. This check
// is more expensive than the others, so it is made less and less often.
void WatchedJob::look_for_wrong_numbers(Time now) {
  const bool has_begun =
      std::ranges::any_of(ranks_, [](const auto& entry) { return entry.second.look.issued > 0; });
  if (member_ || numbers_are_wrong_ || !has_begun || now < numbers_due_) {
    return;
  }
  numbers_every_ = numbers_every_ == 0 ? numbers_first : std::min(2 * numbers_every_, numbers_every_max);
  const bool is_first = numbers_due_ == 0;
  numbers_due_ = now + numbers_every_;
  if (is_first) {
    return;
  }
  const std::optional<Diagnosis> diagnosis = judge_records();
  numbers_are_wrong_ = diagnosis && diagnosis->finding.kind == FindingKind::join_shadow_mismatch &&
                       diagnosis->confidence == Diagnosis::Confidence::high;
  if (numbers_are_wrong_) {
    say(Answer::Occasion::at_work, *diagnosis, 0);
  }
}

void WatchedJob::draw_row(Time now, const std::vector<RankMoment>& moments) {
  if (!row_) {
    return;
  }
  std::uint64_t steps = 0;
  for (const auto& [rank, watched] : ranks_) {
    steps = std::max(steps, watched.look.steps);
  }
  pulse_.look(now, moments, steps);
  if (now - drawn_at_ >= draw_every) {
    drawn_at_ = now;
    row_->draw(" rollcall  " + pulse_.line(now, ranks_.empty() ? 0 : stall_.silence(now)));
  }
}

// If the job failed, reports why, unless that has been reported. A launcher may end with 0 all the same: a shell that
// waits for its children does.
void WatchedJob::say_end(int code) {
  if (ranks_.empty() || SignalForwarding::told_to_end()) {
    return;
  }
  find_rings();
  for (auto& [rank, watched] : ranks_) {
    watched.look = watched.ring.look();
    bury(watched);
  }
  const bool is_known_to_fail = std::ranges::any_of(
      ranks_, [](const auto& entry) { return entry.second.state.wait_status.value_or(0) != 0; });
  if (code == 0 && !is_known_to_fail) {
    if (said_ && moves_since_ >= 0 && !any_failed()) {
      say_went_on();
    }
    return;
  }
  if (member_) {
    write_log(true);
    member_->send_evidence(records_);
    return;
  }
  if (hub_ && !said_) {
    hub_->collect(evidence_within / 2);
  }
  if (!said_) {
    say_failure();
  }
  if (hub_ && hub_->refused() > 0) {
    listener_.remark(fmt::format("{} from unknown processes {} refused",
                                 viz::count_phrase(hub_->refused(), "connection"),
                                 hub_->refused() == 1 ? "was" : "were"));
  }
}

std::vector<StackOfRanks> WatchedJob::stacks_of(const Diagnosis& diagnosis) const {
  const auto together = [this](const RankSet& ranks) {
    std::vector<StackOfRanks> stacks;
    for (const Rank rank : ranks.to_vector()) {
      check::DumpStack frames = read_stack(rank);
      const auto same = std::ranges::find(stacks, frames, &StackOfRanks::frames);
      if (same != stacks.end()) {
        same->ranks.insert(rank);
      } else {
        stacks.push_back({RankSet{rank}, std::move(frames)});
      }
    }
    return stacks;
  };
  std::vector<StackOfRanks> stacks = together(diagnosis.finding.culprits);
  const std::vector<StackOfRanks> others = together(difference(all_ranks(), diagnosis.finding.culprits));
  stacks.insert(stacks.end(), others.begin(), others.end());
  return stacks;
}

}  // namespace rollcall::watch
