#include "scenarios/variants/signature.h"

#include <set>

#include <fmt/format.h>

namespace rollcall::scenario {
namespace {

std::string role_of(const Report& report, const RankSet& culprits) {
  std::set<std::string> roles;
  for (const RankClass& each : report.ranks) {
    if (!each.ranks.meets(culprits)) {
      continue;  // none of them
    }
    std::string role(to_string(each.state));
    if (each.state == RankClass::State::waiting && each.call) {
      role += " in " + each.call->op;
    } else if (each.state == RankClass::State::raised) {
      role += " " + each.exception.substr(0, each.exception.find(':'));  // its type
    }
    roles.insert(role);
  }
  return fmt::format("{}", fmt::join(roles, ", "));
}

}  // namespace

Signature signature_of(const Report& report) {
  Signature signature;
  signature.verdict = verdict_word(report.verdict);
  if (const Finding* finding = finding_of(report.verdict)) {
    signature.kind = finding->kind;
    signature.op = finding->at ? finding->at->call.op : "";
    signature.role = role_of(report, finding->culprits);
  }
  return signature;
}

std::string to_string(const Signature& signature) {
  return fmt::format("{}{}{}", verdict_phrase(signature.verdict, signature.kind),
                     signature.op.empty() ? "" : " in " + signature.op,
                     signature.role.empty() ? "" : "; culprit: " + signature.role);
}

}  // namespace rollcall::scenario
