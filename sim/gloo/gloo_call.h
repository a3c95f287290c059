#pragma once

// One rank's call as Gloo runs it: a stretch of memory, the tensors it comes from and goes back to, and the
// steps of the algorithm (torch/csrc/distributed/c10d/ProcessGroupGloo.cpp).

#include <cstddef>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/gloo/gloo_algorithms.h"

namespace rollcall::sim::gloo {

class Call {
 public:
  // A collective that Gloo supports. `op` is borrowed.
  Call(const Op& op, std::size_t ranks);

  std::size_t rank() const { return seat_.rank; }
  std::size_t memory_bytes() const { return memory_bytes_; }
  std::size_t step_count() const;  // an upper bound, without building the steps

  Member member() const;
  // Writes a member's memory back to the tensors it belongs to.
  void keep(const std::vector<std::byte>& memory) const;

 private:
  enum class Use : std::uint8_t { read, write, both };

  // A part of a tensor, and where it is in the memory.
  struct Piece {
    Storage* tensor;
    Use use;
    std::size_t offset;  // in the memory
    std::size_t start;   // in the tensor
    std::size_t length;
  };

  void lay_out();
  void lay_out_reduced();
  void add(Storage* tensor, Use use, std::size_t offset);
  void add_blocks(const TensorList& tensors, Use use);
  void add_parts();
  void add_listed_parts();
  bool is_root() const { return seat_.rank == root_; }
  Steps steps() const;

  const Op& op_;
  Seat seat_;
  std::size_t root_;
  std::size_t bytes_;  // of the tensor given; of one rank's block, if there are blocks
  std::size_t memory_bytes_ = 0;
  std::vector<Piece> pieces_;
  Parts output_;  // of an all_to_all
  Parts input_;
};

}  // namespace rollcall::sim::gloo
