#pragma once

// Small rings in the format of traces/recorder/rollcall_recorder/ring.py.

#include <cstdint>
#include <cstring>
#include <string>

#include <fmt/core.h>

#include "sim/c10d/op.h"

namespace rollcall::test {

class RingBuilder {
 public:
  RingBuilder(Rank rank, Rank world_size, std::uint32_t capacity = 8) : capacity_(capacity) {
    bytes_.assign(4096 + capacity * 64, '\0');
    std::memcpy(bytes_.data(), "rollcall", 8);
    put32(8, 1);
    put32(12, 64);
    put32(16, static_cast<std::uint32_t>(rank));
    put32(20, static_cast<std::uint32_t>(world_size));
    put32(24, 4711);
    put32(28, capacity);
    put64(32, bytes_.size());
    put64(40, 1 << 20);
    describe(fmt::format("{{\"rollcall_ring\":1,\"torch\":\"2.14.1\"}}"));
  }

  RingBuilder& describe(const std::string& line) {
    table_ += line + "\n";
    return *this;
  }
  // Adds all ranks as group 1.
  RingBuilder& world(const std::string& ranks) {
    return describe(
        fmt::format(R"({{"group":1,"name":"0","ranks":[{}],"backend":"gloo","timeout_ms":1800000}})", ranks));
  }
  RingBuilder& call(int number, const std::string& op,
                    const std::string& more = R"("in":[[4]],"in_dtypes":["float32"])") {
    return describe(fmt::format(R"({{"call":{},"op":"{}",{},"stack":[["/home/me/train.py",{},"main"]]}})",
                                number, op, more, 10 + number));
  }
  // `finished_ns` is 0 if the call is not over.
  RingBuilder& issue(std::uint32_t call, std::uint64_t seq, std::uint64_t created_ns,
                     std::uint64_t finished_ns, std::uint32_t group = 1, std::uint64_t flags = 0) {
    ++issued_;
    const std::size_t place = 4096 + (issued_ & (capacity_ - 1)) * 64;
    put64(place, issued_);
    put64(place + 8, created_ns);
    put64(place + 16, finished_ns);
    put64(place + 32, call | std::uint64_t{group} << 32U);
    put64(place + 40, seq);
    put64(place + 48, flags);
    return *this;
  }
  RingBuilder& stands_still(std::uint64_t since_ns) {
    put64(13 * 8, since_ns);
    return *this;
  }
  RingBuilder& put64(std::size_t place, std::uint64_t value) {
    std::memcpy(bytes_.data() + place, &value, sizeof value);
    return *this;
  }
  RingBuilder& put32(std::size_t place, std::uint32_t value) {
    std::memcpy(bytes_.data() + place, &value, sizeof value);
    return *this;
  }

  std::string bytes() const {
    RingBuilder done = *this;
    done.put64(48, table_.size());
    done.put64(56, issued_);
    return done.bytes_ + table_;
  }

 private:
  std::uint32_t capacity_;
  std::string bytes_;
  std::string table_;
  std::uint64_t issued_ = 0;
};

}  // namespace rollcall::test
