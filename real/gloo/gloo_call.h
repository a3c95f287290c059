#pragma once

// One collective as torch hands it to Gloo (torch/csrc/distributed/c10d/ProcessGroupGloo.cpp): flat memory,
// an algorithm, and the way back into the tensors.
//
// The call has its own memory. Gloo's threads work on it while the rank program continues, and a program that
// touches its tensors too early must get old values, not a torn vector.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <gloo/context.h>

#include "sim/base/error.h"
#include "sim/c10d/op.h"

namespace rollcall::real {

// Appends the tensor's elements.
void append_bytes(std::vector<std::byte>& bytes, const Storage& storage);

class GlooCall {
 public:
  // Copies the data that the caller sends. `op` has been checked; its ranks are those of the group.
  GlooCall(const Op& op, Rank group_size, const TorchTraits& torch);

  // True if its input is the result of `before` in the same tensor: Gloo works in place.
  bool continues(const GlooCall& before) const;
  // Takes over that result. `before` has run, and this has not.
  void take_over(const GlooCall& before) { memory_ = before.memory_; }

  // Runs it, on any thread. `tag` distinguishes the collectives of one context. Throws what Gloo throws, and
  // Error for errors that torch detects only here.
  void run(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag);

  // Writes the results into the caller's tensors, on the caller's thread. Once, after run().
  void deliver();

 private:
  using Bytes = std::vector<std::byte>;

  void take_tensors(const Op& op);
  void work_on(const TensorList& tensors);
  void send(const TensorList& tensors);
  bool is_root() const { return op_.rank == op_.root; }
  void average();
  template <typename T>
  void run_as(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag);

  Op op_;  // only the constructor uses its tensors
  Rank group_size_;
  std::optional<Error> refusal_{};        // an error that torch detects only when it runs the call
  TensorList results_;                    // filled from memory_, one after the other
  std::size_t results_at_ = 0;            // where in memory_ they begin
  Bytes memory_;                          // that Gloo writes, and that it also reads where it works in place
  Bytes sent_;                            // that it only reads
  std::vector<std::int64_t> sent_parts_;  // all_to_all_single with splits: elements to each member
  std::vector<std::int64_t> expected_parts_;  // and from each
};

}  // namespace rollcall::real
