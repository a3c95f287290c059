#include "sim/tensor/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/tensor/elements.h"
#include "sim/tensor/tensor_too_large.h"

namespace rollcall {

// Elements are read and written through the low bytes of `Bits`.
static_assert(std::endian::native == std::endian::little, "rollcall needs a little-endian host");

Shape::Shape(std::initializer_list<std::int64_t> sizes)
    : Shape(std::span<const std::int64_t>(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const std::int64_t> sizes) {
  if (sizes.size() > sizes_.size()) {
    throw RuntimeError(
        fmt::format("a tensor of {} dimensions: at most {} are supported", sizes.size(), sizes_.size()));
  }
  for (const std::int64_t size : sizes) {
    if (size < 0) {
      throw RuntimeError(fmt::format("Trying to create tensor with negative dimension {}", size));
    }
    sizes_[count_++] = size;
  }
}

std::int64_t Shape::numel() const {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes()) {
    if (__builtin_mul_overflow(product, size, &product)) {
      throw RuntimeError("a tensor of more than 2^63 elements");
    }
  }
  return product;
}

bool operator==(const Shape& a, const Shape& b) { return a.count_ == b.count_ && a.sizes_ == b.sizes_; }

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.sizes(), ", ")); }

Bits Storage::at(std::int64_t index) const {
  expects(index >= 0 && index < numel, "an element index lies inside its tensor");
  if (form == Form::uniform) {
    return value;
  }
  expects(form == Form::dense, "the elements of a meta tensor are never read");
  Bits bits = 0;
  const std::size_t size = size_of(dtype);
  std::memcpy(&bits, elements.data() + static_cast<std::size_t>(index) * size, size);
  return bits;
}

void Storage::set_at(std::int64_t index, Bits bits) {
  expects(form == Form::dense && index >= 0 && index < numel, "an element lies inside its dense tensor");
  const std::size_t size = size_of(dtype);
  std::memcpy(elements.data() + static_cast<std::size_t>(index) * size, &bits, size);
}

void Storage::set_uniform(Bits bits) {
  form = Form::uniform;
  value = bits;
  elements.clear();
}

std::byte* Storage::make_dense() {
  expects(form != Form::meta, "a meta tensor has no bytes");
  if (form == Form::uniform) {
    try {
      elements.resize(static_cast<std::size_t>(bytes()));
    } catch (const std::exception&) {  // std::bad_alloc, or std::length_error: larger than the address space
      throw TensorTooLarge();
    }
    fill_elements(elements, value, size_of(dtype));
    form = Form::dense;
  }
  return elements.data();
}

void Storage::set_all(double number) {
  set_uniform(encode(number, dtype));
  if (complex && number != 0 && form != Form::meta && numel > 0) {
    std::byte* bytes = make_dense();  // imaginary parts are 0
    const std::size_t size = size_of(dtype);
    for (std::size_t offset = size; offset < elements.size(); offset += 2 * size) {
      std::memset(bytes + offset, 0, size);
    }
  }
}

void Storage::collapse_if_uniform() {
  if (form != Form::dense || numel == 0) {
    return;
  }
  const std::size_t size = size_of(dtype);  // compares every element with the one before it
  if (std::memcmp(elements.data(), elements.data() + size, elements.size() - size) == 0) {
    set_uniform(at(0));
  }
}

Tensor::Tensor(const Tensor& other) noexcept : storage_(other.storage_) {
  if (storage_ != nullptr) {
    storage_->references.fetch_add(1, std::memory_order_relaxed);
  }
}

Tensor& Tensor::operator=(Tensor other) noexcept {
  std::swap(storage_, other.storage_);
  return *this;
}

Tensor::~Tensor() {
  if (storage_ != nullptr) {
    storage_->release();
  }
}

Tensor Tensor::make(const Shape& shape, Dtype dtype, Device device, Storage::Form form) {
  const std::int64_t numel = shape.numel();
  auto* storage = new Storage;  // owned by the handle returned
  storage->complex = rollcall::is_complex(dtype);
  storage->dtype = storage->complex ? real_part_of(dtype) : dtype;
  storage->form = device.type == DeviceType::meta ? Storage::Form::meta : form;
  storage->device = device;
  storage->numel = storage->complex ? 2 * numel : numel;
  storage->shape = shape;
  return Tensor(storage);
}

Tensor Tensor::full(const Shape& shape, double value, Dtype dtype, Device device) {
  Tensor tensor = make(shape, dtype, device, Storage::Form::uniform);
  if (!tensor.is_meta()) {
    tensor.storage_->set_all(value);
  }
  return tensor;
}

