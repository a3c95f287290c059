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

#include "sim/dist/collectives.h"
#include "sim/dist/ddp.h"
#include "sim/dist/device_mesh.h"
#include "sim/dist/error.h"
#include "sim/dist/groups.h"
#include "sim/dist/join.h"
#include "sim/dist/objects.h"
#include "sim/dist/p2p.h"
#include "sim/dist/scope.h"
#include "sim/dist/store.h"
#include "sim/dist/stream.h"
#include "sim/dist/tensor.h"
#include "sim/dist/zero.h"
