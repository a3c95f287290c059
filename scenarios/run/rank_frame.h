#pragma once

// RankFrame: what one rank of a scenario holds while it runs. The program is shared; this is not.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/program/program.h"
#include "scenarios/run/scripted_joinable.h"
#include "scenarios/run/training.h"
#include "scenarios/scenario.h"
#include "sim/dist/process_group.h"
#include "sim/dist/tensor.h"
#include "sim/dist/work.h"

namespace rollcall::scenario {

// What a `try` caught.
struct CaughtError {
  std::string type;
  std::string message;
};

class RankFrame {
 public:
  // `scenario` must outlive the frame. Made on the rank's own fiber.
  RankFrame(const Scenario& scenario, Rank rank);
  RankFrame(const RankFrame&) = delete;
  RankFrame& operator=(const RankFrame&) = delete;

  const Scenario& scenario() const { return scenario_; }
  const Program& program() const { return program_; }
  Rank rank() const { return rank_; }
  Rank local_rank() const { return local_rank_; }
  std::int64_t inputs() const { return scenario_.inputs.of(rank_); }

  std::int64_t number(Slot variable) const { return variables[variable].value; }
  void set(Slot variable, std::int64_t value) { variables[variable] = {value, Variable::State::number}; }

  // The operand's value. Throws what expressions throw, TypeError for a number that is not whole.
  std::int64_t evaluate(const Operand& operand) const;
  // Sets every element.
  void set_elements(const Tensor& tensor, const Operand& value) const;

  // The tensor of a statement: the rank's own of this name, or a new one where there is none or the
  // statement wants another kind. `default_numel` holds for a new tensor without a size.
  Tensor& make(const TensorSpec& spec, std::int64_t default_numel = 1);
  // The same, without setting its elements.
  Tensor& shape(const TensorSpec& spec, std::int64_t default_numel = 1);
  // A tensor for results, as large as told and otherwise like `model`.
  Tensor& output(Slot slot, std::int64_t numel, const Tensor& model);
  // A list of `count` tensors like `model`. `alike`: one tensor, many times, for lists nobody reads.
  TensorList& list(Slot slot, std::size_t count, const Tensor& model, bool alike);

  // Tensors to be read. Throw NameError when the rank has none of this name.
  const Tensor& read(const TensorName& name) const;
  const TensorList& read_list(Slot slot) const;

  // The call to wait for. Throws NameError when it has not been issued, and what Python raises when the
  // rank is not in the call's group and so got None for it.
  const Work& issued_work(Slot slot) const;

  // Makes the models and optimizers of the groups that the rank belongs to. Blocks: models take rank 0's
  // values.
  void construct_training_objects();
  // An object of the scenario, to be joined.
  Joinable& joinable(TableIndex object);

  // The group in this slot; the world for no_slot.
  // Throws NameError for one that a statement makes and this rank has not made.
  ProcessGroup group(Slot slot);
  void set_group(Slot slot, const ProcessGroup& group) { groups_[slot] = group; }

  // By slot.
  std::vector<Variable> variables;
  std::vector<Tensor> tensors;
  std::vector<TensorList> lists;
  std::vector<std::optional<Work>> works;   // nothing: not issued yet
  std::vector<ScriptedJoinable> joinables;  // by Program::objects
  std::unique_ptr<Training> training;       // null: the scenario has no models
  std::vector<CaughtError> caught;

 private:
  const Scenario& scenario_;
  const Program& program_;
  Rank rank_;
  Rank local_rank_;
  std::vector<ProcessGroup> groups_;  // by slot; looked up when first used
};

}  // namespace rollcall::scenario
