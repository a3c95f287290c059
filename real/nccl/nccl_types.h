#pragma once

// Maps torch's dtypes and reductions to NCCL's (ProcessGroupNCCL.cpp, ncclDataType and ncclOp).

#include <nccl.h>

#include "sim/c10d/op.h"

namespace rollcall::real {

// Throws TypeError for a dtype that NCCL lacks.
ncclDataType_t nccl_type_of(Dtype dtype);
// Throws ValueError for a reduction that NCCL lacks. The sum of booleans is their maximum.
ncclRedOp_t nccl_operator_of(ReduceOp reduce, Dtype dtype);

}  // namespace rollcall::real
