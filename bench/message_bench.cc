// What a message from rank to rank costs: CPU nanoseconds per message that is sent and received, matching and
// judging on, timeline off.
//
//   message_bench [RANKS [MESSAGES]]     1,000 ranks, 2,000 messages from each

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <variant>
#include <vector>

#include "bench/measure.h"
#include "sim/base/expects.h"
#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"

namespace rollcall::bench {

namespace {

constexpr int repetitions = 9;

// A ring: everybody sends to the right and receives from the left.
double ns_per_message(Rank ranks, std::int64_t messages) {
  Probe probe(ranks, messages);
  const Report report = sim::run({.world_size = ranks, .backend = "gloo"}, [&](Rank rank) {
    Tensor out = Tensor::zeros({1});
    Tensor in = Tensor::zeros({1});
    const Rank right = (rank + 1) % ranks;
    const Rank left = (rank + ranks - 1) % ranks;
    barrier();
    probe.started();
    for (std::int64_t i = 0; i < messages; ++i) {
      const Work sent = isend(out, right);
      recv(in, left);
      sent.wait();
    }
    probe.finished();
  });
  expects(std::holds_alternative<Completed>(report.verdict), "the measured program completes");
  return probe.sample().ns_per_op;
}

int run(Rank ranks, std::int64_t messages) {
  std::vector<double> figures;
  for (int i = 0; i < repetitions; ++i) {
    figures.push_back(ns_per_message(ranks, messages));
  }
  std::ranges::sort(figures);
  std::printf("%d ranks, %lld messages each: %.1f ns per message (median of %d)\n", ranks,
              static_cast<long long>(messages), figures[repetitions / 2], repetitions);
  return 0;
}

}  // namespace

}  // namespace rollcall::bench

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 1'000;
  const long long messages = argc > 2 ? std::atoll(argv[2]) : 2'000;
  if (ranks < 2 || messages < 1) {
    std::fprintf(stderr, "usage: message_bench [RANKS [MESSAGES]]\n");
    return 4;
  }
  return rollcall::bench::run(ranks, messages);
}
