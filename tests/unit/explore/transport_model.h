#pragma once

// A second opinion on what small programs of messages do on Gloo: a second model of its transport, made from its
// sources, which tries every interleaving of every step. It shares nothing with sim/, and uses no reduction.
//
// The sources are gloo/transport/tcp/pair.cc (send, recv, handleRemotePendingSend, handleRemotePendingRecv),
// gloo/transport/tcp/context.cc (recvFromAny, findRecvFromAny) and gloo/transport/context.h (Tally). A pair of ranks
// has one connection per group, first in, first out in each direction. A barrier orders only the programs' own steps,
// because the connections that it uses depend on its algorithm.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace rollcall::model {

// One step of a rank. Receives and sends do not wait; `wait` names the step whose message it waits for. A send to -1 is
// an answer: it goes to the sender of the message that `step` has received and waited for.
struct Step {
  enum class Kind : std::uint8_t { send, receive, wait, barrier } kind = Kind::send;
  int peer = -1;  // send, receive; -1: any source, or an answer
  int tag = 0;
  int group = 0;
  int step = 0;  // wait, answer: of the same rank
};

using Program = std::vector<std::vector<Step>>;  // by rank

// "ok" or "deadlock", and the messages that each rank's receives had taken when it waited for them: "ok | 1 got 0.2;
// ..."
using Outcomes = std::set<std::string>;

std::string outcome_text(const std::string& verdict, const std::vector<std::vector<std::string>>& got);
// Returns the text for the message that rank 0 sent in its step 2, as in "got 0.2".
std::string message_text(int rank, int step);

// Empty if there are more than `states_max` states.
struct Modeled {
  Outcomes outcomes;
  bool is_complete = true;
};
Modeled all_outcomes(const Program& program, std::size_t states_max);

}  // namespace rollcall::model
