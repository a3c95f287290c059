#include <string>

#include "sim/tensor/device.h"
#include "tests/catch.h"

namespace rollcall::device_test {

TEST_CASE("a device is read back from its name") {
  for (const char* name : {"cpu", "meta", "cuda:0", "cuda:7"}) {
    INFO(name);
    REQUIRE(parse_device(name));
    CHECK(to_string(*parse_device(name)) == name);
  }
  CHECK(parse_device("cuda") == Device{DeviceType::cuda, 0});
}

TEST_CASE("what names no device is refused") {
  for (const char* name :
       {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda: 1", "cuda:99999", "CPU", "cpu:0 "}) {
    INFO(name);
    CHECK_FALSE(parse_device(name));
  }
}

}  // namespace rollcall::device_test
