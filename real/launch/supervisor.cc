#include "real/launch/supervisor.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <stdexcept>

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/evidence/reconstruct.h"
#include "real/process/interrupts.h"
#include "real/rank/sockets.h"

namespace rollcall::real {
namespace {

// How often the state is checked when nothing happens.
constexpr Duration glance = 50 * millisecond;
// Ranks are looked at one after the other, so work that passes to one that has been looked at is overlooked once.
constexpr int glances_to_be_sure = 2;

std::string error_file(const PrivateFolder& folder, Rank rank) {
  return fmt::format("{}/rank-{}.err", folder.path(), rank);
}

// Of a process that wait() says has ended with `status`.
Death death_of(int status, std::string words) {
  if (WIFSIGNALED(status)) {
    return {.signal = WTERMSIG(status), .text = std::move(words)};
  }
  return {.exit_code = WEXITSTATUS(status), .text = std::move(words)};
}

}  // namespace

Supervisor::Child Supervisor::start(Rank rank) {
  Worker worker(plan_, clock_, rank, error_file(*folder_, rank));
  worker.hub = hub_->connect();
  if (launched_ != nullptr) {
    worker.seat.address = launched_->master_address;  // rank 0 runs where the hub is
  }
  ChildProcess process([&] {
    for (Child& brother : children_) {  // the pipes of other ranks are not this one's
      brother.log.close();
      brother.hold.close();
    }
    hub_.reset();
    run_worker(std::move(worker));
  });
  return {
      .process = std::move(process), .log = std::move(worker.log.read), .hold = std::move(worker.hold.write)};
}

void Supervisor::adopt(Hub::LogConnection log) {
  const auto rank = static_cast<std::size_t>(log.rank);
  if (log.rank <= 0 || rank >= children_.size() || children_[rank].log.is_open()) {
    return;  // not a rank of this run, or already connected: this connection closes
  }
  children_[rank].log = std::move(log.connection);
  log_.ranks[rank].is_absent = false;
  take_all(log.rank, log.records);
}

RunLog Supervisor::run() {
  hold_interrupts([this] {
    log_.ranks.resize(static_cast<std::size_t>(plan_.options.world_size));
    hub_.emplace(clock_);
    if (launched_ != nullptr) {
      hub_->listen(launched_->master_address, launched_->master_port, launched_->token);
    }
    const Rank here = launched_ != nullptr ? 1 : plan_.options.world_size;
    for (Rank rank = 0; rank < plan_.options.world_size; ++rank) {
      children_.push_back(rank < here ? start(rank) : Child());
      log_.ranks[static_cast<std::size_t>(rank)].is_absent = rank >= here;
    }
    while (!all_through() && Interrupts::pending() == 0) {
      look();
      const Time now = clock_.now();
      const bool late =
          connected_at_ >= 0 ? now > connected_at_ + plan_.options.deadline : now > plan_.options.connecting;
      hopeless_glances_ = is_hopeless() ? hopeless_glances_ + 1 : 0;
      if (late || hopeless_glances_ == glances_to_be_sure) {
        log_.timed_out = late;
        break;
      }
    }
    log_.end = clock_.now();
    log_.refused = hub_->refused();
    end_all();
    folder_.reset();
  });
  return std::move(log_);
}

// Checks the ranks once, and updates how long they have been silent. If the machine stood still, or only this process
// did, nothing was heard for a long time. That says nothing about the ranks, so one check counts for no more time than
// it should have taken.
void Supervisor::look() {
  const Time before = clock_.now();
  heard_ = false;
  std::vector<pollfd> polled;
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    if (children_[rank].log.is_open()) {
      polled.push_back({children_[rank].log.number(), POLLIN, 0});
      ranks.push_back(static_cast<Rank>(rank));
    }
  }
  hub_->watch(polled);
  poll_all(polled, static_cast<int>(glance / millisecond));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (polled[i].revents != 0) {
      read_from(ranks[i]);
    }
  }
  for (Hub::LogConnection& log : hub_->serve()) {
    adopt(std::move(log));
  }
  silence_ = heard_ ? 0 : silence_ + std::min(clock_.now() - before, 2 * glance);
}

