#pragma once

// Encodes values as bytes, for pipes and sockets between processes of one program. Each field is written as the machine
// holds it, in the order in which `visit` names the fields. `visit` is found by argument-dependent lookup, so it is in
// the namespace of its arguments' types.

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rollcall {

class Encoder {
 public:
  template <typename T>
  void operator()(const T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      visit(*this, value);
    }
  }
  void operator()(const std::string& text) {
    (*this)(static_cast<std::uint32_t>(text.size()));
    bytes += text;
  }
  template <typename T>
  void operator()(const std::vector<T>& list) {
    (*this)(static_cast<std::uint32_t>(list.size()));
    for (const T& element : list) {
      (*this)(element);
    }
  }
  template <typename First, typename Second>
  void operator()(const std::pair<First, Second>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <typename Key, typename T>
  void operator()(const std::map<Key, T>& map) {
    (*this)(static_cast<std::uint32_t>(map.size()));
    for (const auto& entry : map) {
      (*this)(entry.first);
      (*this)(entry.second);
    }
  }
  template <typename T>
  void operator()(const std::optional<T>& value) {
    (*this)(value.has_value());
    if (value) {
      (*this)(*value);
    }
  }

  template <typename... T>
  requires(sizeof...(T) > 1) void operator()(const T&... values) { ((*this)(values), ...); }

  std::string bytes;
};

// Throws std::runtime_error when there are fewer bytes than the values say.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  void operator()(T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      std::memcpy(&value, take(sizeof value), sizeof value);
    } else {
      visit(*this, value);
    }
  }
  void operator()(std::string& text) {
    const std::size_t size = count();
    text.assign(take(size), size);
  }
  template <typename T>
  void operator()(std::vector<T>& list) {
    list.clear();
    for (std::size_t left = count(); left > 0; --left) {
      (*this)(list.emplace_back());
    }
  }
  template <typename First, typename Second>
  void operator()(std::pair<First, Second>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <typename Key, typename T>
  void operator()(std::map<Key, T>& map) {
    map.clear();
    for (std::size_t left = count(); left > 0; --left) {
      Key key{};
      (*this)(key);
      (*this)(map[key]);
    }
  }
  template <typename T>
  void operator()(std::optional<T>& value) {
    bool has_value = false;
    (*this)(has_value);
    value.reset();
    if (has_value) {
      T read{};
      (*this)(read);
      value = std::move(read);
    }
  }
  template <typename... T>
  requires(sizeof...(T) > 1) void operator()(T&... values) { ((*this)(values), ...); }

 private:
  std::size_t count() {
    std::uint32_t size = 0;
    (*this)(size);
    return size;
  }
  const char* take(std::size_t size) {
    if (size > bytes_.size()) {
      throw std::runtime_error("a message between the processes of the run is truncated");
    }
    const char* from = bytes_.data();
    bytes_.remove_prefix(size);
    return from;
  }

  std::string_view bytes_;
};

template <typename T>
std::string encode_value(const T& value) {
  Encoder encoder;
  encoder(value);
  return std::move(encoder.bytes);
}

// Throws std::runtime_error when `bytes` are cut short.
template <typename T>
T decode_value(std::string_view bytes) {
  T value;
  Reader reader(bytes);
  reader(value);
  return value;
}

}  // namespace rollcall
