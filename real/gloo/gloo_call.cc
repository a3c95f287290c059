#include "real/gloo/gloo_call.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>

#include "sim/base/expects.h"
#include "sim/c10d/apply.h"
#include "sim/c10d/gloo_admission.h"

namespace rollcall::real {
namespace {

using ReduceFunction = void (*)(void*, const void*, const void*, std::size_t);

template <typename T, typename Combine>
void combine(void* target, const void* a, const void* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<T*>(target)[i] =
        static_cast<T>(Combine()(static_cast<const T*>(a)[i], static_cast<const T*>(b)[i]));
  }
}

// Gloo's own functions where it has them, so that its arithmetic runs.
template <typename T>
ReduceFunction function_of(ReduceOp reduce) {
  switch (reduce) {
    case ReduceOp::sum:
    case ReduceOp::avg:  // divided later
      return &gloo::sum<T>;
    case ReduceOp::product:
      return &gloo::product<T>;
    case ReduceOp::min:
      return &gloo::min<T>;
    case ReduceOp::max:
      return &gloo::max<T>;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
    case ReduceOp::premul_sum:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (reduce == ReduceOp::band) {
      return &combine<T, std::bit_and<>>;
    }
    if (reduce == ReduceOp::bor) {
      return &combine<T, std::bit_or<>>;
    }
    if (reduce == ReduceOp::bxor) {
      return &combine<T, std::bit_xor<>>;
    }
  }
  expects(false, "a reduction that Gloo has no function for is refused before");
  return nullptr;
}

template <typename T>
T* elements_of(std::vector<std::byte>& bytes) {
  return reinterpret_cast<T*>(bytes.data());
}

// Calls `run` with a null pointer of the dtype's C++ type. The types are those of ProcessGroupGloo.
template <typename Run>
void with_type(Dtype dtype, Run&& run) {
  switch (dtype) {
    case Dtype::float32:
      return run(static_cast<float*>(nullptr));
    case Dtype::float64:
      return run(static_cast<double*>(nullptr));
    case Dtype::float16:
      return run(static_cast<gloo::float16*>(nullptr));
    case Dtype::int8:
      return run(static_cast<std::int8_t*>(nullptr));
    case Dtype::uint8:
      return run(static_cast<std::uint8_t*>(nullptr));
    case Dtype::int32:
      return run(static_cast<std::int32_t*>(nullptr));
    case Dtype::int64:
      return run(static_cast<std::int64_t*>(nullptr));
    case Dtype::boolean:
      return run(static_cast<bool*>(nullptr));
    case Dtype::bfloat16:
    case Dtype::int16:
    case Dtype::complex64:
    case Dtype::complex128:
      break;
  }
  expects(false, "dtypes that torch does not give to Gloo are refused before");
}

}  // namespace

void append_bytes(std::vector<std::byte>& bytes, const Storage& storage) {
  if (storage.form == Storage::Form::dense) {
    bytes.insert(bytes.end(), storage.elements.begin(), storage.elements.end());
    return;
  }
  const auto* element = reinterpret_cast<const std::byte*>(&storage.value);  // its low bytes come first
  bytes.reserve(bytes.size() + static_cast<std::size_t>(storage.bytes()));
  for (std::int64_t i = 0; i < storage.numel; ++i) {
    bytes.insert(bytes.end(), element, element + size_of(storage.dtype));
  }
}

GlooCall::GlooCall(const Op& op, Rank group_size, const TorchTraits& torch)
    : op_(op), group_size_(group_size) {
  op_.tensors = {};
  if (gloo_raises_late(op, torch)) {
    refusal_ = gloo_refusal(op, torch);
  } else if (op.dtype == Dtype::bfloat16 && has_tensor(op.kind)) {
    refusal_ = NotImplementedError("the Gloo that rollcall was built with has no bfloat16");
  } else {
    take_tensors(op);
  }
}

void GlooCall::take_tensors(const Op& op) {
  expects(row_of(op_.kind).gloo != GlooFunction::none, "what torch does not give to Gloo is refused before");
  const OpRow& row = row_of(op_.kind);
  if (row.gloo == GlooFunction::all_reduce &&
      row.sizes == Sizes::divided) {  // reduces everything and keeps a part
    work_on(given_tensors(op));
    results_ = filled_tensors(op);
    results_at_ = static_cast<std::size_t>(op.rank) * static_cast<std::size_t>(op.tensors.output->bytes());
    return;
  }
  send(given_tensors(op));
  work_on(filled_tensors(op));
  if (fills_list(op_.kind)) {
    // torch gathers into fresh memory. The parts that no rank sends count as zero here.
    std::ranges::fill(memory_, std::byte{0});
  }
  if (op.tensors.splits != nullptr) {
    sent_parts_ = sent_parts(op, op.tensors, static_cast<std::size_t>(group_size_));
    expected_parts_ = expected_parts(op, op.tensors, static_cast<std::size_t>(group_size_));
  }
}