void Supervisor::read_from(Rank rank) {
  Child& child = children_[static_cast<std::size_t>(rank)];
  char bytes[64 * 1024];
  const ssize_t count = ::read(child.log.number(), bytes, sizeof bytes);
  if (count < 0 && errno == EINTR) {
    return;
  }
  if (count < 0 && !is_disconnection(errno)) {
    throw_errno("read");  // a rank must not be declared dead because of a local failure
  }
  heard_ = true;
  if (count <= 0) {
    bury(rank);
    return;
  }
  take_all(rank, {bytes, static_cast<std::size_t>(count)});
}

void Supervisor::take_all(Rank rank, std::string_view bytes) {
  Child& child = children_[static_cast<std::size_t>(rank)];
  child.decoder.feed(bytes.data(), bytes.size());
  try {
    while (std::optional<Record> record = child.decoder.next()) {
      take(rank, std::move(*record));
    }
  } catch (const std::runtime_error& error) {
    if (child.process) {
      throw;  // the rank runs here, so this is a bug of rollcall
    }
    child.log.close();
    note_end(rank, {.exit_code = unknown_exit, .text = error.what()});
  }
}

void Supervisor::take(Rank rank, Record record) {
  Child& child = children_[static_cast<std::size_t>(rank)];
  using Kind = Record::Kind;
  if (record.kind == Kind::gone) {
    note_end(rank, death_of(static_cast<int>(record.value), std::move(record.text)));
    return;
  }
  child.connected = child.connected || record.kind == Kind::begin;
  child.through = child.through || record.kind == Kind::finish || record.kind == Kind::raise ||
                  record.kind == Kind::limit;
  if (log_.end > 0 && record.at > log_.end) {
    return;  // what a rank notices when the others are ended is not part of the run
  }
  log_.ranks[static_cast<std::size_t>(rank)].records.push_back(std::move(record));
  if (connected_at_ < 0 && all_connected()) {
    connected_at_ = clock_.now();
  }
}

// A rank's log has ended: its process has ended, or is about to.
void Supervisor::bury(Rank rank) {
  Child& child = children_[static_cast<std::size_t>(rank)];
  child.log.close();
  if (child.process) {
    note_end(rank, death_of(child.process->wait(), last_words(error_file(*folder_, rank))));
  } else if (log_.end == 0) {
    note_end(rank, {.exit_code = unknown_exit, .text = "the connection to its supervisor was lost"});
  }
}

// If a rank has not logged how its program ended, its process has died.
void Supervisor::note_end(Rank rank, Death death) {
  Child& child = children_[static_cast<std::size_t>(rank)];
  if (!child.through) {
    log_.ranks[static_cast<std::size_t>(rank)].death = std::move(death);
    child.through = true;
  }
}

bool Supervisor::all_through() const { return std::ranges::all_of(children_, &Child::through); }
bool Supervisor::all_connected() const { return std::ranges::all_of(children_, &Child::connected); }

// True if some rank could not connect, or has died since: the others cannot connect without it. A rank that is done
// otherwise lingers, and the others still find it.
bool Supervisor::is_waited_for_in_vain() const {
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    if (children_[rank].through && (!children_[rank].connected || log_.ranks[rank].death)) {
      return true;
    }
  }
  return false;
}

// True if no rank is at work, and the waiting ranks wait for nothing that could still happen. A process that only
// waits for its turn on a busy machine may still log something.
bool Supervisor::is_hopeless() const {
  if (silence_ < plan_.options.patience) {
    return false;
  }
  const bool is_stuck_now =
      connected_at_ < 0 ? is_waited_for_in_vain() : is_stuck(plan_.options, plan_.groups, log_, silence_);
  const auto is_busy = [](const Child& child) { return child.process && child.process->is_busy(); };
  return is_stuck_now && std::ranges::none_of(children_, is_busy);
}

// Releases the ranks that are done and ends the others. Everything that a rank has logged counts, including the
// records still in its pipe.
void Supervisor::end_all() {
  for (Child& child : children_) {
    child.hold.close();
    if (child.process && !child.through) {
      child.process->kill();
    } else if (!child.process && child.log.is_open()) {
      ::shutdown(child.log.number(), SHUT_RDWR);  // its own supervisor ends it
    }
  }
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    Child& child = children_[rank];
    const bool was_ended = !child.through;
    while (child.log.is_open()) {
      read_from(static_cast<Rank>(rank));
    }
    std::optional<Death>& death = log_.ranks[rank].death;
    if (was_ended && death && death->signal == SIGKILL) {
      death.reset();  // the supervisor killed it: it had not died on its own
    }
  }
}

}  // namespace rollcall::real
