#pragma once

// Writes pickles as PyTorch writes them: protocol 2, texts kept once and referred to, everything else written out
// (torch/csrc/jit/serialization/pickler.cpp). Python loads them, and so does pickle.h.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace rollcall::traces {

// Takes values in the order in which they are written; a dict takes keys and values alternately.
class PickleWriter {
 public:
  PickleWriter() : bytes_("\x80\x02") {}

  void open_dict() { bytes_ += "}("; }
  void close_dict() { bytes_ += 'u'; }
  void open_list() { bytes_ += "]("; }
  void close_list() { bytes_ += 'e'; }
  void pair(std::string_view first, std::string_view second);  // a tuple
  void none() { bytes_ += 'N'; }
  void boolean(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  void text(std::string_view value);
  void integer(std::int64_t value);
  void real(double value);

  std::string finish() { return std::move(bytes_) + '.'; }

 private:
  void little_endian(std::uint64_t value, int count);

  std::string bytes_;
  std::unordered_map<std::string, std::uint32_t> memo_;  // looked up, never iterated
};

}  // namespace rollcall::traces
