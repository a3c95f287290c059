#include "tests/unit/explore/transport_model.h"

#include <algorithm>
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
  int step;  // for a payload: the sender's
};

// One side of a connection, for one tag.
struct Slot {
  std::vector<int> local_sends;     // localPendingSend_: steps
  std::vector<int> local_receives;  // localPendingRecv_: steps
  int remote_receives = 0;          // the other side is ready, but nothing was sent yet
  int expected_notices = 0;         // receives that were posted before their notice came
};

// A rank's other state for one tag.
struct Mailbox {
  std::vector<int> remote_sends;  // pendingOperations_: ranks, in the order of their notices
  std::vector<int> from_anyone;   // pendingRecv_: steps
};

// The dimensions of a program: each part of the state is one array.
struct Sizes {
  int ranks = 0;
  int tags = 0;
  int groups = 0;

  std::size_t wire(int group, int from, int to) const {
    return static_cast<std::size_t>((group * ranks + from) * ranks + to);
  }
  std::size_t slot(int group, int rank, int other, int tag) const {
    return wire(group, rank, other) * static_cast<std::size_t>(tags) + static_cast<std::size_t>(tag);
  }
  std::size_t mailbox(int group, int rank, int tag) const {
    return static_cast<std::size_t>((group * ranks + rank) * tags + tag);
  }
};

struct State {
  std::vector<int> at;                                 // by rank: its next step
  std::vector<int> barriers;                           // by rank: how many it has left
  std::vector<std::vector<Frame>> wires;               // indexed by Sizes
  std::vector<Slot> slots;                             // the same
  std::vector<Mailbox> mailboxes;                      // the same
  std::vector<std::vector<std::pair<int, int>>> done;  // by rank and step: whose message it was; -1: not done
  std::vector<std::vector<std::string>> got;           // by rank

  // Returns the whole state as bytes: states with equal bytes are the same. The numbers in these programs are small.
  std::string text() const {
    std::string bytes;
    bytes.reserve(256);
    const auto add = [&bytes](int number) { bytes += static_cast<char>(number); };
    const auto add_all = [&add](const std::vector<int>& numbers) {
      add(static_cast<int>(numbers.size()));
      std::ranges::for_each(numbers, add);
    };
    add_all(at);
    add_all(barriers);
    for (const std::vector<Frame>& frames : wires) {
      add(static_cast<int>(frames.size()));
      for (const Frame& frame : frames) {
        add(static_cast<int>(frame.word));
        add(frame.tag);
        add(frame.step);
      }
    }
    for (const Slot& slot : slots) {
      add_all(slot.local_sends);
      add_all(slot.local_receives);
      add(slot.remote_receives);
      add(slot.expected_notices);
    }
    for (const Mailbox& mailbox : mailboxes) {
      add_all(mailbox.remote_sends);
      add_all(mailbox.from_anyone);
    }
    for (const auto& rank : done) {
      for (const auto& [from, step] : rank) {
        add(from);
        add(step);
      }
    }
    return bytes;  // `got` follows from `done`, in program order
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
      first.done[static_cast<std::size_t>(rank)].resize(steps(rank).size(), {-1, 0});
      for (const Step& step : steps(rank)) {
        sizes_.tags = std::max(sizes_.tags, step.tag + 1);
        sizes_.groups = std::max(sizes_.groups, step.group + 1);
      }
    }
    sizes_.ranks = ranks();
    first.wires.resize(sizes_.wire(sizes_.groups, 0, 0));
    first.slots.resize(sizes_.slot(sizes_.groups, 0, 0, 0));
    first.mailboxes.resize(sizes_.mailbox(sizes_.groups, 0, 0));
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
    for (int group = 0; group < sizes_.groups; ++group) {
      for (int from = 0; from < ranks(); ++from) {
        for (int to = 0; to < ranks(); ++to) {
          if (!state.wires[sizes_.wire(group, from, to)].empty()) {
            is_end = false;
            open.push_back(state);
            read(open.back(), group, from, to);
          }
        }
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
      return state.done[at][static_cast<std::size_t>(step.step)].first >= 0;
    }
    if (step.kind != Step::Kind::barrier) {
      return true;
    }
    // A rank is in its barrier once it has reached it, and may leave as soon as all ranks have reached it.
    int entered = 0;
    for (int other = 0; other < ranks(); ++other) {
      entered += has_entered(state, other, state.barriers[at] + 1) ? 1 : 0;
    }
    return entered == ranks();
  }

