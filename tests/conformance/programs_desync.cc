// Family desync: ranks whose collectives do not line up. Most cases are lists of steps, one per rank.

#include <algorithm>
#include <numeric>

#include "sim/base/expects.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

Tensor ramp(Rank rank, const Step& step) {
  std::vector<double> values(static_cast<std::size_t>(step.numel));
  std::iota(values.begin(), values.end(), 10.0 * rank + 1);
  return Tensor::of(values, step.dtype);
}

TensorList rooms_like(const Tensor& tensor) {
  TensorList rooms;
  for (Rank rank = 0; rank < get_world_size(); ++rank) {
    rooms.push_back(Tensor::zeros(tensor.shape(), tensor.dtype()));
  }
  return rooms;
}

Tensor concatenated(const TensorList& parts) {
  std::vector<double> values;
  for (const Tensor& part : parts) {
    const std::vector<double> more = part.to_vector();
    values.insert(values.end(), more.begin(), more.end());
  }
  return Tensor::of(values, parts.front().dtype());
}

// Runs a step and returns the tensor to check.
Tensor run_step(Rank rank, const Step& step) {
  Tensor tensor = ramp(rank, step);
  if (step.kind == "all_reduce") {
    all_reduce(tensor, {.op = step.reduce});
  } else if (step.kind == "broadcast") {
    broadcast(tensor, step.root);
  } else if (step.kind == "reduce") {
    reduce(tensor, step.root);
  } else if (step.kind == "barrier") {
    barrier();
  } else if (step.kind == "all_gather") {
    const TensorList parts = rooms_like(tensor);
    all_gather(parts, tensor);
    return concatenated(parts);
  } else if (step.kind == "gather") {
    const TensorList parts = rank == step.root ? rooms_like(tensor) : TensorList();
    gather(tensor, parts, step.root);
    return parts.empty() ? tensor : concatenated(parts);
  } else {
    expects(false, "the kinds of step are those of the catalogue");
  }
  return tensor;
}

void by_rank(CaseContext& context) {
  Scope site("user.by_rank");
  for (const Step& step : context.params().steps_of("steps", context.rank())) {
    context.add("out", run_step(context.rank(), step));
  }
}

void peer_exit(CaseContext& context) {
  Scope site("user.desync_peer_exit");
  if (context.rank() == 1) {
    compute(500 * millisecond);
    return;
  }
  all_reduce(Tensor::ones({1}));
}

void after_timeout(CaseContext& context) {
  Scope site("user.desync_after_timeout");
  const auto attempt = [&context](const char* label) {
    context.catching(label, [] { all_reduce(Tensor::ones({1})); });
  };
  if (context.rank() == 0) {
    attempt("first");
    attempt("second");
  } else {
    compute(3200 * millisecond);
    attempt("late");
  }
}

void peer_killed(CaseContext& context) {
  Scope site("user.desync_peer_killed");
  if (context.rank() == 1) {
    compute(500 * millisecond);
    throw ProcessKilled{"SIGKILL"};
  }
  all_reduce(Tensor::ones({1}));
}

void monitored(CaseContext& context, const char* name, const RankList& absent, bool wait_all_ranks) {
  Scope site(std::string("user.") + name);
  if (std::ranges::find(absent, context.rank()) == absent.end()) {
    monitored_barrier({.timeout = 2 * second, .wait_all_ranks = wait_all_ranks});
  }
}

void monitored_one(CaseContext& context) { monitored(context, "desync_monitored_barrier", {1}, false); }
void monitored_all(CaseContext& context) { monitored(context, "desync_monitored_barrier_all", {1, 3}, true); }
void monitored_root(CaseContext& context) { monitored(context, "desync_monitored_barrier_root", {0}, false); }

void two_groups(CaseContext& context) {
  Scope site("user.desync_two_groups");
  for (const char* name : {context.rank() == 0 ? "g1" : "g2", context.rank() == 0 ? "g2" : "g1"}) {
    all_reduce(Tensor::ones({1}), {.group = find_group(name)});
  }
}

void two_groups_async(CaseContext& context) {
  Scope site("user.desync_two_groups_async");
  const Tensor first = Tensor::full({1}, 1.0 + context.rank());
  const Tensor second = Tensor::full({1}, 5.0 + context.rank());
  std::vector<Work> works;
  const auto issue = [&works](const char* group, const Tensor& tensor) {
    works.push_back(all_reduce(tensor, {.group = find_group(group), .async_op = true}));
  };
  if (context.rank() == 0) {
    issue("g1", first);
    issue("g2", second);
  } else {
    issue("g2", second);
    issue("g1", first);
  }
  for (const Work& work : works) {
    work.wait();
  }
  context.put("first_group", first);
  context.put("second_group", second);
}

void group_cycle(CaseContext& context) {
  Scope site("user.desync_group_cycle");
  const char* order[][2] = {{"g1", "g3"}, {"g2", "g1"}, {"g3", "g2"}};
  for (const char* name : order[context.rank() % 3]) {
    all_reduce(Tensor::ones({1}), {.group = find_group(name)});
  }
}

// Collectives in flight do not block a message.
void async_threads(CaseContext& context) {
  Scope site("user.desync_async_threads");
  constexpr int calls = 4;
  if (context.rank() == 0) {
    std::vector<Work> works;
    for (int i = 0; i < calls; ++i) {
      Scope comprehension("user.<listcomp>");  // Python's name for the frame that makes the list
      works.push_back(all_reduce(Tensor::ones({1}), {.async_op = true}));
    }
    send(Tensor::ones({1}), 1);
    for (const Work& work : works) {
      work.wait();
    }
  } else {
    recv(Tensor::zeros({1}), 0);
    for (int i = 0; i < calls; ++i) {
      all_reduce(Tensor::ones({1}));
    }
  }
}

}  // namespace

std::span<const NamedProgram> desync_programs() {
  static const NamedProgram table[] = {
      {"desync_peer_killed", peer_killed},
      {"desync_peer*", peer_exit},
      {"desync_monitored_barrier", monitored_one},
      {"desync_monitored_barrier_all", monitored_all},
      {"desync_monitored_barrier_root", monitored_root},
      {"desync_after*", after_timeout},  // the name of a case with a timeout loses its "_timeout"
      {"desync_two_groups", two_groups, {{0, 1}, {0, 1}}},
      {"desync_two_groups_async", two_groups_async, {{0, 1}, {0, 1}}},
      {"desync_group_cycle", group_cycle, {{0, 1}, {1, 2}, {0, 2}}},
      {"desync_async_threads", async_threads},
      {"desync_*", by_rank},
  };
  return table;
}

}  // namespace rollcall::golden
