// Compares DTensor, tensor parallel and the ring of context parallel with real PyTorch 2.14: the same collectives, with
// the same sizes, in forward, backward and step.

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/dist.h"
#include "sim/dtensor/dtensor.h"
#include "sim/dtensor/parallel_module.h"
#include "sim/dtensor/ring_attention.h"
#include "sim/dtensor/tensor_parts.h"
#include "sim/train/flat.h"
#include "tests/catch.h"
#include "tests/conformance/call_lines.h"

namespace rollcall::golden::tensor_parallel_test {
namespace {

// "S0 R"
Placements placements_of(const std::string& text) {
  Placements placements;
  for (std::size_t at = 0; at < text.size(); at += text[at] == 'S' ? 3 : 2) {
    placements.push_back(text[at] == 'S'   ? Shard(text[at + 1] - '0')
                         : text[at] == 'P' ? Partial()
                                           : Replicate());
  }
  return placements;
}

Shape shape_of(const nlohmann::json& sizes) {
  const std::vector<std::int64_t> list = sizes;
  return Shape(std::span<const std::int64_t>(list));
}

MeshShape mesh_shape(const nlohmann::json& params) {
  MeshShape shape{params.at("mesh"), {"dp", "tp", "cp"}};
  shape.dim_names.resize(shape.sizes.size());
  return shape;
}

Tensor local_part(const Tensor& whole, const DeviceMesh& mesh, const Placements& placements) {
  Tensor local = whole;
  for (std::size_t dim = 0; dim < placements.size(); ++dim) {
    if (placements[dim].is_shard()) {
      const int of = placements[dim].dim;
      const detail::Chunk chunk =
          detail::chunk_of(detail::size_at(local.shape(), of), mesh.size(dim), mesh.get_coordinate()[dim]);
      local = detail::narrow(local, of, chunk.start, chunk.length);
    }
  }
  return local;
}

// The Python programs of the same names are in tests/data/torch_2_14/record.py.
void run_redistribute(CallLines& lines, const nlohmann::json& params) {
  const DeviceMesh mesh = init_device_mesh(mesh_shape(params));
  for (const std::string& name : params.value("flatten", std::vector<std::string>())) {
    mesh.slice(name == "dp_tp" ? std::vector<std::string>{"dp", "tp"} : std::vector<std::string>{"dp", "cp"})
        .flatten(name);
  }
  int number = 0;
  for (const nlohmann::json& one : params.at("cases")) {
    const Shape shape = shape_of(one[0]);
    const Placements from = placements_of(one[1]);
    const Placements to = placements_of(one[2]);
    const DTensor tensor =
        DTensor::from_local(local_part(Tensor::ones(shape), mesh, from), mesh, from, shape);
    lines.mark(std::to_string(number) + " forward");
    const DTensor moved = tensor.redistribute(to);
    lines.mark(std::to_string(number++) + " backward");
    // The gradient of a partial result is whole.
    Placements gradient = to;
    for (Placement& placement : gradient) {
      placement = placement.is_partial() ? Replicate() : placement;
    }
    DTensor::from_local(moved.to_local(), mesh, gradient, shape).redistribute_backward(from);
  }
}

constexpr std::int64_t batch = 2;
constexpr std::int64_t sequence = 8;
constexpr std::int64_t hidden = 16;

using Layers = std::vector<ParallelLayer>;

ParallelLayer colwise(std::int64_t in, std::int64_t out) {
  return {.style = ParallelStyle::colwise, .in_features = in, .out_features = out};
}
ParallelLayer rowwise(std::int64_t in, std::int64_t out) {
  return {.style = ParallelStyle::rowwise, .in_features = in, .out_features = out};
}
ParallelLayer with(ParallelLayer layer, std::optional<Placement> input, std::optional<Placement> output) {
  layer.input_layouts = input;
  layer.output_layouts = output;
  return layer;
}
ParallelLayer prepare_input() {
  return {
      .style = ParallelStyle::prepare_input, .input_layouts = Shard(1), .desired_input_layouts = Replicate()};
}
ParallelLayer prepare_output(Placement from, Placement to) {
  return {.style = ParallelStyle::prepare_output, .output_layouts = from, .desired_output_layouts = to};
}
ParallelLayer without_bias(ParallelLayer layer, int count = 1) {
  layer.has_bias = false;
  layer.count = count;
  return layer;
}

Layers block() {
  const ParallelLayer norm{.style = ParallelStyle::sequence};
  return {norm,
          prepare_input(),
          without_bias(colwise(hidden, hidden), 3),
          without_bias(with(rowwise(hidden, hidden), {}, Shard(1))),
          norm,
          prepare_input(),
          without_bias(colwise(hidden, 4 * hidden), 2),
          without_bias(with(rowwise(4 * hidden, hidden), {}, Shard(1)))};
}

std::map<std::string, Layers> plans() {
  const ParallelLayer wide = colwise(hidden, 4 * hidden);
  const ParallelLayer narrow = rowwise(4 * hidden, hidden);
  ParallelLayer wide_dtensor = wide;
  ParallelLayer narrow_dtensor = narrow;
  wide_dtensor.use_local_output = narrow_dtensor.use_local_output = false;
  ParallelLayer local_input = prepare_input();
  local_input.use_local_output = true;
  ParallelLayer embedding_column = colwise(8 * hidden, hidden);
  ParallelLayer embedding_row = with(rowwise(8 * hidden, hidden), Replicate(), Shard(1));
  embedding_column.is_embedding = embedding_row.is_embedding = true;
  return {
      {"mlp", {wide, narrow}},
      {"mlp_sequence", {with(wide, Shard(1), {}), with(narrow, {}, Shard(1))}},
      {"mlp_local", {wide_dtensor, narrow_dtensor}},
      {"column", {with(wide, {}, Replicate())}},
      {"column_sequence", {with(wide, Shard(1), Replicate())}},
      {"row", {with(narrow, Replicate(), {})}},
      {"row_sequence", {with(narrow, Replicate(), Shard(1))}},
      {"row_shard", {with(narrow, {}, Shard(1))}},
      {"norm", {{.style = ParallelStyle::sequence}, with(wide, Shard(1), {}), with(narrow, {}, Shard(1))}},
      {"prepare", {local_input}},
      {"prepare_output", {prepare_output(Shard(1), Replicate())}},
      {"prepare_partial", {prepare_output(Partial(), Shard(1))}},
      {"embedding_column", {embedding_column}},
      {"embedding_row", {embedding_row}},
      {"block", block()}};
}

ParallelInput input_of(const std::string& plan, std::int64_t ranks, bool requires_grad) {
  const bool is_sharded = plan == "mlp_sequence" || plan == "norm" || plan == "block" ||
                          plan == "column_sequence" || plan == "prepare" || plan == "prepare_output";
  if (plan.starts_with("embedding")) {
    return {.shape = {batch, sequence}, .requires_grad = false};
  }
  const std::int64_t width = plan == "row_shard"       ? 4 * hidden / ranks
                             : plan.starts_with("row") ? 4 * hidden
                                                       : hidden;
  return {.shape = {batch, is_sharded ? sequence / ranks : sequence, width}, .requires_grad = requires_grad};
}

void run_tensor_parallel(CallLines& lines, const RecordedCalls& calls) {
  const nlohmann::json& params = *calls.params;
  const bool is_2d = params.contains("mesh");
  const DeviceMesh mesh = init_device_mesh(is_2d ? MeshShape{params["mesh"], {"dp", "tp"}}
                                                 : MeshShape{{calls.world_size}, {"tp"}});
  const ProcessGroup group = mesh.get_group("tp");
  const std::string plan = params.at("plan");
  ParallelModule module(group, input_of(plan, group.size(), params.value("input_grad", true)),
                        plans().at(plan));
  lines.mark("parallelize");
  module.parallelize();
  lines.mark("forward");
  module.forward();
  lines.mark("backward");
  module.backward();
  lines.mark("step");
  module.step();
}

void run_ring(CallLines& lines, const RecordedCalls& calls) {
  const nlohmann::json& params = *calls.params;
  RingAttention ring(
      {.group = world(),
       .key = shape_of(params.at("shape")),
       .rotate_method = params.at("method") == "alltoall" ? RotateMethod::alltoall : RotateMethod::allgather,
       .is_load_balanced = params.value("load_balance", true)});
  lines.mark("forward");
  ring.forward();
  lines.mark("backward");
  ring.backward();
}

void run_case(CallLines& lines, const RecordedCalls& calls) {
  if (calls.params->contains("cases")) {
    run_redistribute(lines, *calls.params);
  } else if (calls.params->contains("plan")) {
    run_tensor_parallel(lines, calls);
  } else if (calls.params->contains("method")) {
    run_ring(lines, calls);
  } else {  // context_parallel and context_parallel_unshard: buffers are cut without a call, and gathered
    lines.mark("context_parallel");
    lines.mark("unshard");
    const Shape shape = shape_of(calls.params->at("shape"));
    const std::int64_t part = shape.numel() / calls.world_size;
    all_gather_into_tensor(Tensor::zeros({shape.numel()}), Tensor::zeros({part}));
  }
}

// A mark, and the calls after it.
std::vector<Lines> parts_of(const Lines& lines) {
  std::vector<Lines> parts(1);
  for (const std::string& line : lines) {
    if (line.find("\"mark\"") != std::string::npos) {
      parts.emplace_back();
    }
    if (line.find("new_group") == std::string::npos) {
      parts.back().push_back(line);
    }
  }
  return parts;
}

void check_alike(const Lines& simulated, const Lines& recorded) {
  const std::vector<Lines> left = parts_of(simulated);
  const std::vector<Lines> right = parts_of(recorded);
  REQUIRE(left.size() == right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    CHECK(to_text(left[i]) == to_text(right[i]));
  }
}

}  // namespace

TEST_CASE("DTensors, parallel modules and rings issue the calls of real PyTorch 2.14", "[fiber][dtensor]") {
  for (const std::string& name : recorded_call_cases("tensor_parallel")) {
    DYNAMIC_SECTION(name) {
      const RecordedCalls calls = read_recorded_calls("tensor_parallel", name);
      CallLines lines(calls.world_size);
      std::string raised;
      lines.run([&](Rank) {
        try {
          run_case(lines, calls);
        } catch (const Error& error) {
          raised = std::string(error.type()) + ": " + error.what();
        }
      });
      for (std::size_t rank = 0; rank < calls.ranks.size(); ++rank) {
        INFO("rank " << rank);
        check_alike(lines.ranks()[rank], calls.ranks[rank]);
      }
      const nlohmann::json& error = calls.notes->front().at("error");
      CHECK(raised == (error.is_string() ? error.get<std::string>() : ""));
    }
  }
}

TEST_CASE("a redistributed DTensor is the tensor that it was", "[fiber][dtensor]") {
  const std::vector<double> values = [] {
    std::vector<double> list(35);
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i] = static_cast<double>(i);
    }
    return list;
  }();
  const std::vector<Placements> all{{Replicate(), Replicate()}, {Shard(0), Replicate()}, {Shard(0), Shard(0)},
                                    {Shard(0), Shard(1)},       {Shard(1), Shard(0)},    {Shard(1), Shard(1)},
                                    {Replicate(), Shard(1)}};
  sim::run({.world_size = 4, .backend = "nccl"}, [&](Rank) {
    const DeviceMesh mesh = init_device_mesh({{2, 2}, {"dp", "tp"}});
    for (const Placements& from : all) {
      for (const Placements& to : all) {
        const Tensor whole = slice(
            Tensor::of(values, Dtype::float32, {DeviceType::cuda, static_cast<std::int16_t>(get_rank())}), 0,
            {7, 5});
        const DTensor sharded = DTensor::from_local(local_part(whole, mesh, from), mesh, from, whole.shape());
        const DTensor moved = sharded.redistribute(to);
        CHECK(moved.to_local().to_vector() == local_part(whole, mesh, to).to_vector());
        CHECK(moved.full_tensor().to_vector() == values);
      }
    }
  });
}

}  // namespace rollcall::golden::tensor_parallel_test
