#pragma once

// The optimizers that ZeRO shards: torch.optim.SGD and Adam, in the arithmetic of the parameters.

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/c10d/object.h"
#include "sim/train/module.h"

namespace rollcall {

struct OptimizerOptions {
  enum class Kind : std::uint8_t { sgd, adam };
  Kind kind = Kind::sgd;
  double lr = 0.001;
  double momentum = 0;  // SGD
  double weight_decay = 0;
  double beta1 = 0.9;  // Adam
  double beta2 = 0.999;
  double eps = 1e-8;
};

class Optimizer {
 public:
  // parameters: borrowed.
  Optimizer(std::vector<Parameter*> parameters, OptimizerOptions options);
  virtual ~Optimizer() = default;

  // Updates every parameter that has a gradient. Local: no communication.
  void step();
  // {"state": {index: {...}}, "param_groups": [{..., "params": [0, 1, ...]}]}
  Object state_dict() const;

  const std::vector<Parameter*>& parameters() const { return parameters_; }

 protected:
  virtual void update(std::size_t index, Parameter& parameter, const Tensor& gradient) = 0;
  // The state of one parameter; empty before its first step.
  virtual Object::Dict state_of(std::size_t index) const = 0;
  const OptimizerOptions& options() const { return options_; }

 private:
  std::vector<Parameter*> parameters_;
  OptimizerOptions options_;
};

std::unique_ptr<Optimizer> make_optimizer(std::vector<Parameter*> parameters,
                                          const OptimizerOptions& options);

}  // namespace rollcall
