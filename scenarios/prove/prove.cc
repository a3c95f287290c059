#include "scenarios/prove/prove.h"

#include <algorithm>

#include <fmt/core.h>

#include "real/backends/backends.h"
#include "real/launch/launch.h"
#include "real/nccl/one_rank.h"
#include "scenarios/compare/claims.h"
#include "scenarios/compare/simulated_facts.h"
#include "scenarios/prove/programs.h"
#include "sim/c10d/backend_traits.h"
#include "sim/engine/simulate.h"

namespace rollcall::prove {
namespace {

using Judgement = Proof::Judgement;

constexpr Rank ranks = 2;
constexpr Duration deadline = 30 * second;  // of one case; the first call of several ranks on one GPU is slow
constexpr Duration trial_max = 20 * second;

bool runs_on_gpus(const std::string& backend) { return traits_of(backend).device == DeviceType::cuda; }

sim::Options simulated_options(const std::string& backend) {
  return {.world_size = ranks, .backend = backend};
}

real::Options real_options(const std::string& backend) {
  real::Options options{.world_size = ranks, .backend = backend, .deadline = deadline, .time_scale = 0};
  for (Rank rank = 0; rank < ranks && runs_on_gpus(backend); ++rank) {
    options.devices.push_back({DeviceType::cuda, static_cast<std::int16_t>(rank)});
  }
  return options;
}

std::string_view word_for(const std::string& state) {
  if (state.starts_with("waiting")) {
    return "hangs";
  }
  return state == "finished"  ? "completes"
         : state == "raised"  ? "raises"
         : state == "crashed" ? "dies"
                              : "runs";
}

// "rank 0 hangs, rank 1 completes".
std::string outcome_of(const compare::Facts& facts) {
  std::string text;
  for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
    text += fmt::format("{}rank {} {}", rank == 0 ? "" : ", ", rank, word_for(facts.ranks[rank].state));
  }
  return text;
}

struct Sides {
  compare::Facts simulated;
  compare::Facts real;
};

Sides run_both(const std::string& backend, const Program& program) {
  return {compare::simulated_facts(simulated_options(backend), program.body),
          compare::facts_of_run(real::run(real_options(backend), program.body))};
}

// Looks up in compare's claims whether one run cannot show the outcome.
void excuse(const Sides& sides, const std::string& backend, Proof& proof) {
  for (const compare::Claim& claim : compare::compare(sides.simulated, sides.real, backend)) {
    if (claim.about == "ranks" && claim.judgement == compare::Claim::Judgement::cannot_be_judged) {
      proof.judgement = Judgement::cannot_be_judged;
      proof.because = claim.because;
    }
  }
}

Proof try_wrong_program(const std::string& backend, const Program& program) {
  const Sides sides = run_both(backend, program);
  Proof proof{
      std::string(program.name), outcome_of(sides.simulated), outcome_of(sides.real), Judgement::agrees, {}};
  proof.judgement = judge(proof.predicted, proof.observed, runs_on_gpus(backend) ? program.on_gpus : "");
  if (proof.judgement == Judgement::differs) {
    excuse(sides, backend, proof);
  }
  return proof;
}

Proof try_right_program(const std::string& backend, const Program& program) {
  const Sides sides = run_both(backend, program);
  Proof proof{std::string(program.name),
              "all results bitwise equal",
              "all results bitwise equal",
              Judgement::agrees,
              {}};
  for (const compare::Claim& claim : compare::compare(sides.simulated, sides.real, backend)) {
    if (claim.judgement == compare::Claim::Judgement::differs) {
      proof.judgement = Judgement::differs;
      proof.observed = fmt::format("{}: {} {}", claim.about, claim.real, claim.because);
      break;
    }
  }
  return proof;
}

Proof try_one_rank(std::size_t index) {
  const real::Trial& trial = real::one_rank_trials()[index];
  Proof proof{std::string(trial.name), std::string(trial.predicted), real::try_one_rank(index, trial_max),
              Judgement::differs, std::string(trial.source)};
  if (proof.observed.starts_with("unavailable")) {
    proof.judgement = Judgement::cannot_be_judged;
  } else if (real::is_predicted(proof.predicted, proof.observed)) {
    proof.judgement = Judgement::agrees;
  }
  return proof;
}

// How many trials of one rank the backend has: NCCL's rules are tried.
std::size_t one_rank_trials(const std::string& backend) {
  return runs_on_gpus(backend) ? real::one_rank_trials().size() : 0;
}

}  // namespace

Proof::Judgement judge(std::string_view predicted, std::string_view observed, std::string_view allowed) {
  if (predicted == observed) {
    return Judgement::agrees;
  }
  while (!observed.empty()) {  // "rank 0 hangs, rank 1 completes"
    const std::string_view one = observed.substr(0, observed.find(", "));
    if (allowed.empty() || !real::is_predicted(allowed, one.substr(one.rfind(' ') + 1))) {
      return Judgement::differs;
    }
    observed.remove_prefix(std::min(one.size() + 2, observed.size()));
  }
  return Judgement::allowed;
}

bool any_differs(const Proofs& proofs) {
  return std::ranges::any_of(proofs.proofs,
                             [](const Proof& proof) { return proof.judgement == Judgement::differs; });
}

Plan plan(const std::string& backend) {
  Plan plan{.backend = std::string(real::find_backend(backend, ranks).name)};
  const auto add = [&plan](std::string_view subject) {
    ++plan.cases;
    plan.width = std::max(plan.width, subject.size());
  };
  for (const real::Trial& trial : real::one_rank_trials().first(one_rank_trials(plan.backend))) {
    add(trial.name);
  }
  for (const std::span<const Program> programs : {right_programs(), wrong_programs()}) {
    for (const Program& program : programs) {
      add(program.name);
    }
  }
  return plan;
}

Proofs prove(const Plan& plan, const std::function<void(const Proofs&)>& done) {
  Proofs proofs{plan, {}};
  const auto add = [&](Proof proof) {
    proofs.proofs.push_back(std::move(proof));
    done(proofs);
  };
  for (std::size_t i = 0; i < one_rank_trials(plan.backend); ++i) {
    add(try_one_rank(i));
  }
  for (const Program& program : right_programs()) {
    add(try_right_program(plan.backend, program));
  }
  for (const Program& program : wrong_programs()) {
    add(try_wrong_program(plan.backend, program));
  }
  return proofs;
}

}  // namespace rollcall::prove
