#include "real/launch/supervisor.h"

#include <array>
#include <cerrno>
#include <charconv>

#include <poll.h>
#include <unistd.h>

#include "real/launch/worker.h"
#include "real/process/interrupts.h"
#include "real/rank/frames.h"
#include "real/rank/greeting.h"
#include "real/rank/sockets.h"

namespace rollcall::real {
namespace {

// Tells the hub which rank this is. The answer is the time of the run.
Time introduce(const Descriptor& hub, Rank rank) {
  send_all(hub, frame({FrameKind::log, std::to_string(rank), {}}));
  const std::string text = receive_frame(hub).value;
  Time now = 0;
  std::from_chars(text.data(), text.data() + text.size(), now);
  return now;
}

constexpr int glance_ms = 100;  // how often signals are looked for

// Forwards the log until the process or the hub is gone, or a signal has come. True if it was the process.
bool forward(const Descriptor& log, const Descriptor& hub) {
  std::vector<pollfd> polled{{log.number(), POLLIN, 0}, {hub.number(), POLLIN, 0}};
  std::array<char, 64 * 1024> bytes;
  while (Interrupts::pending() == 0) {
    poll_all(polled, glance_ms);
    if (polled[1].revents != 0) {
      return false;  // the hub never sends anything, so it has closed
    }
    if (polled[0].revents != 0) {
      const ssize_t count = ::read(log.number(), bytes.data(), bytes.size());
      if (count == 0) {
        return true;
      }
      if (count < 0 && errno != EINTR) {
        throw_errno("read");
      }
      if (count > 0) {
        send_all(hub, {bytes.data(), static_cast<std::size_t>(count)});
      }
    }
  }
  return false;
}

// Returns at the end of the run, when the hub closes the connection, or when a signal has come.
void await_end(const Descriptor& hub) {
  std::vector<pollfd> polled{{hub.number(), POLLIN, 0}};
  while (Interrupts::pending() == 0 && polled.front().revents == 0) {
    poll_all(polled, glance_ms);
  }
}

void report_end(const Descriptor& hub, int status, const std::string& words) {
  Record record;
  record.kind = Record::Kind::gone;
  record.value = status;
  record.text = words;
  send_all(hub, encode(record));
}

}  // namespace

void supervise_for_hub(const Plan& plan, const LaunchedRank& launched) {
  const auto connect = [&launched] {
    Descriptor connection = connect_to(launched.master_address, launched.master_port);
    greet_hub(connection, launched.token);
    return connection;
  };
  const Descriptor hub = connect();
  const RunClock clock(introduce(hub, launched.rank));
  hold_interrupts([&] {  // until nothing of this rank is left
    const PrivateFolder folder;
    Worker worker(plan, clock, launched.rank, folder.path() + "/rank.err");
    worker.hub = connect();
    worker.seat.address = local_address(hub);
    ChildProcess process([&] { run_worker(std::move(worker)); });
    // The end of the log is visible only if no other process holds the write end.
    worker.log.write.close();
    if (forward(worker.log.read, hub)) {
      report_end(hub, process.wait(), last_words(worker.errors));
      await_end(hub);
    }
  });
}

}  // namespace rollcall::real
