#include "scenarios/compare/claims.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/compare/excuses.h"
#include "scenarios/compare/times.h"
#include "viz/rows/phrases.h"

namespace rollcall::compare {
namespace {

using Judgement = Claim::Judgement;

Claim plain(std::string about, const std::string& simulated, const std::string& real) {
  Claim claim{std::move(about), simulated, real, Judgement::agrees, {}};
  claim.judgement = simulated == real ? Judgement::agrees : Judgement::differs;
  return claim;
}

std::string verdict_of(const Facts& facts) { return verdict_phrase(facts.verdict, facts.kind); }

// "ranks 0-2: finished; rank 3: crashed".
std::string by_rank(const Facts& facts, const std::function<std::string(const RankFact&)>& text_of_rank) {
  std::vector<std::pair<std::string, RankSet>> classes;
  for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
    const std::string text = text_of_rank(facts.ranks[rank]);
    auto found = std::ranges::find(classes, text, &std::pair<std::string, RankSet>::first);
    if (found == classes.end()) {
      found = classes.insert(classes.end(), {text, {}});
    }
    found->second.insert(static_cast<Rank>(rank));
  }
  std::string text;
  for (const auto& [what, ranks] : classes) {
    if (!what.empty()) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", ranks_phrase(ranks), what);
    }
  }
  return text.empty() ? "none" : text;
}

std::string count_of_lines(const Facts& facts) {
  std::size_t lines = 0;
  for (const RankFact& rank : facts.ranks) {
    lines += rank.output.size();
  }
  return viz::count_phrase(static_cast<std::int64_t>(lines), "line");
}

std::size_t common_ranks(const Facts& first, const Facts& second) {
  return std::min(first.ranks.size(), second.ranks.size());
}

Claim compare_output(const Facts& first, const Facts& second, const Sides& sides) {
  Claim claim{"output", count_of_lines(first), count_of_lines(second), Judgement::agrees, {}};
  for (std::size_t rank = 0; rank < common_ranks(first, second); ++rank) {
    const auto& a = first.ranks[rank].output;
    const auto& b = second.ranks[rank].output;
    const auto [at_a, at_b] = std::ranges::mismatch(a, b);
    if (at_a != a.end() || at_b != b.end()) {
      claim.judgement = Judgement::differs;
      claim.because = fmt::format("rank {}, line {}: {} {}, {} {}", rank, at_a - a.begin() + 1, sides.first,
                                  at_a == a.end() ? "nothing more" : '"' + *at_a + '"', sides.second,
                                  at_b == b.end() ? "nothing more" : '"' + *at_b + '"');
      break;
    }
  }
  return claim;
}

Claim compare_calls(const Facts& first, const Facts& second, const Sides& sides) {
  const auto count = [](const Facts& facts) {
    std::size_t calls = 0;
    for (const RankFact& rank : facts.ranks) {
      calls += rank.calls.size();
    }
    return viz::count_phrase(static_cast<std::int64_t>(calls), "call");
  };
  Claim claim{"calls", count(first), count(second), Judgement::agrees, {}};
  for (std::size_t rank = 0; rank < common_ranks(first, second) && claim.because.empty(); ++rank) {
    const auto& a = first.ranks[rank].calls;
    const auto& b = second.ranks[rank].calls;
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const std::string left = i < a.size() ? a[i].call + ", " + a[i].outcome : "no call";
      const std::string right = i < b.size() ? b[i].call + ", " + b[i].outcome : "no call";
      if (left != right) {
        claim.judgement = Judgement::differs;
        claim.because =
            fmt::format("rank {}, call {}: {} {}; {} {}", rank, i, sides.first, left, sides.second, right);
        break;
      }
    }
  }
  return claim;
}

// Compares bit by bit, for all calls that completed on both sides.
Claim compare_results(const Facts& simulated, const Facts& real) {
  std::int64_t results = 0;
  std::int64_t equal = 0;
  std::string first;
  bool only_order = true;
  for (std::size_t rank = 0; rank < real.ranks.size(); ++rank) {
    const auto& a = simulated.ranks[rank].calls;
    const auto& b = real.ranks[rank].calls;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i].digest == 0 || b[i].digest == 0) {
        continue;
      }
      ++results;
      if (a[i].digest == b[i].digest) {
        ++equal;
        continue;
      }
      only_order = only_order && a[i].order_matters;
      first = first.empty() ? fmt::format("rank {}, call {}: {}", rank, i, b[i].call) : first;
    }
  }
  Claim claim{"results",
              fmt::format("{} results", results),
              fmt::format("{} bitwise equal", equal),
              Judgement::agrees,
              {}};
  if (results == 0) {
    claim.judgement = Judgement::cannot_be_judged;
    claim.because = "no call that returns a result completed on both sides";
  } else if (equal < results) {
    claim.judgement = only_order ? Judgement::cannot_be_judged : Judgement::differs;
    claim.because = only_order ? "it depends on an order chosen by the backend: " + first : first;
  }
  return claim;
}

