#pragma once

// What this machine and this build offer to real ranks, and what each part can prove.

#include <string>
#include <vector>

namespace rollcall::real {

struct Diagnosis {
  std::string subject;  // "gloo", "nccl headers", "nccl library", "cuda driver", "gpus"
  std::string state;    // "0.5.0 of libgloo", "not found: ..."
  std::string meaning;  // its use, or what its absence means; may be empty
};

std::vector<Diagnosis> examine();

}  // namespace rollcall::real
