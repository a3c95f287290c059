#pragma once

// Store: how ranks that are not connected yet find each other, as torch's Store: names and values that all
// ranks of a run see.

#include <cstdint>
#include <memory>
#include <string>

namespace rollcall::real {

class Store {
 public:
  virtual ~Store() = default;
  // May be called from one thread at a time. Both throw std::runtime_error when the store is gone.
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Blocks until somebody has set it.
  virtual std::string get(const std::string& key) = 0;
};

// Files in a folder that all ranks see.
std::unique_ptr<Store> file_store(const std::string& folder);

// The hub that rank 0 of a launched run keeps (hub.h): torch's env:// rendezvous.
std::unique_ptr<Store> tcp_store(const std::string& address, std::uint16_t port);

}  // namespace rollcall::real
