#include "tests/unit/explore/drawn_messages.h"

#include <fmt/core.h>

#include "sim/c10d/collectives.h"
#include "sim/c10d/groups.h"
#include "sim/c10d/p2p.h"
#include "sim/c10d/rank_context.h"
#include "sim/explore/sampler.h"

namespace rollcall::model {
namespace {

using Kind = Step::Kind;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  int below(int most) {
    return static_cast<int>(sim::derived_seed(seed_, drawn_++) % static_cast<std::uint64_t>(most));
  }
  bool one_in(int many) { return below(many) == 0; }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

// Returns the steps that a rank has begun and not waited for.
std::vector<int> open_steps(const std::vector<Step>& steps) {
  std::vector<int> open;
  for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
    const Step& step = steps[static_cast<std::size_t>(i)];
    if (step.kind == Kind::send || step.kind == Kind::receive) {
      open.push_back(i);
    } else if (step.kind == Kind::wait) {
      std::erase(open, step.step);
    }
  }
  return open;
}

// Adds a message, most of the time on both ends: programs in which nothing matches would all end in the same way.
void add_message(Draw& draw, Program& program, int receiver, int tags, int groups) {
  const int ranks = static_cast<int>(program.size());
  const int sender = (receiver + 1 + draw.below(ranks - 1)) % ranks;
  const Step send{Kind::send, receiver, draw.below(tags), draw.below(groups), 0};
  if (!draw.one_in(12)) {
    program[static_cast<std::size_t>(sender)].push_back(send);
  }
  if (!draw.one_in(12)) {
    const int source = draw.one_in(2) ? -1 : sender;
    program[static_cast<std::size_t>(receiver)].push_back({Kind::receive, source, send.tag, send.group, 0});
  }
}

void add_waits(Draw& draw, std::vector<Step>& steps, int one_in) {
  const std::vector<int> open = open_steps(steps);
  if (!open.empty() && draw.one_in(one_in)) {
    steps.push_back(
        {Kind::wait, -1, 0, 0, open[static_cast<std::size_t>(draw.below(static_cast<int>(open.size())))]});
  }
}

std::string group_name(int group) { return group == 0 ? "" : fmt::format("g{}", group); }

// Every message says which rank and which step it is from.
Tensor text_of_step(Rank rank, std::size_t step) {
  return Tensor::full({1}, 1000.0 * rank + static_cast<double>(step));
}
Rank sender_of(const Tensor& received) { return static_cast<Rank>(received.item()) / 1000; }
int step_of(const Tensor& received) { return static_cast<int>(received.item()) % 1000; }

void perform_steps(const Program& program, Rank rank, Sight sight) {
  std::vector<Tensor> tensors;
  std::vector<Work> works;
  const std::vector<Step>& steps = program[static_cast<std::size_t>(rank)];
  tensors.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    tensors.push_back(sight == Sight::clear ? text_of_step(rank, i) : Tensor::ones({1}));
    works.emplace_back();
    const ProcessGroup group = step.group == 0 ? world() : find_group(group_name(step.group));
    switch (step.kind) {
      case Kind::send:
        works.back() =
            isend(tensors.back(),
                  step.peer < 0 ? sender_of(tensors[static_cast<std::size_t>(step.step)]) : step.peer,
                  {.group = group, .tag = step.tag});
        break;
      case Kind::receive:
        works.back() = irecv(tensors.back(), step.peer < 0 ? std::nullopt : std::optional(step.peer),
                             {.group = group, .tag = step.tag});
        break;
      case Kind::barrier:
        barrier();
        break;
      case Kind::wait: {
        const auto of = static_cast<std::size_t>(step.step);
        works[of].wait();
        if (steps[of].kind == Kind::receive) {
          print(sight == Sight::clear ? message_text(sender_of(tensors[of]), step_of(tensors[of])) : "one");
        }
        break;
      }
    }
  }
}

Program drawn(Draw draw, int more_messages) {
  Program program(static_cast<std::size_t>(2 + draw.below(3)));
  const int ranks = static_cast<int>(program.size());
  const int tags = 1 + draw.below(2);
  const int groups = draw.one_in(4) ? 2 : 1;
  const int messages = 2 + draw.below(ranks == 4 ? 3 : 4) + more_messages;
  const int receiver = draw.below(ranks);
  const int waits = 3 + draw.below(10);
  const int barrier_before = draw.one_in(3) ? draw.below(messages) : -1;
  for (int i = 0; i < messages; ++i) {
    if (i == barrier_before) {
      for (std::vector<Step>& steps : program) {
        steps.push_back({Kind::barrier, -1, 0, 0, 0});
      }
    }
    add_message(draw, program, draw.one_in(3) ? draw.below(ranks) : receiver, tags, groups);
    for (std::vector<Step>& steps : program) {
      add_waits(draw, steps, waits);
    }
  }
  for (std::vector<Step>& steps : program) {
    std::vector<int> open = open_steps(steps);
    if (draw.one_in(4) && !open.empty()) {
      open.pop_back();  // no rank waits for it
    }
    while (!open.empty()) {
      const auto next = open.begin() + (draw.one_in(4) ? draw.below(static_cast<int>(open.size())) : 0);
      steps.push_back({Kind::wait, -1, 0, 0, *next});
      open.erase(next);
    }
  }
  return program;
}

}  // namespace

Program drawn_program(std::uint64_t seed) { return drawn(Draw(seed), 0); }

Program drawn_crowd(std::uint64_t seed) { return drawn(Draw(seed), 3); }

