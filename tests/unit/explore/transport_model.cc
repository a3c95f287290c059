#include "tests/unit/explore/transport_model.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>
#include <fmt/format.h>

namespace rollcall::model {
namespace {

enum class Word : std::uint8_t { send_ready, recv_ready, payload };

struct Frame {
  Word word;
  int tag;
  int step;  // payload: of the sender
};

// One end of a connection, for one tag.
struct Slot {
  std::deque<int> local_sends;     // localPendingSend_: steps
  std::deque<int> local_receives;  // localPendingRecv_: steps
  int remote_receives = 0;         // the other end is ready, and nothing was sent yet
  int expected_notices = 0;        // receives that were posted before their notice came

  bool is_idle() const {
    return local_sends.empty() && local_receives.empty() && remote_receives == 0 && expected_notices == 0;
  }
};

// What a rank knows of one tag besides.
struct Mailbox {
  std::vector<int> remote_sends;  // pendingOperations_: ranks, in the order of their notices
  std::deque<int> from_anyone;    // pendingRecv_: steps
};

struct State {
  std::vector<int> at;        // by rank: its next step
  std::vector<int> barriers;  // by rank: how many it has entered
  std::map<std::pair<int, std::pair<int, int>>, std::deque<Frame>>
      wires;                                             // by group, from and to; all there are
  std::map<std::vector<int>, Slot> slots;                // by group, rank, other and tag
  std::map<std::vector<int>, Mailbox> mailboxes;         // by group, rank and tag
  std::vector<std::map<int, std::pair<int, int>>> done;  // by rank and step: whose message it was
  std::vector<std::vector<std::string>> got;             // by rank

  // All of it, as bytes: states with the same are one. Numbers of these programs are small.
  std::string text() const {
    std::string bytes;
    const auto add = [&bytes](int number) { bytes += static_cast<char>(number); };
    const auto add_all = [&add](const auto& numbers) {
      add(static_cast<int>(numbers.size()));
      for (const int number : numbers) {
        add(number);
      }
    };
    add_all(at);
    add_all(barriers);
    for (const auto& [ends, frames] : wires) {
      add(static_cast<int>(frames.size()));
      for (const Frame& frame : frames) {
        add(static_cast<int>(frame.word));
        add(frame.tag);
        add(frame.step);
      }
    }
    bytes += '|';
    for (const auto& [key, slot] : slots) {
      if (slot.is_idle()) {
        continue;
      }
      add_all(key);
      add_all(slot.local_sends);
      add_all(slot.local_receives);
      add(slot.remote_receives);
      add(slot.expected_notices);
    }
    bytes += '|';
    for (const auto& [key, mailbox] : mailboxes) {
      add_all(key);
      add_all(mailbox.remote_sends);
      add_all(mailbox.from_anyone);
    }
    for (const auto& rank : done) {
      add(static_cast<int>(rank.size()));
      for (const auto& [step, message] : rank) {
        add(step);
        add(message.first);
        add(message.second);
      }
    }
    for (const auto& rank : got) {
      for (const std::string& text : rank) {
        bytes += text + '|';
      }
    }
    return bytes;
  }
};

class Search {
 public:
  Search(const Program& program, std::size_t states_max) : program_(program), states_max_(states_max) {}

  Modeled run() {
    State first;
    first.at.resize(program_.size());
    first.barriers.resize(program_.size());
    first.done.resize(program_.size());
    first.got.resize(program_.size());
    for (int rank = 0; rank < ranks(); ++rank) {
      for (const Step& step : steps(rank)) {
        for (int peer = 0; peer < ranks() && step.kind != Step::Kind::barrier; ++peer) {
          first.wires[{step.group, {rank, peer}}];
        }
      }
    }
    std::vector<State> open{first};
    while (!open.empty()) {
      const State state = std::move(open.back());
      open.pop_back();
      if (!seen_.insert(state.text()).second) {
        continue;
      }
      if (seen_.size() > states_max_) {
        return {{}, false};
      }
      expand(state, open);
    }
    return {outcomes_, true};
  }

 private:
  void expand(const State& state, std::vector<State>& open) {
    bool is_end = true;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (can_go_on(state, rank)) {
        is_end = false;
        open.push_back(state);
        go_on(open.back(), rank);
      }
    }
    for (const auto& [ends, frames] : state.wires) {
      if (!frames.empty()) {
        is_end = false;
        open.push_back(state);
        read(open.back(), ends.first, ends.second.first, ends.second.second);
      }
    }
    if (is_end) {
      bool is_ok = true;
      for (int rank = 0; rank < ranks(); ++rank) {
        is_ok = is_ok && is_over(state, rank);
      }
      outcomes_.insert(outcome_text(is_ok ? "ok" : "deadlock", state.got));
    }
  }

  int ranks() const { return static_cast<int>(program_.size()); }
  const std::vector<Step>& steps(int rank) const { return program_[static_cast<std::size_t>(rank)]; }
  bool is_over(const State& state, int rank) const {
    return state.at[static_cast<std::size_t>(rank)] == static_cast<int>(steps(rank).size());
  }

  bool can_go_on(const State& state, int rank) const {
    if (is_over(state, rank)) {
      return false;
    }
    const auto at = static_cast<std::size_t>(rank);
    const Step& step = steps(rank)[static_cast<std::size_t>(state.at[at])];
    if (step.kind == Step::Kind::wait) {
      return state.done[at].contains(step.step);
    }
    if (step.kind != Step::Kind::barrier) {
      return true;
    }
    // A rank is in its barrier once it has come to it: then it may leave as soon as all have come as far.
    int entered = 0;
    for (int other = 0; other < ranks(); ++other) {
      entered += has_entered(state, other, state.barriers[at] + 1) ? 1 : 0;
    }
    return entered == ranks();
  }

