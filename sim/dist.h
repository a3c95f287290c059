#pragma once

// What a rank program is written against: torch.distributed's words, in C++.
//
//   void train(Rank rank) {
//     Tensor loss = Tensor::full({1}, 0.5 * rank);
//     all_reduce(loss, {.op = ReduceOp::avg});
//   }
//
// A program is a function called once per rank. The simulator runs it on N fibers, a real launcher
// on N processes; the program cannot tell which. `using namespace rollcall;` makes it read like torch.

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/device_mesh.h"
#include "sim/c10d/groups.h"
#include "sim/c10d/objects.h"
#include "sim/c10d/p2p.h"
#include "sim/c10d/scope.h"
#include "sim/c10d/store.h"
#include "sim/c10d/stream.h"
#include "sim/tensor/tensor.h"
#include "sim/train/checkpoint.h"
#include "sim/train/coalescing.h"
#include "sim/train/ddp.h"
#include "sim/train/fully_shard.h"
#include "sim/train/join.h"
#include "sim/train/zero.h"
