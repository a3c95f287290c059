// What gloo does to whole programs: late errors, its own order of additions, and timeouts of slow peers. Ranks note
// what they saw; nothing is checked on their stacks.

#include "sim/gloo/gloo_rules.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::sim::gloo_rules_test {
namespace {

using State = RankClass::State;

Options gloo(Rank world_size) { return {.world_size = world_size, .backend = "gloo"}; }

// Returns the text of the Error that `body` throws, or "" if it throws none.
template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

Options old_gloo(Rank ranks) {
  Options options = gloo(ranks);
  options.torch = TorchRelease::v1_13;
  return options;
}

}  // namespace

TEST_CASE("a dtype that gloo does not know is an error of waiting, not of the call", "[gloo_rules][fiber]") {
  std::string at_call = "not called";
  std::string at_wait;
  bool completed = false;
  const Report report = run(old_gloo(1), [&](Rank) {
    Work work;
    at_call = error_of([&] { work = all_reduce(Tensor::ones({1}, Dtype::boolean), {.async_op = true}); });
    completed = work.is_completed();
    at_wait = error_of([&] { work.wait(); });
  });
  CHECK(at_call.empty());
  CHECK(completed);
  CHECK(at_wait == "Invalid scalar type");
  CHECK(verdict_word(report.verdict) == "ok");
}

TEST_CASE("a call that fails late has taken its number, so the others are one call apart",
          "[gloo_rules][fiber]") {
  std::string first;
  const Report report = run(old_gloo(2), [&](Rank rank) {
    if (rank == 0) {
      first = error_of([] { all_reduce(Tensor::ones({1}, Dtype::boolean)); });
    }
    all_reduce(Tensor::ones({1}));
  });
  CHECK(first == "Invalid scalar type");
  CHECK(report.of(0).state == State::waiting);  // in number 1, which rank 1 never reaches
  CHECK(report.of(0).call->seq == 1);
  CHECK(report.of(1).state == State::waiting);
  CHECK(report.of(1).call->seq == 0);
}

TEST_CASE("a call that gloo lacks takes no number", "[gloo_rules][fiber]") {
  std::string first;
  double sum = 0;
  const Report report = run(old_gloo(2), [&](Rank rank) {
    if (rank == 0) {
      const TensorList two{Tensor::ones({1}), Tensor::ones({1})};
      first = error_of([&two] { all_to_all(two, two); });
    }
    const Tensor tensor = Tensor::ones({1});
    all_reduce(tensor);
    sum = tensor.item();
  });
  CHECK(first == "ProcessGroup gloo does not support alltoall");
  CHECK(sum == 2);
  CHECK(verdict_word(report.verdict) == "ok");
}

TEST_CASE("when every rank's call fails late, every rank raises and nobody is to blame for a mismatch",
          "[gloo_rules][fiber]") {
  const Report report = run(old_gloo(3), [](Rank) { all_reduce(Tensor::ones({1}), {.op = ReduceOp::avg}); });
  CHECK(verdict_word(report.verdict) == "rank_failed");
  CHECK(report.of(2).exception == "RuntimeError: Cannot use ReduceOp.AVG with Gloo");
}

TEST_CASE("since 2.x gloo has bool and the flat collectives, since 2.14 lists and averages",
          "[gloo_rules][fiber]") {
  const auto texts_of = [](TorchRelease torch) {
    Options options = gloo(2);
    options.torch = torch;
    std::vector<std::string> texts;
    run(options, [&](Rank rank) {
      const TensorList two{Tensor::ones({1}), Tensor::ones({1})};
      const Tensor pair = Tensor::ones({2});
      const std::vector<std::string> own{
          error_of([] { all_reduce(Tensor::ones({1}, Dtype::boolean)); }),
          error_of([&] { all_gather_into_tensor(pair, Tensor::ones({1})); }),
          error_of([&] { reduce_scatter_tensor(Tensor::ones({1}), pair); }),
          error_of([&] { reduce_scatter(Tensor::ones({1}), two); }),
          error_of([&] { all_to_all(two, two); }),
          error_of([] { all_reduce(Tensor::ones({1}), {.op = ReduceOp::avg}); })};
      if (rank == 0) {
        texts = own;
      }
    });
    return texts;
  };
  CHECK(texts_of(TorchRelease::v2_6) ==
        std::vector<std::string>{"", "", "", "ProcessGroupGloo does not support reduce_scatter",
                                 "Backend gloo does not support alltoall",
                                 "Cannot use ReduceOp.AVG with Gloo"});
  CHECK(texts_of(TorchRelease::v2_14) == std::vector<std::string>(6));
}