  // Whether it stands in its `count`-th barrier, or has left it.
  bool has_entered(const State& state, int rank, int count) const {
    const auto at = static_cast<std::size_t>(rank);
    if (state.barriers[at] >= count) {
      return true;
    }
    return state.barriers[at] + 1 == count && !is_over(state, rank) &&
           steps(rank)[static_cast<std::size_t>(state.at[at])].kind == Step::Kind::barrier;
  }

  void go_on(State& state, int rank) const {
    const auto at = static_cast<std::size_t>(rank);
    const int number = state.at[at]++;
    const Step& step = steps(rank)[static_cast<std::size_t>(number)];
    switch (step.kind) {
      case Step::Kind::send:
        return send(state, rank, number, step);
      case Step::Kind::receive:
        return step.peer < 0 ? receive_from_anyone(state, rank, number, step)
                             : receive(state, rank, number, step);
      case Step::Kind::barrier:
        ++state.barriers[at];
        return;
      case Step::Kind::wait:
        if (steps(rank)[static_cast<std::size_t>(step.step)].kind == Step::Kind::receive) {
          const auto& [from, sent] = state.done[at].at(step.step);
          state.got[at].push_back(message_text(from, sent));
        }
        return;
    }
  }

  static Slot& slot(State& state, int group, int rank, int other, int tag) {
    return state.slots[{group, rank, other, tag}];
  }
  static Mailbox& mailbox(State& state, int group, int rank, int tag) {
    return state.mailboxes[{group, rank, tag}];
  }
  static void write(State& state, int group, int from, int to, const Frame& frame) {
    state.wires[{group, {from, to}}].push_back(frame);
  }

  // Pair::send
  static void send(State& state, int rank, int number, const Step& step) {
    Slot& own = slot(state, step.group, rank, step.peer, step.tag);
    write(state, step.group, rank, step.peer, {Word::send_ready, step.tag, 0});
    if (own.remote_receives > 0) {
      --own.remote_receives;
      write_payload(state, step.group, rank, step.peer, step.tag, number);
    } else {
      own.local_sends.push_back(number);
    }
  }

  static void write_payload(State& state, int group, int rank, int peer, int tag, int number) {
    write(state, group, rank, peer, {Word::payload, tag, number});
    state.done[static_cast<std::size_t>(rank)][number] = {rank, number};
  }

  // Pair::recv
  static void receive(State& state, int rank, int number, const Step& step) {
    Slot& own = slot(state, step.group, rank, step.peer, step.tag);
    std::vector<int>& sends = mailbox(state, step.group, rank, step.tag).remote_sends;
    const auto noticed = std::ranges::find(sends, step.peer);
    if (noticed != sends.end()) {
      sends.erase(noticed);
    } else {
      ++own.expected_notices;
    }
    own.local_receives.push_back(number);
    write(state, step.group, rank, step.peer, {Word::recv_ready, step.tag, 0});
  }

  // Context::recvFromAny
  static void receive_from_anyone(State& state, int rank, int number, const Step& step) {
    Mailbox& box = mailbox(state, step.group, rank, step.tag);
    if (box.remote_sends.empty()) {
      box.from_anyone.push_back(number);
      return;
    }
    const int source = box.remote_sends.front();
    box.remote_sends.erase(box.remote_sends.begin());
    slot(state, step.group, rank, source, step.tag).local_receives.push_back(number);
    write(state, step.group, rank, source, {Word::recv_ready, step.tag, 0});
  }

  // Pair::read, of one frame
  static void read(State& state, int group, int from, int to) {
    std::deque<Frame>& wire = state.wires[{group, {from, to}}];
    const Frame frame = wire.front();
    wire.pop_front();
    Slot& own = slot(state, group, to, from, frame.tag);
    switch (frame.word) {
      case Word::send_ready:
        return noticed(state, group, from, to, frame.tag);
      case Word::recv_ready:
        if (own.local_sends.empty()) {
          ++own.remote_receives;
        } else {
          const int number = own.local_sends.front();
          own.local_sends.pop_front();
          write_payload(state, group, to, from, frame.tag, number);
        }
        return;
      case Word::payload:
        state.done[static_cast<std::size_t>(to)][own.local_receives.front()] = {from, frame.step};
        own.local_receives.pop_front();
        return;
    }
  }

  // Pair::handleRemotePendingSend
  static void noticed(State& state, int group, int from, int to, int tag) {
    Slot& own = slot(state, group, to, from, tag);
    Mailbox& box = mailbox(state, group, to, tag);
    if (own.expected_notices > 0) {
      --own.expected_notices;
    } else if (!box.from_anyone.empty()) {
      own.local_receives.push_back(box.from_anyone.front());
      box.from_anyone.pop_front();
      write(state, group, to, from, {Word::recv_ready, tag, 0});
    } else {
      box.remote_sends.push_back(from);
    }
  }

  const Program& program_;
  std::size_t states_max_;
  std::unordered_set<std::string> seen_;
  Outcomes outcomes_;
};

}  // namespace

std::string message_text(int rank, int step) { return fmt::format("{}.{}", rank, step); }

std::string outcome_text(const std::string& verdict, const std::vector<std::vector<std::string>>& got) {
  std::string text = verdict;
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    if (!got[rank].empty()) {
      text += fmt::format(" | {} got {}", rank, fmt::join(got[rank], ", "));
    }
  }
  return text;
}

Modeled all_outcomes(const Program& program, std::size_t states_max) {
  return Search(program, states_max).run();
}

}  // namespace rollcall::model
