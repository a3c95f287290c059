// EvidenceBuilder's part about how calls and ranks came to their end, if not as they should.

#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "real/launch/evidence_builder.h"

namespace rollcall::real {

using check::RankStatus;

namespace {

// "SIGKILL".
std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace

// The rank got an error instead of a result.
void EvidenceBuilder::fail(Rank rank, const Record& record) {
  const Call& call = state_of(rank).calls[static_cast<std::size_t>(record.call)];
  give_up(rank, call);
  if (record.lost_peer && telling_.until_noticed) {
    wait(rank, record);
    state_of(rank).told = true;
    return;
  }
  status_[static_cast<std::size_t>(rank)].state = RankStatus::State::running;
}

void EvidenceBuilder::give_up(Rank, const Call& call) {
  if (call.seq == no_seq) {
    return;
  }
  if (call.message == check::no_message) {
    broken_.insert(key_of(call));
  } else if (const auto partner = messages_of(call.op.group).at(call.message).partner;
             partner != check::no_message) {
    broken_messages_.emplace(call.op.group, partner);
  }
}

void EvidenceBuilder::end(Rank rank, RankStatus::State state, const std::string& type,
                          const std::string& text) {
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.state = state;
  if (!type.empty()) {
    const auto same = [&](const check::Exception& e) { return e.type == type && e.message == text; };
    const auto found = std::ranges::find_if(exceptions_, same);
    status.exception = static_cast<std::int32_t>(found - exceptions_.begin());
    if (found == exceptions_.end()) {
      exceptions_.push_back({type, text});
    }
  }
}

void EvidenceBuilder::bury(Rank rank, const Death& death) {
  RankState& state = state_of(rank);
  std::string text = !state.dying_words.empty() ? state.dying_words : death.text;
  if (const std::string call = open_call_of(rank); text.empty() && !call.empty()) {
    text = "while it was in " + call;
  }
  for (const Call& call : state.calls) {
    if (!call.done) {
      give_up(rank, call);
    }
  }
  end(rank, RankStatus::State::crashed,
      death.signal != 0 ? signal_name(death.signal) : fmt::format("exit code {}", death.exit_code), text);
}

// "all_reduce #3 on world": what the log's last words are about, also where the telling leaves it out.
std::string EvidenceBuilder::open_call_of(Rank rank) const {
  std::map<Queue, std::int64_t> next;
  const RankState& state = states_[static_cast<std::size_t>(rank)];
  std::string phrase;
  for (const Call& call : state.calls) {
    std::int64_t& seq = next[queue_of(call.op)];
    if (!call.done) {
      phrase = fmt::format("{} #{} on {}", to_string(call.op.kind), seq, groups_[call.op.group].name);
      break;
    }
    ++seq;
  }
  return phrase;
}

}  // namespace rollcall::real