// Values from real ranks of torch 2.14.1: 1e8, 1 and -1e8 in float32, whose sum differs with each order.
TEST_CASE("a reduce_scatter adds in the order of the calls that torch makes it of", "[gloo_rules][fiber]") {
  std::vector<double> flat(3);
  std::vector<double> lists(3);
  std::vector<double> averages(3);
  run(gloo(3), [&](Rank rank) {
    const double own = std::vector<double>{1e8, 1, -1e8}[static_cast<std::size_t>(rank)];
    const auto index = static_cast<std::size_t>(rank);
    const Tensor part = Tensor::zeros({2});
    reduce_scatter_tensor(part, Tensor::full({6}, own));
    flat[index] = part.at(0);
    reduce_scatter(part, {Tensor::full({2}, own), Tensor::full({2}, own), Tensor::full({2}, own)});
    lists[index] = part.at(1);
    reduce_scatter_tensor(part, Tensor::full({6}, own), {.op = ReduceOp::avg});
    averages[index] = part.at(0);
  });
  CHECK(flat == std::vector<double>{0, 1, 0});
  CHECK(lists == std::vector<double>{0, 0, 0});
  CHECK(averages == std::vector<double>{0, static_cast<double>(1.0F / 3.0F), 0});
}

TEST_CASE("under DETAIL a late error comes after the comparison", "[gloo_rules][fiber]") {
  Options options = gloo(2);
  options.debug = DebugLevel::detail;
  const Report report = run(
      options, [](Rank rank) { all_reduce(Tensor::ones({1}, rank == 0 ? Dtype::int16 : Dtype::float32)); });
  CHECK_THAT(report.of(0).exception, Contains("Detected mismatch between collectives"));
  CHECK_THAT(report.of(1).exception, Contains("Detected mismatch between collectives"));
}

TEST_CASE("large reductions keep the reference order and stay uniform", "[gloo_rules][fiber]") {
  constexpr std::int64_t large = 1'000'000;
  const double values[] = {1e8, 1, -1e8, 1};
  std::vector<Storage::Form> forms(4);
  std::vector<double> small_ends(2);
  run(gloo(4), [&](Rank rank) {
    const Tensor tensor = Tensor::full({large}, values[rank]);
    all_reduce(tensor);
    forms[static_cast<std::size_t>(rank)] = tensor.storage()->form;
    const Tensor few = Tensor::full({4}, values[rank]);
    all_reduce(few);
    small_ends = {few.at(0), few.at(3)};
  });
  CHECK(forms == std::vector<Storage::Form>(4, Storage::Form::uniform));
  CHECK(small_ends == std::vector<double>{0, 1});
}

TEST_CASE("a rank whose peers are merely slow gives up at its timeout", "[gloo_rules][fiber]") {
  Options options = gloo(2);
  options.timeout = 2 * second;
  std::vector<std::string> errors(2);
  const Report report = run(options, [&](Rank rank) {
    compute(rank * 3 * second);
    errors[static_cast<std::size_t>(rank)] = error_of([] { all_reduce(Tensor::ones({1})); });
  });
  CHECK_THAT(errors[0], Contains("Timed out waiting 2000ms"));
  CHECK(errors[1] == "Application timeout caused pair closure");
  CHECK(report.simulated_time == 3 * second);
}

// Values from real ranks of torch 2.6.0.
TEST_CASE("reduce_scatter_tensor of 2.6 adds up on gloo, whatever it is told", "[gloo_rules][fiber]") {
  const auto scattered = [](TorchRelease torch, ReduceOp reduce) {
    Options options = gloo(2);
    options.torch = torch;
    double value = 0;
    run(options, [&](Rank rank) {
      const Tensor part = Tensor::zeros({1});
      reduce_scatter_tensor(part, Tensor::full({2}, rank + 2), {.op = reduce});
      value = part.at(0);
    });
    return value;
  };
  for (const ReduceOp reduce : {ReduceOp::sum, ReduceOp::max, ReduceOp::product, ReduceOp::avg}) {
    CHECK(scattered(TorchRelease::v2_6, reduce) == 5);
  }
  CHECK(scattered(TorchRelease::v2_14, ReduceOp::max) == 3);
  CHECK(scattered(TorchRelease::v2_14, ReduceOp::product) == 6);
}

// As on real ranks of torch 2.14.1.
TEST_CASE("parts of different sizes are reduced and scattered on gloo, each to its rank",
          "[gloo_rules][fiber]") {
  const std::vector<std::vector<std::int64_t>> cases = {{1, 5}, {5, 1}, {1, 2, 3, 4}, {2, 1, 3}};
  for (const std::vector<std::int64_t>& sizes : cases) {
    Options options = gloo(static_cast<Rank>(sizes.size()));
    options.torch = TorchRelease::v2_14;
    const Report report = run(options, [&](Rank rank) {
      const auto numel = sizes[static_cast<std::size_t>(rank)];
      const Tensor part = Tensor::zeros({numel});
      TensorList parts;
      for (const std::int64_t size : sizes) {
        parts.push_back(Tensor::full({size}, rank + 1));
      }
      reduce_scatter(part, parts);
      const auto ranks = static_cast<double>(sizes.size());
      if (part.at(0) != ranks * (ranks + 1) / 2 || part.at(numel - 1) != part.at(0)) {
        throw std::runtime_error("a wrong sum");
      }
    });
    CHECK(std::holds_alternative<Completed>(report.verdict));
  }
}

TEST_CASE("gloo has no gather_single, in any release", "[gloo_rules][fiber]") {
  std::string text;
  run(gloo(2), [&](Rank) {
    text = error_of([] { gather_single(Tensor::ones({1}), Tensor::zeros({2}), get_rank()); });
  });
  CHECK(text == "Backend gloo does not support gather_single");
}

}  // namespace rollcall::sim::gloo_rules_test
