#include "scenarios/variants/minimize.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/run/explore_scenario.h"
#include "scenarios/run/runner.h"
#include "scenarios/variants/keep_ranks.h"
#include "scenarios/variants/reducer.h"
#include "scenarios/variants/scenario_tree.h"
#include "sim/explore/schedules.h"

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

namespace {

// The limit of the search for each candidate; failures that need more schedules are not minimized
// further.
constexpr std::int64_t schedules_per_candidate = 400;

// True if a limit ended the run, whatever its verdict: a rank had more to do.
bool is_cut(const Report& report) {
  return std::ranges::any_of(report.ranks,
                             [](const RankClass& ranks) { return ranks.state == RankClass::State::running; });
}

// Determines the outcome of a scenario, with or without other schedules.
class Judge {
 public:
  Judge(std::string file, const MinimizeOptions& options) : file_(std::move(file)), options_(options) {}

  // The full report, as users see it.
  Report report_of(const Scenario& scenario) const {
    if (!searches_) {
      return run(scenario, {.seed = options_.seed});
    }
    return explore(scenario, {.search = {.schedules = schedules_per_candidate}, .seed = options_.seed});
  }

  // Decides once and for all whether the usual run is enough.
  Report first(const Scenario& scenario) {
    own_limit_ = scenario.options.limits.ops;
    Report report = report_of(scenario);
    if (finding_of(report.verdict) == nullptr) {
      searches_ = true;
      report = report_of(scenario);
    }
    was_cut_ = is_cut(report);
    ops_max_ = 2 * report.ops + 1000;
    return report;
  }

  bool searches() const { return searches_; }

  // True if a candidate, JSON without positions, is a scenario with this signature.
  bool has(const OrderedJson& candidate, const Signature& signature) const {
    try {
      Scenario scenario = parse_scenario(candidate.dump(), file_);
      if (was_cut_ && scenario.options.limits.ops > own_limit_) {
        return false;  // it would reach our own limit
      }
      scenario.options.limits.ops = std::min(scenario.options.limits.ops, ops_max_);
      if (fails_as_usual(scenario) || quick(scenario) != signature.verdict) {
        return false;
      }
      const Report report = report_of(scenario);
      return signature_of(report) == signature && (was_cut_ || !is_cut(report));
    } catch (const InvalidScenario&) {
      return false;
    }
  }

 private:
  // True if a candidate fails where the file does not: that is another mistake, even if it has the same name.
  bool fails_as_usual(const Scenario& scenario) const {
    return searches_ && finding_of(run(scenario, {.seed = options_.seed}).verdict) != nullptr;
  }

  // Returns only the verdict, in a fraction of the time. A search cannot be shortened.
  std::string quick(const Scenario& scenario) const {
    if (searches_) {
      return std::string(verdict_word(report_of(scenario).verdict));
    }
    sim::Options options = scenario.options;
    options.seed = options_.seed.value_or(options.seed);
    const sim::TriedSchedules tried =
        sim::run_schedules([&](sim::Decisions& decisions) { return run_once(scenario, options, decisions); });
    return std::string(verdict_word(tried.report.verdict));
  }

  std::string file_;
  const MinimizeOptions& options_;
  bool searches_ = false;
  bool was_cut_ = false;
  std::int64_t ops_max_ = 0;    // for a candidate: one that does not end is rejected
  std::int64_t own_limit_ = 0;  // the file's
};

class Minimizer {
 public:
  Minimizer(const std::string& address, const MinimizeOptions& options)
      : options_(options),
        scenario_(load_scenario(address)),
        judge_(scenario_.file, options),
        report_(judge_.first(scenario_)),
        signature_(signature_of(report_)),
        best_(tree_of(address, scenario_)),
        accepts_([this](const OrderedJson& tree) { return accepts(tree); }) {
    if (signature_.verdict == "ok") {
      throw NothingToMinimize(fmt::format("{} ends with verdict ok{}: nothing to minimize", address,
                                          report_.exhaustive ? "" : " in every schedule that was tried"));
    }
  }

  Minimized minimize() {
    const ScenarioSize before = size_of(best_);
    leave_out({"$schema", "expect", "tags", "source"});
    bool changed = true;
    while (changed && !is_interrupted()) {
      changed = shed_ranks();
      changed = shorten_lists(best_, accepts_) || changed;
      changed = unwrap_blocks(best_, accepts_) || changed;
      changed = drop_members(best_, accepts_) || changed;
      changed = shrink_numbers(best_, accepts_) || changed;
    }
    Minimized result;
    result.signature = signature_;
    result.before = before;
    result.after = size_of(best_);
    result.tried = tried_;
    result.interrupted = is_interrupted();
    result.text = text_of(result);
    return result;
  }

