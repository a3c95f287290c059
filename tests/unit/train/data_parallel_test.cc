#include "sim/train/data_parallel.h"
#include "tests/catch.h"

namespace rollcall::data_parallel_test {

TEST_CASE("in DataParallel the output device holds what the others do not", "[dist]") {
  const auto memory = data_parallel_memory({.gpus = 4,
                                            .batch_size = 10,
                                            .parameters = 100,
                                            .optimizer_state = 200,
                                            .input = 1,
                                            .activations = 5,
                                            .output = 2});
  REQUIRE(memory.size() == 4);
  // torch.chunk splits 10 into 3, 3, 3, 1.
  CHECK(memory[0] == DeviceMemory{.samples = 3,
                                  .parameters = 100,
                                  .gradients = 100,
                                  .optimizer_state = 200,
                                  .inputs = 3 + 10,
                                  .activations = 15,
                                  .outputs = 6 + 20});
  CHECK(memory[1] ==
        DeviceMemory{.samples = 3, .parameters = 100, .inputs = 3, .activations = 15, .outputs = 6});
  CHECK(memory[3].samples == 1);
  CHECK(memory[3].total() == 100 + 1 + 5 + 2);
}

TEST_CASE("GPUs without samples get no replica", "[dist]") {
  const auto memory = data_parallel_memory({.gpus = 4, .output_device = 1, .batch_size = 2, .parameters = 8});
  CHECK(memory[0].total() == 8);
  CHECK(memory[1].total() == 16);
  CHECK(memory[2] == DeviceMemory{});
}

}  // namespace rollcall::data_parallel_test
