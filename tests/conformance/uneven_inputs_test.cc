// PyTorch's own tests of uneven inputs, by their names: DDP's in
// torch/testing/_internal/distributed/distributed_test.py, ZeRO's in
// test/distributed/optim/test_zero_redundancy_optimizer.py.

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "sim/engine/simulate.h"
#include "tests/catch.h"
#include "tests/conformance/networks.h"

namespace rollcall::golden::uneven_inputs_test {

namespace {

constexpr Rank ranks = 4;

// Runs `train` on every rank and requires that all ranks finish.
void run_to_the_end(const std::function<void(Rank)>& train) {
  const Report report = sim::run({.world_size = ranks, .backend = "gloo"}, train);
  const Finding* finding = finding_of(report.verdict);
  INFO((finding == nullptr ? std::string() : finding->headline));
  CHECK(verdict_word(report.verdict) == "ok");
}

Network filled(const std::string& kind) { return Network::build(kind); }

std::vector<Parameter*> pointers(Module& module) {
  std::vector<Parameter*> parameters;
  for (Parameter& parameter : module.parameters) {
    parameters.push_back(&parameter);
  }
  return parameters;
}

std::vector<double> all_values(const Module& module) {
  std::vector<double> values;
  for (const Parameter& parameter : module.parameters) {
    const std::vector<double> more = parameter.value.to_vector();
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

// One forward and backward of a one-weight model on the input 1: its gradient is 1 on every rank.
double gradient_of_one(DistributedDataParallel& model, Network& network) {
  zero_grad(network.module);
  Pass pass;
  model.forward([&] { pass = network.forward({1, 1, {1.0}}); });
  model.backward(network.backward(pass));
  return network.module.parameters.front().grad.item();
}

}  // namespace

TEST_CASE("gradients are divided by all ranks, or by those with inputs (test_ddp_grad_div_uneven_inputs)",
          "[fiber][conformance]") {
  constexpr int before = 5;
  for (const bool divides_by_initial : {true, false}) {
    std::vector<std::vector<double>> gradients(ranks);
    run_to_the_end([&](Rank rank) {
      Network network = filled("linear_nobias");
      DistributedDataParallel model(network.module);
      auto loop = [&] {
        for (int i = 0; i < before + (rank == 0 ? 0 : 3); ++i) {
          gradients[static_cast<std::size_t>(rank)].push_back(gradient_of_one(model, network));
        }
      };
      model.join(loop, {.kwargs = {{"divide_by_initial_world_size", divides_by_initial}}});
    });
    for (Rank rank = 1; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < gradients[static_cast<std::size_t>(rank)].size(); ++i) {
        const double expected = i < before || !divides_by_initial ? 1.0 : (ranks - 1.0) / ranks;
        CHECK(gradients[static_cast<std::size_t>(rank)][i] == Approx(expected));
      }
    }
  }
}

TEST_CASE("uneven inputs on four ranks train like all of them on one (test_ddp_join_model_equivalence)",
          "[fiber][conformance]") {
  constexpr double lr = 0.03;
  std::vector<double> weights(ranks);
  run_to_the_end([&](Rank rank) {
    Network network = filled("linear_nobias");
    DistributedDataParallel model(network.module);
    const auto optimizer = make_optimizer(pointers(network.module), {.lr = lr * ranks});
    model.join([&] {
      for (int i = 0; i < 2 * (rank + 1); ++i) {
        gradient_of_one(model, network);
        optimizer->step();
      }
    });
    weights[static_cast<std::size_t>(rank)] = network.module.parameters.front().value.item();
  });
  const int inputs_of_all = ranks * (ranks + 1);
  for (const double weight : weights) {
    CHECK(weight == Approx(0.125 - lr * inputs_of_all));
  }
}

namespace {

struct Uneven {
  std::string model;
  bool find_unused = false;
  int sync_interval = 1;
  bool throws = false;
  CommHook hook{};
  std::vector<std::int64_t> inputs;
};

struct Ended {
  std::vector<double> values;
  Rank authoritative = -1;
  std::int64_t iterations = 0;
  std::string error;
};

// Does what each rank of the upstream test does. With an unused parameter, the joining ranks use one head, and the
// others the other.
Ended train_uneven(const Uneven& test, Rank rank) {
  Ended ended;
  Network network = filled(test.model);
  DistributedDataParallel model(network.module, {.find_unused_parameters = test.find_unused});
  if (test.hook) {
    model.register_comm_hook(test.hook);
  }
  const auto optimizer = make_optimizer(pointers(network.module), {.lr = 0.02});
  const auto learn = [&](std::int64_t i) {
    const Matrix input = sample(rank, i, 2, 2);
    Pass pass;
    model.forward([&] {
      pass = test.find_unused ? network.forward(input, {0, rank == 0 ? 1U : 2U}) : network.forward(input);
      return ForwardOutputs{network.unused(pass)};
    });
    model.backward(network.backward(pass));
  };
  const auto loop = [&] {
    for (std::int64_t i = 0; i < test.inputs[static_cast<std::size_t>(rank)]; ++i) {
      const bool syncs = (i + 1) % test.sync_interval == 0;
      std::optional<DistributedDataParallel::NoSync> quiet;
      if (!syncs) {
        quiet.emplace(model);
      }
      learn(i);
      ++ended.iterations;
      if (syncs) {
        optimizer->step();
        zero_grad(network.module);
      }
    }
  };
  try {
    model.join(loop, {.throw_on_early_termination = test.throws});
  } catch (const Error& error) {
    ended.error = error.what();
  }
  ended.authoritative = model.authoritative_rank();
  ended.values = all_values(network.module);
  return ended;
}

void check_uneven(const Uneven& test) {
  std::vector<Ended> ends(ranks);
  run_to_the_end([&](Rank rank) { ends[static_cast<std::size_t>(rank)] = train_uneven(test, rank); });
  const std::int64_t fewest = std::ranges::min(test.inputs);
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (!test.throws) {
      CHECK(ends[rank].authoritative == ranks - 1);
      CHECK(ends[rank].values == ends.front().values);
      continue;
    }
    CHECK(ends[rank].iterations == fewest);
    CHECK(ends[rank].error ==
          (test.inputs[rank] == fewest
               ? fmt::format("Rank {} exhausted all inputs.", rank)
               : "Detected at least one rank that exhausted inputs. Throwing across all ranks."));
  }
}

}  // namespace

TEST_CASE("every model trains on uneven inputs and ends alike everywhere (test_ddp_uneven_inputs)",
          "[fiber][conformance]") {
  const std::vector<std::vector<std::int64_t>> inputs{{0, 2, 2, 2}, {5, 7, 7, 7},    {0, 0, 3, 3},
                                                      {5, 5, 8, 8}, {0, 10, 10, 10}, {5, 15, 15, 15}};
  for (const std::string model : {"bn", "mlp3", "linear", "buffer_only"}) {
    for (const int interval : {1, 2, 3}) {
      for (const bool throws : {false, true}) {
        for (const auto& counts : inputs) {
          INFO(model << " interval " << interval << " throws " << throws << " first " << counts.front());
          check_uneven({.model = model, .sync_interval = interval, .throws = throws, .inputs = counts});
        }
      }
    }
  }
  for (const CommHook& hook : {CommHook(allreduce_hook), CommHook(fp16_compress_hook)}) {
    check_uneven({.model = "mlp3", .hook = hook, .inputs = {5, 7, 7, 7}});
    check_uneven({.model = "mlp3", .throws = true, .hook = hook, .inputs = {0, 10, 10, 10}});
  }
  check_uneven({.model = "branch", .find_unused = true, .inputs = {5, 7, 7, 7}});
  check_uneven({.model = "branch", .find_unused = true, .inputs = {0, 2, 2, 2}});
}

TEST_CASE(
    "a model that communicates stops everywhere at once (test_ddp_uneven_inputs_stop_iteration_sync_bn)",
    "[fiber][conformance]") {
  std::vector<std::int64_t> iterations(ranks);
  std::vector<std::vector<double>> values(ranks);
  run_to_the_end([&](Rank rank) {
    Network network = filled("mlp3");
    DistributedDataParallel model(network.module);
    const auto loop = [&] {
      for (int i = 0; i < 5 + rank; ++i) {
        Pass pass;
        model.forward([&] {
          all_reduce(Tensor::ones({8}));  // a layer that communicates, which nothing can shadow
          pass = network.forward(sample(rank, i, 2));
        });
        model.backward(network.backward(pass));
        ++iterations[static_cast<std::size_t>(rank)];
      }
    };
    CHECK_THROWS_AS(model.join(loop, {.throw_on_early_termination = true}), RuntimeError);
    values[static_cast<std::size_t>(rank)] = all_values(network.module);
  });
  CHECK(iterations == std::vector<std::int64_t>{5, 5, 5, 5});
  CHECK(std::set(values.begin(), values.end()).size() == 1);
}

TEST_CASE("a disabled context changes nothing (test_ddp_uneven_input_join_disable)", "[fiber][conformance]") {
  run_to_the_end([](Rank rank) {
    Network network = filled("linear_nobias");
    DistributedDataParallel model(network.module);
    auto loop = [&] {
      for (int i = 0; i < 5; ++i) {
        zero_grad(network.module);
        Pass pass;
        model.forward([&] { pass = network.forward({1, 1, {1.0 * rank}}); });
        model.backward(network.backward(pass));
        CHECK(network.module.parameters.front().grad.item() == Approx((0 + 1 + 2 + 3) / 4.0));
      }
    };
    model.join(loop, {.enable = false});
    CHECK_FALSE(model.join_config->enable);
  });
}

TEST_CASE("an exception of the forward leaves the context as it is (test_ddp_uneven_input_exception)",
          "[fiber][conformance]") {
  run_to_the_end([](Rank) {
    Network network = filled("linear");
    DistributedDataParallel model(network.module);
    const auto loop = [&] { model.forward([] { throw ValueError("Intentional error"); }); };
    CHECK_THROWS_WITH(model.join(loop), "Intentional error");
  });
}

namespace {

// The upstream test's joinable in front of ZeRO: it puts gradients into the parameters, on joined ranks too.
class GradientSetter final : public Joinable {
 public:
  explicit GradientSetter(Module& module) : module_(module) {}

