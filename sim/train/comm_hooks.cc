#include "sim/train/comm_hooks.h"

#include <cstring>

#include "sim/c10d/collectives.h"

namespace rollcall {
namespace {

// tensor.div_(divisor): each element rounded once. A reciprocal would be rounded to a short type first.
void divide(const Tensor& tensor, double divisor) {
  Storage& storage = *tensor.settle().storage();
  const auto quotient = [&](Bits bits) {
    return encode(decode(bits, storage.dtype) / divisor, storage.dtype);
  };
  if (storage.form == Storage::Form::uniform) {
    storage.value = quotient(storage.value);
  } else if (storage.form == Storage::Form::dense) {
    const std::size_t size = size_of(storage.dtype);
    for (std::int64_t i = 0; i < storage.numel; ++i) {
      const Bits bits = quotient(storage.at(i));
      std::memcpy(storage.elements.data() + static_cast<std::size_t>(i) * size, &bits, size);
    }
  }
}

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
