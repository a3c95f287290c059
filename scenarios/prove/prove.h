#pragma once

// Proofs: what the simulator says, held against what a backend of this machine does, case by case: programs that are
// right, programs that are wrong in one thing, and on NCCL the rules of its API. For a machine with a single GPU too:
// its ranks share it (real/nccl/nccl_backend.cc), which proves results and outcomes, never times.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall::prove {

struct Proof {
  enum class Judgement : std::uint8_t {
    agrees,
    allowed,  // not what the simulator chose among the outcomes that the backend allows, but one of them
    differs,
    cannot_be_judged,
  };

  std::string subject;
  std::string predicted;
  std::string observed;
  Judgement judgement = Judgement::agrees;
  std::string because;  // where the prediction comes from; or why it cannot be judged
};

std::string_view to_string(Proof::Judgement judgement);

// Takes some seconds: ranks that hang are given time to prove otherwise. Throws real::Unavailable when the machine
// cannot run `backend`, "gloo", "nccl" or "auto"; the backend taken is in the answer.
struct Proofs {
  std::string backend;
  std::vector<Proof> proofs;
};
Proofs prove(const std::string& backend);

// How the outcome of one case is judged. `allowed` has the words for a rank, with '|'; empty: the prediction only.
Proof::Judgement judge(std::string_view predicted, std::string_view observed, std::string_view allowed);

bool any_differs(const Proofs& proofs);

// Complete lines.
std::string text_of(const Proofs& proofs);
// *.result.json: with versions, the machine, NCCL's settings, and why its times mean nothing.
std::string json_of(const Proofs& proofs);

}  // namespace rollcall::prove
