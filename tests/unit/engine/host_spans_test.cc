// Group and store calls in a run's timeline.

#include <string>
#include <vector>

#include <fmt/core.h>

#include "tests/catch.h"
#include "tests/unit/engine/job.h"

namespace rollcall::sim::host_spans_test {
namespace {

// Returns the host's calls as "rank 0 new_group 0 world 5..12", in the order in which they ended, open ones last.
std::vector<std::string> host_calls(const Report& report) {
  std::vector<std::string> texts;
  for (const Span& span : report.timeline.spans()) {
    if (span.kind == Span::Kind::host) {
      texts.push_back(fmt::format("rank {} {} {} {}{}{} {}..{}", span.rank, report.timeline.name(span.name),
                                  span.seq, report.timeline.name(span.group), span.arguments == 0 ? "" : " ",
                                  report.timeline.name(span.arguments), span.start / millisecond,
                                  span.end == Span::open ? "" : std::to_string(span.end / millisecond)));
    }
  }
  return texts;
}

Report recorded(Options options, const Program& program) {
  options.timeline = true;
  return run(options, program);
}

}  // namespace

TEST_CASE("a timeline has the waits of hosts for each other's groups", "[host_spans][fiber]") {
  for (Options options : {gloo(2), nccl(2)}) {
    options.torch = TorchRelease::v1_13;  // in which all ranks wait for all
    const Report report = recorded(options, [](Rank rank) {
      compute(rank * 7 * millisecond);
      new_group();
    });
    CHECK(host_calls(report) ==
          std::vector<std::string>{"rank 0 new_group 0 world 0..7", "rank 1 new_group 0 world 7..7"});
  }
}

TEST_CASE("a timeline has calls on the store, with their keys", "[host_spans][fiber]") {
  const Report report = recorded(gloo(2), [](Rank rank) {
    if (rank == 0) {
      compute(3 * millisecond);
      Store().set("a", "1");
    } else {
      Store().wait({"a"});
    }
  });
  CHECK(host_calls(report) == std::vector<std::string>{"rank 0 store_set -1 world key a 3..3",
                                                       "rank 1 store_wait -1 world key a 0..3"});
}

TEST_CASE("what a host never comes back from stays open, and what it gave up ends then",
          "[host_spans][fiber]") {
  const Report hang = recorded(nccl(2), [](Rank rank) {
    if (rank == 0) {
      Store().wait({"a", "b"});
    } else {
      destroy_process_group();
    }
  });
  CHECK(host_calls(hang) == std::vector<std::string>{"rank 0 store_wait -1 world keys a, b 0..",
                                                     "rank 1 destroy_process_group 0 world 0.."});
  const Report late = recorded(gloo(1), [](Rank) {
    try {
      Store().wait({"a"}, 5 * millisecond);
    } catch (const Error&) {
    }
  });
  CHECK(host_calls(late) == std::vector<std::string>{"rank 0 store_wait -1 world key a 0..5"});
}

TEST_CASE("a first batch that waits for members shows when it went on", "[host_spans][fiber]") {
  const Report report = recorded(nccl(2), [](Rank rank) {
    compute(rank * 2 * millisecond);
    const std::vector<PointToPoint> batch{{rank == 0 ? OpKind::send : OpKind::recv, one(), 1 - rank}};
    batch_isend_irecv(batch).front().wait();
  });
  CHECK(host_calls(report) == std::vector<std::string>{"rank 0 batch_isend_irecv 0 world 0..2",
                                                       "rank 1 batch_isend_irecv 0 world 2..2"});
}

}  // namespace rollcall::sim::host_spans_test
