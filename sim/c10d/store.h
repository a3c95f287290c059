#pragma once

// Store: the key-value store that torch.distributed's processes find each other with, and that programs use to
// tell each other things outside every collective (torch/csrc/distributed/c10d/Store.hpp). One per run; a
// PrefixStore is the same one with a prefix before every key.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/site.h"
#include "sim/base/time.h"

namespace rollcall {

class Store {
 public:
  Store() = default;  // the run's
  // torch.distributed.PrefixStore.
  Store(const std::string& prefix, const Store& inner) : prefix_(inner.prefix_ + prefix + "/") {}

  void set(const std::string& key, const std::string& value, Site site = Site::here()) const;
  // Blocks until the key exists. RuntimeError when that takes longer than the timeout. A program that relies on
  // one value says which in `want`: to read another is then a finding, though not an error.
  std::string get(const std::string& key, const std::optional<std::string>& want = {},
                  Site site = Site::here()) const;
  // Adds to the number at the key, or makes it; the sum. ValueError when a word is there.
  std::int64_t add(const std::string& key, std::int64_t amount, Site site = Site::here()) const;
  // The same for a sum that nobody looks at: who comes first makes no difference then.
  void count(const std::string& key, std::int64_t amount, Site site = Site::here()) const;
  // Blocks until all keys exist.
  void wait(const std::vector<std::string>& keys, std::optional<Duration> timeout = {},
            Site site = Site::here()) const;
  bool check(const std::vector<std::string>& keys, Site site = Site::here()) const;
  // Sets the key to `desired` if it has the value `expected`, or is missing and `expected` is empty. What is
  // there afterwards; `expected` if it is missing still.
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired,
                          Site site = Site::here()) const;
  bool delete_key(const std::string& key, Site site = Site::here()) const;
  std::int64_t num_keys(Site site = Site::here()) const;

  // Of this handle's get and wait. Without one they wait as long as the run's timeout says.
  void set_timeout(Duration timeout) { timeout_ = timeout; }

 private:
  std::string prefix_;
  std::optional<Duration> timeout_;
};

}  // namespace rollcall
