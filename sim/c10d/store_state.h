#pragma once

// The keys and values of a run's store. Pure data; the engine decides which ranks wait. The rules are those that
// torch's TCPStore and HashStore share (torch/csrc/distributed/c10d/HashStore.cpp), measured on 1.13.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/c10d/host_calls.h"

namespace rollcall {

class StoreState {
 public:
  // Returns those of `keys` that do not exist.
  std::vector<std::string> missing(const std::vector<std::string>& keys) const;
  // Returns those that the call has to wait for: only get and wait do.
  std::vector<std::string> awaited_by(const StoreCall& call) const;

  // Applies the call and returns its reply. The keys of a get exist. Throws ValueError for an add to a value that is
  // not a number.
  StoreReply apply(const StoreCall& call);

  const std::map<std::string, std::string>& values() const { return values_; }
  // The size of all keys and values.
  std::int64_t bytes() const { return bytes_; }

 private:
  void put(const std::string& key, std::string value);
  std::int64_t count(const std::string& prefix) const;
  bool erase(const std::string& key);
  std::int64_t add(const std::string& key, std::int64_t amount);
  std::string compare_set(const StoreCall& call);

  std::map<std::string, std::string> values_;
  std::int64_t bytes_ = 0;
};

}  // namespace rollcall
