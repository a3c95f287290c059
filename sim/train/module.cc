#include "sim/train/module.h"

#include <utility>

namespace rollcall {

TensorList Module::states() const {
  TensorList states = parameter_values();
  for (const Buffer& buffer : buffers) {
    states.push_back(buffer.value);
  }
  return states;
}

TensorList Module::parameter_values() const {
  TensorList values;
  values.reserve(parameters.size() + buffers.size());
  for (const Parameter& parameter : parameters) {
    values.push_back(parameter.value);
  }
  return values;
}

TensorList Module::buffer_values() const {
  TensorList values;
  values.reserve(buffers.size());
  for (const Buffer& buffer : buffers) {
    values.push_back(buffer.value);
  }
  return values;
}

void accumulate_gradient(Parameter& parameter, Tensor gradient) {
  if (parameter.grad) {
    parameter.grad.add_(gradient);
  } else if (gradient.storage()->references.load(std::memory_order_relaxed) == 1) {
    parameter.grad = std::move(gradient);
  } else {
    parameter.grad = gradient.clone();
  }
}

void zero_grad(Parameter& parameter, bool set_to_none) {
  if (set_to_none) {
    parameter.grad = Tensor();
  } else if (parameter.grad) {
    parameter.grad.fill_(0);
  }
}

void zero_grad(Module& module, bool set_to_none) {
  for (Parameter& parameter : module.parameters) {
    zero_grad(parameter, set_to_none);
  }
}

}  // namespace rollcall
