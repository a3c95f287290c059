#include "sim/judge/complete_parts.h"

#include "sim/train/sampler.h"
#include "tests/catch.h"

namespace rollcall::check::judge_samples_test {

TEST_CASE("samplers with one seed are well", "[samples]") {
  CHECK_FALSE(judge_samples({.dataset = 10, .repeated = 2}));
}

TEST_CASE("the rank whose sampler has a different seed than the others is named", "[samples]") {
  const auto verdict = judge_samples({.dataset = 100, .seeds = {7, 7, 8, 7}, .repeated = 30});
  REQUIRE(verdict);
  CHECK(verdict_word(*verdict) == "wrong_result");
  CHECK(finding_of(*verdict)->kind == FindingKind::samples_repeated);
  CHECK(finding_of(*verdict)->culprits == RankSet{2});
  CHECK_FALSE(finding_of(*verdict)->tie);
}

TEST_CASE("seeds of which none has a majority are a tie", "[samples]") {
  const auto verdict = judge_samples({.dataset = 100, .seeds = {0, 1, 2}, .repeated = 30});
  REQUIRE(verdict);
  CHECK(finding_of(*verdict)->culprits == RankSet{0, 1, 2});
  CHECK(finding_of(*verdict)->tie);
}

TEST_CASE("ranks with different seeds see each other's samples, and leave others out", "[samples]") {
  const SamplerOptions options{.dataset = 100, .num_replicas = 4};
  const EpochSamples same = samples_per_epoch(options, {5, 5, 5, 5});
  CHECK(same.repeated == 0);
  CHECK(same.dropped == 0);
  const EpochSamples other = samples_per_epoch(options, {5, 5, 5, 6});
  CHECK(other.repeated > 0);
  CHECK(other.dropped == other.repeated);  // every sample that is seen twice replaces another one
}

}  // namespace rollcall::check::judge_samples_test
