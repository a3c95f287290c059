// Family args: calls with wrong arguments; and the related part of family prim: splits, coalesced and object
// collectives, waiting.

#include <array>
#include <functional>
#include <map>
#include <string_view>

#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

Tensor zeros(std::int64_t numel, Dtype dtype = Dtype::float32) { return Tensor::zeros({numel}, dtype); }
Tensor on_meta() { return Tensor::meta({1}); }

void scatter_errors(CaseContext& context) {
  Scope site("user.args_scatter");
  const Rank self = context.rank();
  const auto scattering = [&](const char* label, const TensorList& list, Rank src) {
    context.catching(label, [&] { scatter(zeros(1), list, src); });
  };
  scattering("list missing on the source", {}, self);
  scattering("list given off the source", {zeros(1), zeros(1)}, 1 - self);
  scattering("list too short", {zeros(1)}, self);
  scattering("list too long", {zeros(1), zeros(1), zeros(1)}, self);
  scattering("wrong size in list", {zeros(1), zeros(2)}, self);
  scattering("wrong dtype in list", {zeros(1), zeros(1, Dtype::int32)}, self);
}

void scatter_short_hang(CaseContext& context) {
  Scope site("user.args_scatter_short_hang");
  scatter(zeros(1), context.rank() == 0 ? TensorList{zeros(1)} : TensorList{}, 0);
}

void gather_errors(CaseContext& context) {
  Scope site("user.args_gather");
  const Rank self = context.rank();
  const auto gathering = [&](const char* label, const TensorList& list, Rank dst) {
    context.catching(label, [&] { gather(zeros(1), list, dst); });
  };
  gathering("list missing on the destination", {}, self);
  gathering("list given off the destination", {zeros(1), zeros(1)}, 1 - self);
  gathering("list too short", {zeros(1)}, self);
  gathering("wrong size", {zeros(1), zeros(2)}, self);
}

void all_gather_errors(CaseContext& context) {
  Scope site("user.args_all_gather");
  const auto gathering = [&](const char* label, const TensorList& list) {
    context.catching(label, [&] { all_gather(list, zeros(1)); });
  };
  gathering("list too short", {zeros(1)});
  gathering("wrong size in list", {zeros(1), zeros(2)});
  gathering("wrong dtype in list", {zeros(1), zeros(1, Dtype::int32)});
  gathering("not a list", {Tensor()});
}

// C++ cannot pass something that is not a tensor. An undefined tensor is refused in the same way.
const Tensor no_tensor;

using Call = void (*)(Rank self);

constexpr std::pair<std::string_view, Call> calls[] = {
    {"broadcast_src_2", [](Rank) { broadcast(zeros(1), 2); }},
    {"broadcast_src_minus1", [](Rank) { broadcast(zeros(1), -1); }},
    {"reduce_dst_5", [](Rank) { reduce(zeros(1), 5); }},
    {"send_dst_2", [](Rank) { send(zeros(1), 2); }},
    {"send_dst_minus1", [](Rank) { send(zeros(1), -1); }},
    {"recv_src_2", [](Rank) { recv(zeros(1), 2); }},
    {"send_self", [](Rank self) { send(zeros(1), self); }},
    {"recv_self", [](Rank self) { recv(zeros(1), self); }},
    {"isend_self", [](Rank self) { isend(zeros(1), self); }},
    {"gather_dst_2", [](Rank) { gather(zeros(1), {}, 2); }},
    {"all_reduce_list", [](Rank) { all_reduce(no_tensor); }},
    {"all_reduce_float", [](Rank) { all_reduce(no_tensor); }},
    {"all_reduce_meta", [](Rank) { all_reduce(on_meta()); }},
    {"broadcast_meta", [](Rank) { broadcast(on_meta(), 0); }},
    {"negative_tag",
     [](Rank self) {
       if (self == 0) {
         send(zeros(1), 1, {.tag = -1});
       } else {
         recv(zeros(1), 0, {.tag = -1});
       }
     }},
    {"all_reduce_requires_grad", [](Rank) { all_reduce(Tensor::ones({2})); }},
    {"barrier_device_ids", [](Rank) { barrier({.device_ids = {0}}); }},
};

// One bad call on every rank: the parameter says which.
void one_call(CaseContext& context) {
  Scope site("user.<lambda>");
  const std::string name = context.params().text("call");
  for (const auto& [label, call] : calls) {
    if (label == name) {
      context.catching(name, [&, &call = call] {
        call(context.rank());
        context.put("returned", "None");
      });
      return;
    }
  }
  throw std::runtime_error("no call is written for '" + name + "'");
}

// The launcher creates the process group, so a program here starts with its world. Nor are there sparse tensors.
void without_equivalent(CaseContext&) {}