Program drawn_server(std::uint64_t seed) {
  Draw draw(seed);
  const int ranks = 3 + draw.below(2);
  const int rounds = ranks == 4 ? 1 : 1 + draw.below(2);
  const bool waits_at_once = draw.one_in(2);
  const bool has_tags = draw.one_in(2);
  Program program(static_cast<std::size_t>(ranks));
  std::vector<Step>& server = program[0];
  const auto last_of = [](const std::vector<Step>& steps) { return static_cast<int>(steps.size()) - 1; };
  // Adds a message on the side, one half of which may be missing.
  const auto interfere = [&] {
    const int from = draw.below(ranks);
    const int to = (from + 1 + draw.below(ranks - 1)) % ranks;
    const int tag = draw.below(2);
    if (draw.one_in(2)) {
      program[static_cast<std::size_t>(from)].push_back({Kind::send, to, tag, 0, 0});
    }
    if (draw.one_in(2)) {
      program[static_cast<std::size_t>(to)].push_back({Kind::receive, draw.one_in(2) ? -1 : from, tag, 0, 0});
      if (draw.one_in(2)) {
        std::vector<Step>& steps = program[static_cast<std::size_t>(to)];
        steps.push_back({Kind::wait, -1, 0, 0, last_of(steps)});
      }
    }
  };
  for (int round = 0; round < rounds; ++round) {
    for (int worker = 1; worker < ranks; ++worker) {
      if (draw.one_in(4)) {
        interfere();
      }
      std::vector<Step>& steps = program[static_cast<std::size_t>(worker)];
      steps.push_back({Kind::send, 0, 0, 0, 0});
      if (waits_at_once) {
        steps.push_back({Kind::wait, -1, 0, 0, last_of(steps)});
      }
      steps.push_back({Kind::receive, draw.one_in(3) ? -1 : 0, has_tags ? 1 : 0, 0, 0});
      steps.push_back({Kind::wait, -1, 0, 0, last_of(steps)});
    }
    for (int request = 1; request < ranks; ++request) {
      server.push_back({Kind::receive, draw.one_in(6) ? request : -1, 0, 0, 0});
      const int received = last_of(server);
      server.push_back({Kind::wait, -1, 0, 0, received});
      if (!draw.one_in(8)) {
        server.push_back({Kind::send, -1, has_tags ? 1 : 0, 0, received});
        if (draw.one_in(2)) {
          server.push_back({Kind::wait, -1, 0, 0, last_of(server)});
        }
      }
    }
  }
  return program;
}

std::string to_text(const Program& program) {
  std::string text;
  for (std::size_t rank = 0; rank < program.size(); ++rank) {
    text += fmt::format("rank {}:", rank);
    for (std::size_t i = 0; i < program[rank].size(); ++i) {
      const Step& step = program[rank][i];
      const std::string where = fmt::format("tag {} group {}", step.tag, step.group);
      switch (step.kind) {
        case Kind::send:
          text += fmt::format(
              " [{}] isend to {} {};", i,
              step.peer < 0 ? fmt::format("the sender of [{}]", step.step) : std::to_string(step.peer),
              where);
          break;
        case Kind::receive:
          text += fmt::format(" [{}] irecv {} {};", i,
                              step.peer < 0 ? "anyone" : fmt::format("from {}", step.peer), where);
          break;
        case Kind::wait:
          text += fmt::format(" wait [{}];", step.step);
          break;
        case Kind::barrier:
          text += " barrier;";
          break;
      }
    }
    text += "\n";
  }
  return text;
}

Report perform(const Program& program, sim::Decisions* decisions, Sight sight) {
  sim::Options options{
      .world_size = static_cast<Rank>(program.size()), .backend = "gloo", .decisions = decisions};
  std::vector<Rank> everyone;
  for (Rank rank = 0; rank < options.world_size; ++rank) {
    everyone.push_back(rank);
  }
  options.groups.push_back({.name = group_name(1), .ranks = everyone});
  return sim::run_once(options, [&](Rank rank) { perform_steps(program, rank, sight); });
}

std::string outcome_of(const Report& report, std::size_t ranks) {
  std::vector<std::vector<std::string>> got(ranks);
  for (const OutputLine& line : report.output) {
    got[static_cast<std::size_t>(line.rank)].push_back(line.text);
  }
  std::string verdict(verdict_word(report.verdict));
  // In the model, nobody misses a message that was not waited for, and it does not end with its rank.
  if (verdict == "resource_leak" || verdict == "race") {
    const bool hangs = std::ranges::any_of(
        report.ranks, [](const RankClass& each) { return each.state == RankClass::State::waiting; });
    verdict = hangs ? "deadlock" : "ok";
  }
  return outcome_text(verdict, got);
}

Explored explored(const Program& program, const sim::SearchTree::Options& options, std::int64_t schedules_max,
                  Sight sight) {
  Explored all;
  sim::SearchTree tree(true, false, options);
  while (!all.exhaustive && all.schedules < schedules_max) {
    tree.begin();
    const Report report = perform(program, &tree, sight);
    if (!tree.knows_all_shown()) {
      tree.restart();
      all = {};
      continue;
    }
    if (tree.is_lost()) {
      return all;
    }
    if (tree.was_cut()) {
      ++all.cut;
    } else if (!tree.was_skipped()) {
      ++all.schedules;
      all.outcomes.insert(outcome_of(report, program.size()));
    }
    all.exhaustive = !tree.advance();
  }
  return all;
}

}  // namespace rollcall::model
