#pragma once

// Proofs: compares the simulator's prediction with what a backend of this machine does, case by case: correct programs,
// programs that are wrong in one thing, and, on NCCL, the rules of its API. Also for a machine with a single GPU: its
// ranks share it (real/nccl/nccl_backend.cc), which proves results and outcomes, never times.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall::prove {

struct Proof {
  enum class Judgement : std::uint8_t {
    agrees,
    allowed,  // one of the outcomes that the backend allows, but not the one that the simulator chose
    differs,
    cannot_be_judged,
  };

  std::string subject;
  std::string predicted;
  std::string observed;
  Judgement judgement = Judgement::agrees;
  std::string because;  // the source of the prediction, or why it cannot be judged
};

std::string_view to_string(Proof::Judgement judgement);

// Throws real::Unavailable if the machine cannot run `backend`: "gloo", "nccl", or "auto", of which the plan names the
// one that is used.
struct Plan {
  std::string backend;
  std::size_t cases = 0;
  std::size_t width = 0;  // of the longest subject
};
Plan plan(const std::string& backend);

struct Proofs {
  Plan plan;
  std::vector<Proof> proofs;
};
// Takes seconds for each case, minutes on a GPU: ranks that hang are given time to prove otherwise. Calls `done` after
// each case, with all proofs so far.
Proofs prove(const Plan& plan, const std::function<void(const Proofs&)>& done);

// Judges the outcome of one case. `allowed` has the words for a rank, with '|'; empty: the prediction only.
Proof::Judgement judge(std::string_view predicted, std::string_view observed, std::string_view allowed);

bool any_differs(const Proofs& proofs);

// Complete lines: the first one, and those of one proof.
std::string text_of(const Plan& plan);
std::string text_of(const Plan& plan, const Proof& proof);
// *.result.json: with versions, the machine, NCCL's settings, and why its times mean nothing.
std::string json_of(const Proofs& proofs);

}  // namespace rollcall::prove