Tensor Tensor::zeros(const Shape& shape, Dtype dtype, Device device) { return full(shape, 0, dtype, device); }
Tensor Tensor::ones(const Shape& shape, Dtype dtype, Device device) { return full(shape, 1, dtype, device); }

Tensor Tensor::meta(const Shape& shape, Dtype dtype, Device device) {
  return make(shape, dtype, device, Storage::Form::meta);
}

Tensor Tensor::of(std::span<const double> values, Dtype dtype, Device device) {
  Tensor tensor = zeros({static_cast<std::int64_t>(values.size())}, dtype, device);
  if (tensor.is_meta()) {
    return tensor;
  }
  Storage& storage = *tensor.storage_;
  storage.make_dense();
  const std::int64_t parts = storage.complex ? 2 : 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    storage.set_at(static_cast<std::int64_t>(i) * parts, encode(values[i], storage.dtype));
  }
  storage.collapse_if_uniform();
  return tensor;
}

Tensor Tensor::of(std::initializer_list<double> values, Dtype dtype, Device device) {
  return of(std::span<const double>(values.begin(), values.size()), dtype, device);
}

Tensor Tensor::integer(std::int64_t value, Dtype dtype, Device device) {
  if (rollcall::is_complex(dtype)) {
    return full({1}, static_cast<double>(value), dtype, device);
  }
  Tensor tensor = zeros({1}, dtype, device);
  tensor.storage_->value = encode_integer(value, dtype);
  return tensor;
}

Tensor Tensor::new_zeros(const Shape& shape) const {
  return make(shape, dtype(), device(), is_meta() ? Storage::Form::meta : Storage::Form::uniform);
}

Tensor Tensor::share(Storage& storage) {
  storage.references.fetch_add(1, std::memory_order_relaxed);
  return Tensor(&storage);
}

namespace {

const Storage& only_element(const Storage& storage) {
  if (storage.complex) {
    throw RuntimeError("item: complex numbers are not supported; copy the tensor into a real one");
  }
  if (storage.form == Storage::Form::meta) {
    throw RuntimeError("Tensor.item() cannot be called on meta tensors");
  }
  if (storage.numel != 1) {
    throw ValueError("only one element tensors can be converted to Python scalars");
  }
  return storage;
}

void require_values(const Storage& storage, const char* what) {
  if (storage.form == Storage::Form::meta) {
    throw NotImplementedError(fmt::format("{}: a meta tensor has no values", what));
  }
}

// Calls f(index, bits) for the elements of `target`, with `source` broadcast when it has one element.
template <typename F>
void combine(Storage& target, const Storage& source, const char* what, F&& f) {
  require_values(target, what);
  require_values(source, what);
  if (source.numel != target.numel && source.numel != 1) {
    throw RuntimeError(fmt::format("{}: tensors of {} and {} elements cannot be combined", what, target.numel,
                                   source.numel));
  }
  if (source.dtype != target.dtype || source.complex != target.complex) {
    throw RuntimeError(
        fmt::format("{}: dtypes differ, {} and {}", what, to_string(target.dtype), to_string(source.dtype)));
  }
  if (target.form == Storage::Form::uniform && (source.form == Storage::Form::uniform || source.numel == 1)) {
    if (target.numel > 0) {
      target.set_uniform(f(target.value, source.at(0)));
    }
    return;
  }
  target.make_dense();
  for (std::int64_t i = 0; i < target.numel; ++i) {
    target.set_at(i, f(target.at(i), source.at(source.numel == 1 ? 0 : i)));
  }
  target.collapse_if_uniform();
}

}  // namespace

double Tensor::item() const { return decode(only_element(*settle().storage_).at(0), dtype()); }
std::int64_t Tensor::item_integer() const {
  return decode_integer(only_element(*settle().storage_).at(0), dtype());
}

double Tensor::at(std::int64_t index) const {
  require_values(*storage_, "at");
  if (index < 0 || index >= storage_->numel) {
    throw RuntimeError(
        fmt::format("index {} is out of bounds for a tensor of {} elements", index, storage_->numel));
  }
  return decode(settle().storage_->at(index), storage_->dtype);
}

std::vector<double> Tensor::to_vector() const {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(storage_->numel));
  for (std::int64_t i = 0; i < storage_->numel; ++i) {
    values.push_back(at(i));
  }
  return values;
}

const Tensor& Tensor::fill_(double value) const {
  require_values(*storage_, "fill_");
  settle().storage_->set_all(value);
  return *this;
}