void all_to_all_single_program(CaseContext& context) {
  Scope site("user.prim_all_to_all_single");
  const Rank self = context.rank();
  const Tensor even = zeros(3);
  all_to_all_single(even, ramp(self, 3));
  context.put("even", even);
  const std::vector<std::int64_t> inputs(3, self + 1);
  const Tensor uneven = zeros(6);
  all_to_all_single(uneven, ramp(self, 3 * (self + 1)),
                    {.output_split_sizes = {1, 2, 3}, .input_split_sizes = inputs});
  context.put("uneven", uneven);
}

void all_to_all_single_bad(CaseContext& context) {
  Scope site("user.prim_all_to_all_single_bad");
  const std::int64_t part = context.rank() == 0 ? 1 : 2;
  const Tensor output = zeros(2 * part);
  all_to_all_single(output, ramp(context.rank(), 2 * part),
                    {.output_split_sizes = {part, part}, .input_split_sizes = {part, part}});
  context.put("out", output);
}

// One even exchange after another, each with the number of elements per rank that its row says.
void all_to_all_single_cut(CaseContext& context) {
  Scope site("user.prim_all_to_all_single_cut");
  const bool is_byte = context.params().text("dtype") == "uint8";
  for (const std::vector<std::int64_t>& sizes : context.params().table("sizes")) {
    const std::int64_t numel = sizes[static_cast<std::size_t>(context.rank()) % sizes.size()];
    const Tensor input = ramp(context.rank(), numel).to(is_byte ? Dtype::uint8 : Dtype::float32);
    const Tensor output = zeros(numel, input.dtype());
    context.catching(std::to_string(numel), [&] {
      all_to_all_single(output, input);
      context.put(std::to_string(numel), output);
    });
  }
}

void objects_program(CaseContext& context) {
  Scope site("user.prim_objects");
  const Rank self = context.rank();
  ObjectList gathered(3);
  all_gather_object(
      gathered, Object::dict({{"rank", self}, {"pad", std::string(static_cast<std::size_t>(self), 'x')}}));
  context.put("all_gather_object", Object::list(gathered));

  ObjectList box{self, "from " + std::to_string(self)};
  broadcast_object_list(box, 1);
  context.put("broadcast_object_list", Object::list(box));

  ObjectList collected(3);
  gather_object(self * 2, self == 0 ? &collected : nullptr, 0);
  context.put("gather_object", self == 0 ? Object::list(collected) : Object());

  ObjectList received(1);
  scatter_object_list(received, self == 2 ? ObjectList{"a", "b", "c"} : ObjectList(3), 2);
  context.put("scatter_object_list", Object::list(received));
}

void all_reduce_coalesced_program(CaseContext& context) {
  Scope site("user.prim_all_reduce_coalesced");
  const TensorList tensors{ramp(context.rank(), 2), ramp(context.rank() + 1, 3)};
  all_reduce_coalesced(tensors);
  context.put("out", tensors);
}

void async_wait(CaseContext& context) {
  const TensorList tensors{ramp(context.rank(), 2), ramp(context.rank(), 2), ramp(context.rank(), 2)};
  std::vector<Work> works;
  {
    Scope site("user.<listcomp>");
    for (const Tensor& tensor : tensors) {
      works.push_back(all_reduce(tensor, {.async_op = true}));
    }
  }
  for (const std::size_t k : {2U, 0U, 1U}) {
    works[k].wait();
    context.put("wait_" + std::to_string(k), true);  // wait returned instead of throwing
  }
  const auto completed = [&] {
    ObjectList list;
    for (const Work& work : works) {
      list.emplace_back(work.is_completed());
    }
    return Object::list(std::move(list));
  };
  context.put("completed", completed());
  context.put("success", completed());  // completed, and no wait threw
  context.put("out", tensors);
  context.put("result", TensorList{tensors.front()});  // an all_reduce's result is its tensor
}

}  // namespace

std::span<const NamedProgram> args_programs() {
  static const NamedProgram table[] = {
      {"args_scatter", scatter_errors},
      {"args_scatter_short_hang", scatter_short_hang},
      {"args_gather", gather_errors},
      {"args_all_gather", all_gather_errors},
      {"args_lifecycle", without_equivalent},
      {"args_rank_too_big", without_equivalent},
      {"args_missing_rank_at_init", without_equivalent},
      {"args_all_reduce_sparse", without_equivalent},
      {"prim_all_to_all_single", all_to_all_single_program},
      {"prim_all_to_all_single_bad", all_to_all_single_bad},
      {"prim_all_to_all_single_cut_*", all_to_all_single_cut},
      {"prim_objects", objects_program},
      {"prim_all_reduce_coalesced", all_reduce_coalesced_program},
      {"prim_async_wait", async_wait},
      {"args_*", one_call},
  };
  return table;
}

}  // namespace rollcall::golden
