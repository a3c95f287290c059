#ifdef ROLLCALL_HAS_NCCL

#include "real/nccl/nccl_types.h"

#include <fmt/core.h>

#include "sim/base/error.h"

namespace rollcall::real {

ncclDataType_t nccl_type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return ncclFloat32;
    case Dtype::float64:
      return ncclFloat64;
    case Dtype::float16:
      return ncclFloat16;
    case Dtype::bfloat16:
      return ncclBfloat16;
    case Dtype::int8:
      return ncclInt8;
    case Dtype::int32:
      return ncclInt32;
    case Dtype::int64:
      return ncclInt64;
    case Dtype::uint8:
    case Dtype::boolean:  // as in torch's table of NCCL types
      return ncclUint8;
    case Dtype::int16:
    case Dtype::complex64:
    case Dtype::complex128:
      break;
  }
  throw TypeError(fmt::format("Input tensor data type is not supported for NCCL process group: {}",
                              scalar_type_name(dtype)));
}

ncclRedOp_t nccl_operator_of(ReduceOp reduce, Dtype dtype) {
  switch (reduce) {
    case ReduceOp::sum:
      return dtype == Dtype::boolean ? ncclMax : ncclSum;
    case ReduceOp::avg:
      return ncclAvg;
    case ReduceOp::product:
      return ncclProd;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
    case ReduceOp::premul_sum:  // needs a reduction of its own per communicator and factor
      break;
  }
  throw ValueError(fmt::format("Cannot use ReduceOp.{} with NCCL", to_string(reduce)));
}

}  // namespace rollcall::real

#endif
