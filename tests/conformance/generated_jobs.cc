#include "tests/conformance/generated_jobs.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tests/conformance/random.h"

namespace rollcall::conformance {
namespace {

class Author {
 public:
  explicit Author(std::uint64_t seed) : random_(seed) {}

  Job write() {
    job_.world_size = static_cast<Rank>(2 + random_.below(5));
    job_.backend = random_.once_in(2) ? "nccl" : "gloo";
    job_.programs.assign(static_cast<std::size_t>(job_.world_size), Json::array());
    for (std::size_t i = random_.below(3); i > 0; --i) {
      add_group();
    }
    for (std::size_t i = 2 + random_.below(6); i > 0; --i) {
      random_.once_in(4) ? add_message() : add_collective();
    }
    for (std::size_t i = random_.below(3); i > 0; --i) {
      make_mistake();
    }
    return job_;
  }

 private:
  std::vector<Rank> everyone() const {
    std::vector<Rank> ranks(static_cast<std::size_t>(job_.world_size));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  Json& program(Rank rank) { return job_.programs[static_cast<std::size_t>(rank)]; }

  void add_group() {
    std::vector<Rank> ranks;
    for (const Rank rank : everyone()) {
      if (random_.once_in(2)) {
        ranks.push_back(rank);
      }
    }
    if (ranks.size() > 1) {
      job_.groups.push_back(ranks);
    }
  }

  void add_collective() {
    const std::size_t group = random_.below(job_.groups.size() + 1);
    const std::vector<Rank> ranks = group == 0 ? everyone() : job_.groups[group - 1];
    Json arguments = {{"numel", std::vector{1, 4, 1000}[random_.below(3)]}};
    if (group > 0) {
      arguments["group"] = fmt::format("g{}", group - 1);
    }
    if (random_.once_in(2)) {
      arguments["label"] = fmt::format("place {}", random_.below(3));
    }
    std::string op =
        random_.one_of<std::string>({"all_reduce", "all_reduce", "all_gather", "broadcast", "barrier"});
    if (op == "broadcast") {
      arguments["src"] = random_.one_of(ranks);
    } else if (op == "barrier") {
      arguments.erase("numel");
    }
    for (const Rank rank : ranks) {
      program(rank).push_back({{op, arguments}});
    }
  }

  void add_message() {
    const auto sender = static_cast<Rank>(random_.below(static_cast<std::size_t>(job_.world_size)));
    const auto receiver = static_cast<Rank>((static_cast<std::size_t>(sender) + 1 +
                                             random_.below(static_cast<std::size_t>(job_.world_size) - 1)) %
                                            static_cast<std::size_t>(job_.world_size));
    program(sender).push_back({{"send", {{"dst", receiver}, {"numel", 4}}}});
    program(receiver).push_back({{"recv", {{"src", sender}, {"numel", 4}}}});
  }

  void make_mistake() {
    const auto rank = static_cast<Rank>(random_.below(static_cast<std::size_t>(job_.world_size)));
    Json& statements = program(rank);
    if (statements.empty()) {
      return;
    }
    const std::size_t at = random_.below(statements.size());
    switch (random_.below(6)) {
      case 0:
        statements.erase(at);
        break;
      case 1:
        statements.insert(statements.begin() + static_cast<std::ptrdiff_t>(at), Json(statements[at]));
        break;
      case 2:
        std::swap(statements[at], statements[random_.below(statements.size())]);
        break;
      case 3:
        statements[at] = {{"raise", "bad sample"}};
        break;
      case 4:
        statements[at] = {{"exit", true}};
        break;
      case 5:
        if (Json& arguments = statements[at].begin().value(); arguments.contains("numel")) {
          arguments["numel"] = 7;
        }
        break;
    }
  }

  Random random_;
  Job job_;
};

}  // namespace

Job generated_job(std::uint64_t seed) { return Author(seed).write(); }

Job renumbered(const Job& job, const std::vector<Rank>& to) {
  const auto number = [&](Rank rank) { return to[static_cast<std::size_t>(rank)]; };
  Job result = job;
  for (std::vector<Rank>& ranks : result.groups) {
    std::ranges::transform(ranks, ranks.begin(), number);
    std::ranges::sort(ranks);
  }
  for (Rank rank = 0; rank < job.world_size; ++rank) {
    Json statements = job.programs[static_cast<std::size_t>(rank)];
    for (Json& statement : statements) {
      for (const char* end : {"src", "dst"}) {
        if (Json& arguments = statement.begin().value(); arguments.is_object() && arguments.contains(end)) {
          arguments[end] = number(arguments[end].get<Rank>());
        }
      }
    }
    result.programs[static_cast<std::size_t>(number(rank))] = std::move(statements);
  }
  return result;
}

std::vector<Rank> permutation(Rank count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Rank> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  for (std::size_t left = ranks.size(); left > 1; --left) {
    std::swap(ranks[left - 1], ranks[random.below(left)]);
  }
  return ranks;
}

std::string scenario_of(const Job& job, bool backwards) {
  Json groups = Json::object();
  for (std::size_t i = 0; i < job.groups.size(); ++i) {
    groups[fmt::format("g{}", i)] = job.groups[i];
  }
  Json programs = Json::object();
  for (Rank i = 0; i < job.world_size; ++i) {
    const Rank rank = backwards ? job.world_size - 1 - i : i;
    programs[std::to_string(rank)] = job.programs[static_cast<std::size_t>(rank)];
  }
  Json scenario = {
      {"version", 1}, {"name", "generated"}, {"world_size", job.world_size}, {"backend", job.backend}};
  if (!groups.empty()) {
    scenario["groups"] = groups;
  }
  scenario["programs"] = programs;
  return scenario.dump(1);
}

}  // namespace rollcall::conformance
