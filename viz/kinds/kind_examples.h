#pragma once

// What each kind of failure looks like: the smallest program that has it, what Gloo and NCCL make of it, and reports
// of jobs that had it. Facts about the backends are PyTorch's (torch/csrc/distributed/c10d) unless said otherwise.

#include <string_view>

namespace rollcall::viz {

struct KindExample {
  std::string_view word;
  std::string_view example;  // lines
  std::string_view on_gloo;
  std::string_view on_nccl;
  std::string_view reports;  // "owner/repository#number, ..."; empty: none with a known cause is public
};

// Null for a verdict, which its kinds explain.
const KindExample* find_example(std::string_view word);

}  // namespace rollcall::viz