// What every comparison begins with.
std::vector<Claim> common_claims(const Facts& first, const Facts& second, const Sides& sides) {
  const auto place = [](const Facts& facts) { return facts.place.empty() ? "none" : facts.place; };
  const auto error = [](const RankFact& rank) { return rank.error; };
  return {plain("verdict", verdict_of(first), verdict_of(second)),
          plain("culprits", first.culprits, second.culprits),
          plain("place", place(first), place(second)),
          plain("ranks", by_rank(first, &RankFact::state), by_rank(second, &RankFact::state)),
          plain("errors", by_rank(first, error), by_rank(second, error)),
          compare_output(first, second, sides)};
}

}  // namespace

std::string_view to_string(Judgement judgement) {
  switch (judgement) {
    case Judgement::agrees:
      return "agrees";
    case Judgement::differs:
      return "differs";
    case Judgement::cannot_be_judged:
      break;
  }
  return "cannot be judged";
}

std::vector<Claim> compare(const Facts& simulated, const Facts& real, const std::string& written_for,
                           const std::optional<cost::Cluster>& cluster) {
  std::vector<Claim> claims = common_claims(simulated, real, {});
  claims.push_back(compare_calls(simulated, real, {}));
  claims.push_back(compare_results(simulated, real));
  std::ranges::move(time_claims(real, cluster), std::back_inserter(claims));
  excuse_differences(simulated, real, claims);
  if (written_for != real.backend) {
    claims.push_back({"on " + written_for, "not asked", "not run", Judgement::cannot_be_judged,
                      fmt::format("the scenario is written for {}; both sides ran it on {}, which pairs "
                                  "calls and fails differently",
                                  written_for, real.backend)});
  }
  return claims;
}

std::vector<Claim> compare_runs(const Facts& before, const Facts& after) {
  const Sides sides{"before", "after"};
  std::vector<Claim> claims = common_claims(before, after, sides);
  if (before.backend != after.backend) {
    claims.push_back(plain("backend", before.backend, after.backend));
  }
  if (before.has_calls && after.has_calls) {
    claims.push_back(compare_calls(before, after, sides));
  } else {
    claims.push_back(
        {"calls", "unknown", "unknown", Judgement::cannot_be_judged, "a JSON report has no calls"});
  }
  return claims;
}

bool any_differs(const std::vector<Claim>& claims) {
  return std::ranges::any_of(claims,
                             [](const Claim& claim) { return claim.judgement == Judgement::differs; });
}

std::string text_of(const std::vector<Claim>& claims, const Facts& real, const Sides& sides) {
  constexpr std::size_t widest = 60;
  std::string text =
      fmt::format("{}{}{} ranks on {}, {} and {}\n", real.scenario, real.scenario.empty() ? "" : ": ",
                  real.ranks.size(), real.backend, sides.first, sides.second);
  const std::size_t width = std::max(sides.first.size(), sides.second.size()) + 1;
  for (const Claim& claim : claims) {
    const bool same = claim.simulated == claim.real;
    text += fmt::format("  {:<9} {:<16}", claim.about, to_string(claim.judgement));
    if (claim.judgement == Judgement::cannot_be_judged) {
      text += fmt::format(", because {}\n", claim.because);
      continue;
    }
    if (same) {
      text += fmt::format("  {}\n", claim.real);
    } else if (claim.simulated.size() + claim.real.size() <= widest) {
      text += fmt::format("  {}: {}; {}: {}\n", sides.first, claim.simulated, sides.second, claim.real);
    } else {
      text += fmt::format("\n    {:<{}} {}\n    {:<{}} {}\n", sides.first + ":", width, claim.simulated,
                          sides.second + ":", width, claim.real);
    }
    if (!claim.because.empty()) {
      text += fmt::format("    {}\n", claim.because);
    }
  }
  return text;
}

std::string json_of(const std::vector<Claim>& claims, const Facts& real, const Sides& sides) {
  nlohmann::ordered_json document{{"schema_version", 1},
                                  {"scenario", real.scenario},
                                  {"backend", real.backend},
                                  {"ranks", real.ranks.size()},
                                  {"claims", nlohmann::ordered_json::array()}};
  for (const Claim& claim : claims) {
    document["claims"].push_back({{"about", claim.about},
                                  {sides.first, claim.simulated},
                                  {sides.second, claim.real},
                                  {"judgement", to_string(claim.judgement)},
                                  {"because", claim.because}});
  }
  return document.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::compare