const Tensor& Tensor::add_(const Tensor& other) const {
  combine(*settle().storage_, *other.settle().storage_, "add_",
          [this](Bits a, Bits b) { return reduce_step(ReduceOp::sum, storage_->dtype, a, b); });
  return *this;
}

const Tensor& Tensor::mul_(double factor) const {
  Storage scalar;  // on the stack: DDP scales every gradient
  scalar.dtype = storage_->dtype;
  scalar.complex = storage_->complex;
  scalar.numel = 1;
  scalar.value = encode(factor, scalar.dtype);
  combine(*settle().storage_, scalar, "mul_",
          [this](Bits a, Bits b) { return reduce_step(ReduceOp::product, storage_->dtype, a, b); });
  return *this;
}

const Tensor& Tensor::copy_(const Tensor& other) const {
  combine(*settle().storage_, *other.settle().storage_, "copy_", [](Bits, Bits b) { return b; });
  return *this;
}

Tensor Tensor::clone() const {
  settle();
  Tensor copy = make(shape(), dtype(), device(), storage_->form);
  copy.storage_->value = storage_->value;
  copy.storage_->elements = storage_->elements;
  return copy;
}

Tensor Tensor::to(Dtype dtype) const {
  settle();
  if (is_meta()) {
    return meta(shape(), dtype, device());
  }
  if (is_complex() || rollcall::is_complex(dtype)) {
    return to_or_from_complex(dtype);
  }
  const auto convert = [&](Bits bits) {
    return is_floating(storage_->dtype) ? encode(decode(bits, storage_->dtype), dtype)
                                        : encode_integer(decode_integer(bits, storage_->dtype), dtype);
  };
  Tensor copy = make(shape(), dtype, device(), Storage::Form::uniform);
  if (storage_->form == Storage::Form::uniform) {
    copy.storage_->value = convert(storage_->value);
    return copy;
  }
  copy.storage_->make_dense();
  for (std::int64_t i = 0; i < numel(); ++i) {
    copy.storage_->set_at(i, convert(storage_->at(i)));
  }
  copy.storage_->collapse_if_uniform();
  return copy;
}

// Real parts are kept; imaginary parts are kept, set to 0 or dropped.
Tensor Tensor::to_or_from_complex(Dtype dtype) const {
  Tensor copy = zeros(shape(), dtype, device());
  Storage& target = *copy.storage_;
  target.make_dense();
  const std::int64_t from = is_complex() ? 2 : 1;
  const std::int64_t to = copy.is_complex() ? 2 : 1;
  for (std::int64_t i = 0; i < numel(); ++i) {
    for (std::int64_t part = 0; part < std::min(from, to); ++part) {
      const Bits bits = storage_->at(i * from + part);
      target.set_at(i * to + part, encode(decode(bits, storage_->dtype), target.dtype));
    }
  }
  target.collapse_if_uniform();
  return copy;
}

namespace {

bool prints_as_integer(double value) {
  return std::isfinite(value) && value == std::trunc(value) && std::fabs(value) < 1e6;
}

// torch prints all values of a tensor in one format: with a bare point when all are whole ("2."), else with four
// decimals ("2.0000").
std::string element_text(Bits bits, Dtype dtype, bool all_whole) {
  if (dtype == Dtype::boolean) {
    return bits != 0 ? "True" : "False";
  }
  if (!is_floating(dtype)) {
    return fmt::format("{}", decode_integer(bits, dtype));
  }
  const double value = decode(bits, dtype);
  return all_whole ? fmt::format("{:.0f}.", value) : fmt::format("{:.4f}", value);
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor) {
    return "None";
  }
  const Storage& storage = *tensor.settle().storage();
  if (tensor.is_meta()) {
    return fmt::format("tensor(..., device='meta', size={})", to_string(storage.shape));
  }
  bool all_whole = true;
  for (std::int64_t i = 0; i < storage.numel && is_floating(storage.dtype); ++i) {
    all_whole = all_whole && prints_as_integer(decode(storage.at(i), storage.dtype));
  }
  std::string text = "tensor([";
  for (std::int64_t i = 0; i < storage.numel; ++i) {
    const bool is_imaginary = storage.complex && i % 2 == 1;
    const std::string element = element_text(storage.at(i), storage.dtype, all_whole);
    text += i == 0 || (is_imaginary && element.starts_with('-')) ? "" : is_imaginary ? "+" : ", ";
    text += element;
    text += is_imaginary ? "j" : "";
  }
  return text + "])";
}

}  // namespace rollcall
