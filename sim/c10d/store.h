#pragma once

// Store: the key-value store through which torch.distributed's processes find each other, and programs exchange values
// outside collectives (torch/csrc/distributed/c10d/Store.hpp). One per run; a PrefixStore is the same store with a
// prefix on every key.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/site.h"
#include "sim/base/time.h"

namespace rollcall {

struct TorchTraits;

class Store {
 public:
  Store() = default;  // the run's
  // torch.distributed.PrefixStore.
  Store(const std::string& prefix, const Store& inner) : prefix_(inner.prefix_ + prefix + "/") {}

  void set(const std::string& key, const std::string& value, Site site = Site::here()) const;
  // Blocks until the key exists. Throws RuntimeError when that takes longer than the timeout. A program that relies on
  // one value passes it in `want`: reading another one is then a finding, though not an error.
  std::string get(const std::string& key, const std::optional<std::string>& want = {},
                  Site site = Site::here()) const;
  // Adds to the number at the key, or creates it; returns the sum. Throws ValueError if the value is not a number.
  std::int64_t add(const std::string& key, std::int64_t amount, Site site = Site::here()) const;
  // The same for a caller that ignores the sum: the order of the calls then makes no difference.
  void count(const std::string& key, std::int64_t amount, Site site = Site::here()) const;
  // Blocks until all keys exist.
  void wait(const std::vector<std::string>& keys, std::optional<Duration> timeout = {},
            Site site = Site::here()) const;
  bool check(const std::vector<std::string>& keys, Site site = Site::here()) const;
  // Sets the key to `desired` if it has the value `expected`, or is missing and `expected` is empty. Returns the value
  // it has afterwards; `expected` if it is still missing.
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired,
                          Site site = Site::here()) const;
  bool delete_key(const std::string& key, Site site = Site::here()) const;
  std::int64_t num_keys(Site site = Site::here()) const;

  // Sets the timeout of this handle's get and wait. Without one, they use the run's timeout.
  void set_timeout(Duration timeout) { timeout_ = timeout; }

 private:
  std::string prefix_;
  std::optional<Duration> timeout_;
};

// What a rank gets that has waited for `keys` of a TCPStore for too long.
RuntimeError store_timeout(const TorchTraits& torch, Duration limit, const std::vector<std::string>& keys);

}  // namespace rollcall
