#pragma once

// A second opinion on what small programs of messages do on Gloo: its transport, written down from its sources once
// more, and every interleaving of every step tried. It shares nothing with sim/, and reduces nothing.
//
// The sources are gloo/transport/tcp/pair.cc (send, recv, handleRemotePendingSend, handleRemotePendingRecv),
// gloo/transport/tcp/context.cc (recvFromAny, findRecvFromAny) and gloo/transport/context.h (Tally). A pair of ranks
// has one connection per group, first in, first out in each direction. A barrier is taken to order nothing but the
// programs' own steps: which connections it uses is its algorithm's affair.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace rollcall::model {

// What one rank does next. Receives and sends do not wait; `wait` names the step whose message it waits for. A send to
// -1 answers: it goes to whoever sent what `step` has received, and been waited for.
struct Step {
  enum class Kind : std::uint8_t { send, receive, wait, barrier } kind = Kind::send;
  int peer = -1;  // send, receive; -1: from anyone, or an answer
  int tag = 0;
  int group = 0;
  int step = 0;  // wait, answer: of the same rank
};

using Program = std::vector<std::vector<Step>>;  // by rank

// "ok" or "deadlock", and what each rank's receives had taken when it waited for them: "ok | 1 got 0.2; ..."
using Outcomes = std::set<std::string>;

std::string outcome_text(const std::string& verdict, const std::vector<std::vector<std::string>>& got);
// "got 0.2": the message that rank 0 sent in its step 2.
std::string message_text(int rank, int step);

// Nothing when there are more than `states_max` states.
struct Modeled {
  Outcomes outcomes;
  bool is_complete = true;
};
Modeled all_outcomes(const Program& program, std::size_t states_max);

}  // namespace rollcall::model
