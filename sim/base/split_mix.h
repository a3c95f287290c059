#pragma once

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators"): fixed integer arithmetic, the
// same on every machine, unlike the standard distributions.

#include <cstdint>

namespace rollcall {

// The finalizer: every bit of `number` reaches every bit of the result.
inline std::uint64_t mixed(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

// The next number of the sequence that begins with the seed `state`.
inline std::uint64_t draw(std::uint64_t& state) {
  const std::uint64_t number = mixed(state);
  state += 0x9e3779b97f4a7c15;
  return number;
}

}  // namespace rollcall
