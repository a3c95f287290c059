#include "real/launch/store.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "real/launch/frames.h"
#include "real/launch/sockets.h"

namespace rollcall::real {
namespace {

namespace fs = std::filesystem;

class FileStore final : public Store {
 public:
  explicit FileStore(const std::string& folder) : folder_(folder) {}

  void set(const std::string& key, const std::string& value) override {
    const fs::path unfinished = path_of(key).string() + ".new";
    std::ofstream file(unfinished, std::ios::binary);
    file << value;
    file.close();
    if (!file) {
      throw std::runtime_error(fmt::format("{}: cannot be written", unfinished.string()));
    }
    fs::rename(unfinished, path_of(key));
  }

  std::string get(const std::string& key) override {
    while (!fs::exists(path_of(key))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    std::ifstream file(path_of(key), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  // Keys hold slashes, and may be long.
  fs::path path_of(const std::string& key) const {
    std::string name = "store-";
    for (const char c : key) {
      name += fmt::format("{:02x}", static_cast<unsigned char>(c));
    }
    return folder_ / name;
  }

  fs::path folder_;
};

class TcpStore final : public Store {
 public:
  TcpStore(const std::string& address, std::uint16_t port) : hub_(connect_to(address, port)) {}

  void set(const std::string& key, const std::string& value) override {
    send_all(hub_, frame({FrameKind::set, key, value}));
  }
  std::string get(const std::string& key) override {
    send_all(hub_, frame({FrameKind::get, key, {}}));
    return receive_frame(hub_).value;
  }

 private:
  Descriptor hub_;
};

}  // namespace

std::unique_ptr<Store> file_store(const std::string& folder) { return std::make_unique<FileStore>(folder); }

std::unique_ptr<Store> tcp_store(const std::string& address, std::uint16_t port) {
  return std::make_unique<TcpStore>(address, port);
}

}  // namespace rollcall::real
