#include <string_view>

#include <fmt/core.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "scenarios/compare/result_file.h"
#include "scenarios/format/version.h"
#include "scenarios/prove/prove.h"

namespace rollcall::prove {
namespace {

using Json = nlohmann::ordered_json;

// The settings that decide how NCCL behaves, besides its version.
Json nccl_settings() {
  Json settings = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (const std::size_t equals = text.find('=');
        text.starts_with("NCCL_") && equals != std::string_view::npos) {
      settings[std::string(text.substr(0, equals))] = text.substr(equals + 1);
    }
  }
  return settings;
}

}  // namespace

std::string_view to_string(Proof::Judgement judgement) {
  switch (judgement) {
    case Proof::Judgement::agrees:
      return "agrees";
    case Proof::Judgement::allowed:
      return "allowed";
    case Proof::Judgement::differs:
      return "differs";
    case Proof::Judgement::cannot_be_judged:
      break;
  }
  return "cannot be judged";
}

std::string text_of(const Plan& plan) {
  return fmt::format("{} cases on {}, simulated and real\n", plan.cases, plan.backend);
}

std::string text_of(const Plan& plan, const Proof& proof) {
  std::string text = fmt::format("  {:<{}}  {:<8}  {}\n", proof.subject, plan.width,
                                 to_string(proof.judgement), proof.observed);
  if (proof.judgement != Proof::Judgement::agrees) {
    const std::string source = proof.because.empty() ? "" : fmt::format(" ({})", proof.because);
    text += fmt::format("  {:<{}}            predicted: {}{}\n", "", plan.width, proof.predicted, source);
  }
  return text;
}

std::string json_of(const Proofs& proofs) {
  static const Json machine = compare::machine();  // asking a driver takes time
  Json json{{"schema_version", 1},
            {"rollcall", version()},
            {"machine", machine},
            {"backend", proofs.plan.backend},
            {"cases", proofs.plan.cases},
            {"nccl_settings", nccl_settings()},
            {"time_valid", false},
            {"time_reason", "ranks share one machine and perhaps one GPU, so only outcomes are compared"},
            {"proofs", Json::array()}};
  for (const Proof& proof : proofs.proofs) {
    json["proofs"].push_back({{"subject", proof.subject},
                              {"predicted", proof.predicted},
                              {"observed", proof.observed},
                              {"judgement", to_string(proof.judgement)},
                              {"because", proof.because}});
  }
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::prove