void GlooCall::work_on(const TensorList& tensors) {
  results_ = tensors;
  for (const Tensor& tensor : tensors) {
    append_bytes(memory_, *tensor.storage());
  }
}

void GlooCall::send(const TensorList& tensors) {
  for (const Tensor& tensor : tensors) {
    append_bytes(sent_, *tensor.storage());
  }
}

bool GlooCall::continues(const GlooCall& before) const {
  return row_of(op_.kind).given == Tensors::one && works_in_place(op_.kind) && results_.size() == 1 &&
         before.results_.size() == 1 && results_.front().storage() == before.results_.front().storage();
}

void GlooCall::run(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag) {
  if (refusal_) {
    raise(*refusal_, op_.site);
  }
  if (op_.kind == OpKind::barrier) {
    gloo::BarrierOptions options(context);
    options.setTag(tag);
    gloo::barrier(options);
    return;
  }
  with_type(op_.dtype, [&]<typename T>(T*) { run_as<T>(context, tag); });
  if (has_reduce_op(op_.kind) && op_.reduce == ReduceOp::avg) {
    average();
  }
}

// Divides the sums that Gloo has computed.
void GlooCall::average() {
  with_type(op_.dtype, [&]<typename T>(T*) {
    T* elements = elements_of<T>(memory_);
    std::transform(elements, elements + memory_.size() / sizeof(T), elements, [this](T sum) {
      if constexpr (std::is_same_v<T, gloo::float16>) {
        return sum / gloo::float16(static_cast<float>(group_size_));
      } else {
        return static_cast<T>(sum / static_cast<T>(group_size_));
      }
    });
  });
}

template <typename T>
void GlooCall::run_as(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag) {
  T* memory = elements_of<T>(memory_);
  const std::size_t count = memory_.size() / sizeof(T);
  T* sent = elements_of<T>(sent_);
  const std::size_t sent_count = sent_.size() / sizeof(T);
  const auto call = [tag](auto& options, auto function) {
    options.setTag(tag);
    function(options);
  };
  switch (row_of(op_.kind).gloo) {
    case GlooFunction::all_reduce: {
      gloo::AllreduceOptions options(context);
      options.setOutput(memory, count);
      options.setReduceFunction(function_of<T>(op_.reduce));
      return call(options, gloo::allreduce);
    }
    case GlooFunction::broadcast: {
      gloo::BroadcastOptions options(context);
      options.setOutput(memory, count);
      options.setRoot(op_.root);
      return call(options, gloo::broadcast);
    }
    case GlooFunction::reduce: {
      gloo::ReduceOptions options(context);
      options.setOutput(memory, count);
      options.setReduceFunction(function_of<T>(op_.reduce));
      options.setRoot(op_.root);
      return call(options, gloo::reduce);
    }
    case GlooFunction::all_gather: {
      gloo::AllgatherOptions options(context);
      options.setInput(sent, sent_count);
      options.setOutput(memory, count);
      return call(options, gloo::allgather);
    }
    case GlooFunction::gather: {
      gloo::GatherOptions options(context);
      if (is_root()) {
        options.setOutput(memory, count);
      }
      options.setInput(sent, sent_count);
      options.setRoot(op_.root);
      return call(options, gloo::gather);
    }
    case GlooFunction::scatter: {
      gloo::ScatterOptions options(context);
      if (is_root()) {
        std::vector<T*> parts;
        for (Rank rank = 0; rank < group_size_; ++rank) {
          parts.push_back(sent + static_cast<std::size_t>(rank) * count);
        }
        options.setInputs(std::move(parts), count);
      }
      options.setOutput(memory, count);
      options.setRoot(op_.root);
      return call(options, gloo::scatter);
    }
    case GlooFunction::all_to_all: {
      if (sent_parts_.empty()) {
        gloo::AlltoallOptions options(context);
        options.setInput(sent, sent_count);
        options.setOutput(memory, count);
        return call(options, gloo::alltoall);
      }
      gloo::AlltoallvOptions options(context);
      options.setInput(sent, sent_parts_);
      options.setOutput(memory, expected_parts_);
      return call(options, gloo::alltoallv);
    }
    case GlooFunction::barrier:
    case GlooFunction::monitored_barrier:
    case GlooFunction::none:
      break;
  }
}

void GlooCall::deliver() {
  const std::byte* from = memory_.data() + results_at_;
  for (const Tensor& tensor : results_) {
    Storage& storage = *tensor.storage();
    const auto bytes = static_cast<std::size_t>(storage.bytes());
    if (bytes > 0) {
      std::memcpy(storage.make_dense(), from, bytes);
      storage.collapse_if_uniform();
    }
    from += bytes;
  }
}

}  // namespace rollcall::real
