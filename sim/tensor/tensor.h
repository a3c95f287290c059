#pragma once

// Tensor: a handle to shared storage, as in torch. Copying a Tensor shares the storage; clone()
// copies it. Three forms of storage:
//
//   uniform  every element has the same value, kept once. Zeros, ones, a constant gradient: 100,000
//            ranks that all-reduce 25 MiB cost 100,000 numbers and stay exact.
//   dense    one value per element.
//   meta     a shape and no values (device "meta", or made by Tensor::meta).
//
// The form is an optimization that the arithmetic maintains on its own; only meta is visible.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "sim/tensor/device.h"
#include "sim/tensor/dtype.h"

namespace rollcall {

// The sizes of a tensor's dimensions. At most 8 of them; no dimensions means a scalar (one element).
class Shape {
 public:
  static constexpr std::size_t dimensions_max = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes);
  explicit Shape(std::span<const std::int64_t> sizes);

  std::span<const std::int64_t> sizes() const { return {sizes_.data(), count_}; }
  std::int64_t numel() const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, dimensions_max> sizes_{};
  std::uint8_t count_ = 0;
};

// "[2, 3]", as torch prints a size.
std::string to_string(const Shape& shape);

// What tensors share. Public so that `apply` and the backends reach the bytes; rank programs use Tensor.
struct Storage {
  enum class Form : std::uint8_t { uniform, dense, meta };

  std::atomic<std::uint32_t> references{1};
  Dtype dtype = Dtype::float32;
  Form form = Form::uniform;
  bool complex = false;  // the elements alternate between real and imaginary parts: torch.view_as_real
  Device device;
  std::uint32_t pending = 0;  // calls queued on a GPU that will still read or write it
  std::int64_t numel = 0;
  Bits value = 0;                   // uniform: every element
  std::vector<std::byte> elements;  // dense: numel * size_of(dtype) bytes
  Shape shape;

  std::int64_t bytes() const { return numel * static_cast<std::int64_t>(size_of(dtype)); }
  Dtype complex_dtype() const { return dtype == Dtype::float32 ? Dtype::complex64 : Dtype::complex128; }
  Bits at(std::int64_t index) const;           // any form but meta
  void set_at(std::int64_t index, Bits bits);  // dense only
  void set_uniform(Bits bits);
  void set_all(double number);  // every element, complex ones too
  std::byte* make_dense();      // expands a uniform value; returns the bytes
  void collapse_if_uniform();   // dense elements that are all equal become uniform

  // A call queued on a GPU keeps its storages alive until it has completed; all such calls share one reference.
  void begin_use() {
    if (pending++ == 0) {
      references.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void end_use() {
    if (--pending == 0) {
      release();
    }
  }
  void release() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete this;
    }
  }
};

namespace detail {
void settle(Storage& storage);
}

class Tensor {
 public:
  Tensor() = default;  // no storage: bool(tensor) is false
  Tensor(const Tensor& other) noexcept;
  Tensor(Tensor&& other) noexcept : storage_(other.storage_) { other.storage_ = nullptr; }
  Tensor& operator=(Tensor other) noexcept;
  ~Tensor();

  static Tensor full(const Shape& shape, double value, Dtype dtype = Dtype::float32, Device device = {});
  static Tensor zeros(const Shape& shape, Dtype dtype = Dtype::float32, Device device = {});
  static Tensor ones(const Shape& shape, Dtype dtype = Dtype::float32, Device device = {});
  static Tensor meta(const Shape& shape, Dtype dtype = Dtype::float32, Device device = {DeviceType::meta, 0});
  // One dimension with the given values (real parts, where the type is complex).
  static Tensor of(std::span<const double> values, Dtype dtype = Dtype::float32, Device device = {});
  static Tensor of(std::initializer_list<double> values, Dtype dtype = Dtype::float32, Device device = {});
  // One element, exact for every int64.
  static Tensor integer(std::int64_t value, Dtype dtype = Dtype::int64, Device device = {});

  // Zeros of this tensor's type, on its device; without values if it has none.
  Tensor new_zeros(const Shape& shape) const;

  // Another handle to a storage that some handle already owns.
  static Tensor share(Storage& storage);

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return storage_->shape; }
  std::int64_t numel() const { return is_complex() ? storage_->numel / 2 : storage_->numel; }
  Dtype dtype() const { return is_complex() ? storage_->complex_dtype() : storage_->dtype; }
  bool is_complex() const { return storage_->complex; }
  Device device() const { return storage_->device; }
  bool is_meta() const { return storage_->form == Storage::Form::meta; }

  // The only element. Throws ValueError when there are more, or none; RuntimeError when the tensor is meta or complex.
  double item() const;
  std::int64_t item_integer() const;
  double at(std::int64_t index) const;  // of a complex tensor: as view_as_real sees it, as in to_vector
  std::vector<double> to_vector() const;

  // In place, like torch's underscore methods. Sizes and dtypes must agree (RuntimeError otherwise);
  // a one-element operand is broadcast.
  const Tensor& fill_(double value) const;
  const Tensor& add_(const Tensor& other) const;
  const Tensor& mul_(double factor) const;
  const Tensor& copy_(const Tensor& other) const;
  Tensor clone() const;
  // A copy in another element type, rounded as encode() does.
  Tensor to(Dtype dtype) const;

  // Waits for queued calls that use the tensor. Every access to values does this first; code of a rank program that
  // reads the values of storage() directly has to call it, too.
  const Tensor& settle() const {
    if (storage_->pending != 0) [[unlikely]] {
      detail::settle(*storage_);
    }
    return *this;
  }
  Storage* storage() const { return storage_; }

 private:
  explicit Tensor(Storage* storage) : storage_(storage) {}
  static Tensor make(const Shape& shape, Dtype dtype, Device device, Storage::Form form);
  Tensor to_or_from_complex(Dtype dtype) const;

  Storage* storage_ = nullptr;
};

using TensorList = std::vector<Tensor>;

// "tensor([1., 2.])": the values as torch would print them, without the device.
std::string to_string(const Tensor& tensor);

}  // namespace rollcall