  // True if the rank is in its `count`-th barrier, or has left it.
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
    Step step = steps(rank)[static_cast<std::size_t>(number)];
    switch (step.kind) {
      case Step::Kind::send:
        if (step.peer < 0) {
          step.peer = state.done[at][static_cast<std::size_t>(step.step)].first;
        }
        return send(state, rank, number, step);
      case Step::Kind::receive:
        return step.peer < 0 ? receive_from_anyone(state, rank, number, step)
                             : receive(state, rank, number, step);
      case Step::Kind::barrier:
        ++state.barriers[at];
        return;
      case Step::Kind::wait:
        if (steps(rank)[static_cast<std::size_t>(step.step)].kind == Step::Kind::receive) {
          const auto& [from, sent] = state.done[at][static_cast<std::size_t>(step.step)];
          state.got[at].push_back(message_text(from, sent));
        }
        return;
    }
  }

  Slot& slot(State& state, int group, int rank, int other, int tag) const {
    return state.slots[sizes_.slot(group, rank, other, tag)];
  }
  Mailbox& mailbox(State& state, int group, int rank, int tag) const {
    return state.mailboxes[sizes_.mailbox(group, rank, tag)];
  }
  void write(State& state, int group, int from, int to, const Frame& frame) const {
    state.wires[sizes_.wire(group, from, to)].push_back(frame);
  }

  // Pair::send
  void send(State& state, int rank, int number, const Step& step) const {
    Slot& own = slot(state, step.group, rank, step.peer, step.tag);
    write(state, step.group, rank, step.peer, {Word::send_ready, step.tag, 0});
    if (own.remote_receives > 0) {
      --own.remote_receives;
      write_payload(state, step.group, rank, step.peer, step.tag, number);
    } else {
      own.local_sends.push_back(number);
    }
  }

  void write_payload(State& state, int group, int rank, int peer, int tag, int number) const {
    write(state, group, rank, peer, {Word::payload, tag, number});
    state.done[static_cast<std::size_t>(rank)][static_cast<std::size_t>(number)] = {rank, number};
  }

  // Pair::recv
  void receive(State& state, int rank, int number, const Step& step) const {
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
  void receive_from_anyone(State& state, int rank, int number, const Step& step) const {
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
  void read(State& state, int group, int from, int to) const {
    std::vector<Frame>& wire = state.wires[sizes_.wire(group, from, to)];
    const Frame frame = wire.front();
    wire.erase(wire.begin());
    Slot& own = slot(state, group, to, from, frame.tag);
    switch (frame.word) {
      case Word::send_ready:
        return noticed(state, group, from, to, frame.tag);
      case Word::recv_ready:
        if (own.local_sends.empty()) {
          ++own.remote_receives;
        } else {
          const int number = own.local_sends.front();
          own.local_sends.erase(own.local_sends.begin());
          write_payload(state, group, to, from, frame.tag, number);
        }
        return;
      case Word::payload:
        state.done[static_cast<std::size_t>(to)][static_cast<std::size_t>(own.local_receives.front())] = {
            from, frame.step};
        own.local_receives.erase(own.local_receives.begin());
        return;
    }
  }

  // Pair::handleRemotePendingSend
  void noticed(State& state, int group, int from, int to, int tag) const {
    Slot& own = slot(state, group, to, from, tag);
    Mailbox& box = mailbox(state, group, to, tag);
    if (own.expected_notices > 0) {
      --own.expected_notices;
    } else if (!box.from_anyone.empty()) {
      own.local_receives.push_back(box.from_anyone.front());
      box.from_anyone.erase(box.from_anyone.begin());
      write(state, group, to, from, {Word::recv_ready, tag, 0});
    } else {
      box.remote_sends.push_back(from);
    }
  }

  const Program& program_;
  Sizes sizes_{};
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