  void set() {
    Join::notify_join_context(*this);
    set_next();
  }
  std::unique_ptr<JoinHook> join_hook(const Kwargs&) override { return std::make_unique<Hook>(*this); }
  Device join_device() const override { return cpu_device; }
  ProcessGroup join_process_group() const override { return world(); }

 private:
  class Hook final : public JoinHook {
   public:
    explicit Hook(GradientSetter& owner) : owner_(owner) {}
    void main_hook() override { owner_.set_next(); }

   private:
    GradientSetter& owner_;
  };

  void set_next() {
    ++step_;
    for (Parameter& parameter : module_.parameters) {
      parameter.grad = Tensor::full(parameter.value.shape(), 0.5 * step_);
    }
  }

  Module& module_;
  int step_ = 0;
};

}  // namespace

TEST_CASE("a sharded optimizer with its gradients supplied trains like a local one (test_zero_join)",
          "[fiber][conformance]") {
  constexpr int base_inputs = 3;
  const OptimizerOptions adam{.kind = OptimizerOptions::Kind::adam, .lr = 0.01};
  run_to_the_end([&](Rank rank) {
    Network local = filled("mlp3");
    const auto reference = make_optimizer(pointers(local.module), adam);
    Network network = filled("mlp3");
    GradientSetter gradients(network.module);
    ZeroRedundancyOptimizer optimizer(pointers(network.module), adam);
    Join({gradients, optimizer}).run([&] {
      for (int i = 0; i < base_inputs + rank; ++i) {
        gradients.set();
        optimizer.step();
      }
    });
    for (int i = 1; i < base_inputs + ranks; ++i) {
      for (Parameter& parameter : local.module.parameters) {
        parameter.grad = Tensor::full(parameter.value.shape(), 0.5 * i);
      }
      reference->step();
    }
    CHECK(all_values(network.module) == all_values(local.module));
  });
}

}  // namespace rollcall::golden::uneven_inputs_test
