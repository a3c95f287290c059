#pragma once

// Module: the part of a torch.nn.Module that data parallelism uses, parameters and buffers by name and in order of
// registration. The rank program decides what the layers compute.

#include <string>
#include <vector>

#include "sim/tensor/tensor.h"

namespace rollcall {

struct Parameter {
  std::string name;  // dotted, as in a state dict: "0.weight"
  Tensor value;
  Tensor grad{};  // no storage until the first backward, like torch's None
  bool requires_grad = true;
  // DDP averaged a gradient on other ranks and wrote none here: this rank has joined.
  bool missed_gradient = false;
};

struct Buffer {
  std::string name;
  Tensor value;
};

struct Module {
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  bool has_sync_batch_norm = false;  // DDP refuses such layers on the CPU

  // Every parameter, then every buffer: what a state dict holds. The handles share storage.
  TensorList states() const;
  TensorList parameter_values() const;
  TensorList buffer_values() const;
};

// param.grad += gradient, as autograd's AccumulateGrad: the first gradient becomes the sum itself, without a copy when
// nothing else holds it.
void accumulate_gradient(Parameter& parameter, Tensor gradient);

// optimizer.zero_grad(), for one parameter or a module: gradients become zeros, or None.
void zero_grad(Parameter& parameter, bool set_to_none = false);
void zero_grad(Module& module, bool set_to_none = false);

}  // namespace rollcall
