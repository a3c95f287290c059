#include "sim/train/comm_hooks.h"

#include "sim/c10d/collectives.h"
#include "sim/train/flat.h"

namespace rollcall {
namespace {

BucketFuture all_reduce_average(const Tensor& tensor, const ProcessGroup& group, Site site) {
  divide(tensor, group.size());
  return {.work = all_reduce(tensor, {.group = group, .async_op = true}, site), .result = tensor};
}

BucketFuture compress_hook(const GradBucket& bucket, const ProcessGroup& group, Dtype dtype) {
  const Tensor compressed = bucket.buffer.to(dtype);
  BucketFuture future = all_reduce_average(compressed, group, bucket.site);
  future.result = bucket.buffer;
  future.then = [compressed, buffer = bucket.buffer] { buffer.copy_(compressed.to(buffer.dtype())); };
  return future;
}

}  // namespace

BucketFuture allreduce_hook(const GradBucket& bucket, const ProcessGroup& group) {
  return all_reduce_average(bucket.buffer, group, bucket.site);
}

BucketFuture fp16_compress_hook(const GradBucket& bucket, const ProcessGroup& group) {
  return compress_hook(bucket, group, Dtype::float16);
}

BucketFuture bf16_compress_hook(const GradBucket& bucket, const ProcessGroup& group) {
  return compress_hook(bucket, group, Dtype::bfloat16);
}

}  // namespace rollcall
