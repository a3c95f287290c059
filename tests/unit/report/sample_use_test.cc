#include "sim/report/sample_use.h"
#include "tests/catch.h"

namespace rollcall::sample_use_test {

TEST_CASE("a padding sampler repeats samples, and the phrase says how many", "[report]") {
  SampleUse use{.dataset = 1001, .ranks = 4, .batch_size = 10, .fewest = 251, .most = 251, .repeated = 3};
  CHECK(samples_phrase(use) ==
        "1001 samples: 251 for each of 4 ranks, in 26 batches of 10; 3 seen twice per epoch (0.3 %), none is "
        "dropped");
  const std::vector<std::string> biases = sample_biases(use);
  REQUIRE(biases.size() == 2);
  CHECK(biases[0].find("3 of 1001 samples more than once") != std::string::npos);
  CHECK(biases[0].ends_with("different ones in every epoch, if set_epoch is called"));
  CHECK(biases[1].find("the last batch holds 1: ") != std::string::npos);
  CHECK(biases[1].find("10.0 times") != std::string::npos);
  use.shuffle = false;
  CHECK(sample_biases(use)[0].ends_with("always numbers 0 to 2"));
}

TEST_CASE("what sampler and loaders leave out is added up", "[report]") {
  const SampleUse use{.shuffle = false,
                      .dataset = 103,
                      .ranks = 4,
                      .batch_size = 4,
                      .drop_short_batch = true,
                      .fewest = 25,
                      .most = 25,
                      .dropped_by_sampler = 3,
                      .dropped_by_loader = 4};
  CHECK(use.dropped() == 7);
  CHECK(use.batches(use.most) == 6);
  CHECK(samples_phrase(use).ends_with("none is seen twice, 7 dropped (6.8 %)"));
  const std::vector<std::string> biases = sample_biases(use);
  REQUIRE(biases.size() == 2);
  CHECK(biases[0] == "the sampler drops 3 (2.9 %); always numbers 100 to 102");
  CHECK(biases[1] == "the loaders drop short batches with 4 samples (3.9 %)");
}

TEST_CASE("every sample once, in full batches: no bias", "[report]") {
  const SampleUse use{.dataset = 80, .ranks = 4, .batch_size = 10, .fewest = 20, .most = 20};
  CHECK(sample_biases(use).empty());
}

}  // namespace rollcall::sample_use_test
