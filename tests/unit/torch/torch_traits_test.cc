#include "sim/torch/torch_traits.h"

#include "tests/catch.h"

namespace rollcall::torch_traits_test {

TEST_CASE("a version means the release that it begins with, or that begins with it") {
  CHECK(parse_torch_release("2.6") == TorchRelease::v2_6);
  CHECK(parse_torch_release("2.6.0+cpu") == TorchRelease::v2_6);
  CHECK(parse_torch_release("1.13.0a0") == TorchRelease::v1_13);
  CHECK(parse_torch_release("2.14.1+debian") == TorchRelease::v2_14);
  CHECK(parse_torch_release("2") == TorchRelease::v2_14);
  CHECK(parse_torch_release("1") == TorchRelease::v1_13);
}

TEST_CASE("a version that is not known means no release") {
  for (const char* version :
       {"", "2.8", "2.1", "3", "0", "new", "2.", "2.x", "-2", "2,6", "v2.6", "2.99999999999"}) {
    INFO(version);
    CHECK_FALSE(parse_torch_release(version));
  }
}

TEST_CASE("a version that was seen somewhere counts as the newest release before it") {
  CHECK(nearest_torch_release("2.8.1") == TorchRelease::v2_6);
  CHECK(nearest_torch_release("2.0") == TorchRelease::v1_13);
  CHECK(nearest_torch_release("1.9") == TorchRelease::v1_13);
  CHECK(nearest_torch_release("3.1") == TorchRelease::v2_14);
  CHECK(nearest_torch_release("2.14.1") == TorchRelease::v2_14);
  CHECK_FALSE(nearest_torch_release("latest"));
}

TEST_CASE("what came with a release, later ones have too") {
  const TorchTraits& oldest = traits_of(TorchRelease::v1_13);
  const TorchTraits& middle = traits_of(TorchRelease::v2_6);
  const TorchTraits& newest = traits_of(newest_torch);
  CHECK(oldest.new_group_waits_for_all);
  for (const TorchTraits* later : {&middle, &newest}) {
    CHECK_FALSE(later->new_group_waits_for_all);
    CHECK_FALSE(later->subgroups_need_cuda);
    CHECK_FALSE(later->first_bucket_is_small);
    CHECK(later->gloo_small_types);
    CHECK(later->local_names != LocalGroupNames::unknown);
  }
  CHECK(newest.gloo_averages);
  CHECK_FALSE(middle.gloo_averages);
}

}  // namespace rollcall::torch_traits_test