 private:
  static ScenarioSize size_of(const OrderedJson& tree) {
    return {tree.value("world_size", Rank{0}), count_statements(tree)};
  }

  bool is_interrupted() const { return options_.interrupted != nullptr && *options_.interrupted != 0; }

  bool accepts(const OrderedJson& candidate) {
    if (is_interrupted() || !refused_.insert(std::hash<std::string>()(candidate.dump())).second) {
      return false;  // accepted candidates are not offered again
    }
    ++tried_;
    const bool accepted = judge_.has(candidate, signature_);
    if (options_.progress) {
      const ScenarioSize size = size_of(accepted ? candidate : best_);
      options_.progress(tried_, size.ranks, size.statements);
    }
    return accepted;
  }

  void leave_out(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      OrderedJson candidate = best_;
      if (candidate.erase(key) > 0) {
        offer(best_, std::move(candidate), accepts_);
      }
    }
  }

  // ---- Ranks ----

  Rank world_size() const { return best_.value("world_size", Rank{1}); }

  bool keep(const RankSet& ranks) {
    if (!best_.contains("world_size")) {
      return false;
    }
    std::optional<OrderedJson> candidate = keep_ranks(best_, ranks);
    return candidate && offer(best_, std::move(*candidate), accepts_);
  }

  // A few ranks are enough for most failures; halves and quarters find the others.
  bool shed_ranks() {
    bool changed = keep_a_few();
    for (Rank chunk = world_size() / 2; chunk > 0; chunk /= 2) {
      for (Rank end = world_size(); end > 0; end -= chunk) {
        const RankSet all = RankSet::range(0, world_size() - 1);
        const RankSet gone = RankSet::range(std::max<Rank>(end - chunk, 0), end - 1);
        changed = (chunk < world_size() && keep(difference(all, gone))) || changed;
      }
    }
    return changed;
  }

  // The first culprits, and the first of the other ranks: two ranks, three, four.
  bool keep_a_few() {
    const Finding* finding = finding_of(report_.verdict);
    if (finding == nullptr || finding->culprits.empty() || world_size() != report_.world_size) {
      return false;
    }
    const RankSet all = RankSet::range(0, world_size() - 1);
    for (std::size_t culprits = 1; culprits <= 2; ++culprits) {
      for (std::size_t others = 1; others <= 2; ++others) {
        RankSet few = first_of(finding->culprits, culprits);
        few.insert(first_of(difference(all, finding->culprits), others));
        if (few.size() < all.size() && keep(few)) {
          return true;
        }
      }
    }
    return false;
  }

  static RankSet first_of(const RankSet& ranks, std::size_t count) {
    std::vector<Rank> list = ranks.to_vector();
    list.resize(std::min(list.size(), count));
    return RankSet::of(list);
  }

  // ---- The result ----

  std::string text_of(const Minimized& result) const {
    const Scenario small = parse_scenario(best_.dump(), scenario_.file);
    const Report report = judge_.report_of(small);
    const Finding& finding = *finding_of(report.verdict);
    const std::string comment = fmt::format(
        "Minimized from {}: {} of {} ranks and {} of {} statements are left.\nPreserved: {}.\nIn one "
        "sentence: {}.{}",
        scenario_.address(), result.after.ranks, result.before.ranks, result.after.statements,
        result.before.statements, to_string(signature_), finding.headline,
        judge_.searches() ? "\nThe default schedule is fine; `rollcall explore` finds one that fails." : "");
    OrderedJson tree = {{"version", 1}, {"name", scenario_.name + ", minimized"}};
    tree["origin"] = fmt::format("rollcall minimize {}", scenario_.address());
    for (const auto& [key, value] : best_.items()) {
      if (!tree.contains(key)) {
        tree[key] = value;
      }
    }
    if (!scenario_.source.empty()) {
      tree["source"] = scenario_.source;
    }
    tree["expect"] = {{"verdict", signature_.verdict},
                      {"kind", to_string(signature_.kind)},
                      {"culprits", finding.culprits.to_vector()}};
    return scenario_text(tree, comment);
  }

  const MinimizeOptions& options_;
  Scenario scenario_;
  Judge judge_;
  Report report_;
  Signature signature_;
  OrderedJson best_;
  Accepts accepts_;
  std::set<std::size_t> refused_;  // hashes of candidates
  std::int64_t tried_ = 0;
};

}  // namespace

Minimized minimize(const std::string& address, const MinimizeOptions& options) {
  return Minimizer(address, options).minimize();
}

}  // namespace rollcall::scenario
