#pragma once

// The keys and values of a run's store. Pure; who waits is the engine's business. The rules are those that
// TCPStore and HashStore of torch share (torch/csrc/distributed/c10d/HashStore.cpp), measured on 1.13.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/c10d/host_calls.h"

namespace rollcall {

class StoreState {
 public:
  // Of `keys`, those that do not exist.
  std::vector<std::string> missing(const std::vector<std::string>& keys) const;

  // What the call does and gets, now. The keys of a get exist. Throws ValueError when a word is added to.
  StoreReply apply(const StoreCall& call);

  const std::map<std::string, std::string>& values() const { return values_; }
  // Of all keys and values.
  std::int64_t bytes() const { return bytes_; }

 private:
  void put(const std::string& key, std::string value);
  bool erase(const std::string& key);
  std::int64_t add(const std::string& key, std::int64_t amount);
  std::string compare_set(const StoreCall& call);

  std::map<std::string, std::string> values_;
  std::int64_t bytes_ = 0;
};

}  // namespace rollcall
