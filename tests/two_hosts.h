#pragma once

// Two hosts on one machine: two connected network namespaces.

#include <cstdlib>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

namespace rollcall::test {

inline bool succeeds(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// Needs root and iproute2. `made` is true if there are two hosts.
class TwoHosts {
 public:
  TwoHosts()
      : first_(fmt::format("rollcall-{}-a", ::getpid())),
        second_(fmt::format("rollcall-{}-b", ::getpid())),
        made_(add(first_) && add(second_) &&
              succeeds(fmt::format("ip -n {0} link add wire type veth peer name wire netns {1}", first_,
                                   second_)) &&
              give(first_, "10.77.0.1") && give(second_, "10.77.0.2")) {}
  ~TwoHosts() {
    for (const std::string& host : {first_, second_}) {
      succeeds("ip netns del " + host);
    }
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  bool made() const { return made_; }
  // Returns the words that run the command after them on that host, 0 or 1. The master is on host 0.
  std::string on(int host) const {
    return fmt::format(
        "ip netns exec {} env MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 "
        "ROLLCALL_TOKEN='a secret of this test'",
        host == 0 ? first_ : second_);
  }

 private:
  static bool add(const std::string& host) { return succeeds("ip netns add " + host); }
  static bool give(const std::string& host, const std::string& address) {
    return succeeds(
        fmt::format("ip -n {0} addr add {1}/24 dev wire && ip -n {0} link set wire up && "
                    "ip -n {0} link set lo up",
                    host, address));
  }

  std::string first_;
  std::string second_;
  bool made_;
};

}  // namespace rollcall::test
