#include "tests/blame/layouts.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace rollcall::blame {
namespace {

Json collective(const std::string& op, const std::string& group, int numel, const std::string& label,
                const Json& more = Json::object()) {
  Json arguments = {{"group", group}, {"label", label}};
  if (op != "barrier") {
    arguments["numel"] = numel;
  }
  arguments.update(more);
  return {{op, arguments}};
}

Piece call_on(const std::string& group, const std::string& op, int numel, const std::string& label,
              const Json& more = Json::object()) {
  return {{collective(op, group, numel, label, more)}, group};
}

Piece message(const std::string& op, const std::string& peer, int numel, const std::string& label,
              const std::string& condition, std::function<bool(Rank)> runs_on, const std::string& loop) {
  Json arguments = {{op == "send" ? "dst" : "src", peer}, {"numel", numel}};
  if (!label.empty()) {
    arguments["label"] = label;
  }
  return {{Json{{op, arguments}}}, {}, condition, std::move(runs_on), loop};
}

Rank product(const std::vector<Rank>& shape) {
  Rank all = 1;
  for (const Rank size : shape) {
    all *= size;
  }
  return all;
}

int size_of_tensor(Random& random) { return random.one_of<int>({4, 8, 12, 32, 1000}) * 4; }

void set_mesh(Layout& layout, std::vector<std::string> dims, std::vector<Rank> shape) {
  layout.world_size = product(shape);
  layout.dims = std::move(dims);
  layout.shape = std::move(shape);
}

Rank between(Random& random, int low, int high) {
  return static_cast<Rank>(low + static_cast<int>(random.below(static_cast<std::size_t>(high - low + 1))));
}

void draw_ddp(Layout& layout, Random& random) {
  layout.world_size = random.one_of<Rank>({4, 5, 8, 16, 64});
  layout.before = {Json{{"broadcast", {{"numel", 64}, {"src", 0}, {"label", "parameters"}}}}};
  Section step;
  const Rank buckets = between(random, 1, 4);
  for (Rank bucket = 0; bucket < buckets; ++bucket) {
    step.pieces.push_back(
        call_on("world", "all_reduce", size_of_tensor(random), fmt::format("bucket {}", bucket)));
  }
  if (random.once_in(2)) {
    step.pieces.push_back(call_on("world", "all_reduce", 1, "loss"));
  }
  if (random.once_in(3)) {
    step.pieces.push_back(call_on("world", "broadcast", 16, "buffers", {{"src", 0}}));
  }
  if (random.once_in(4)) {
    step.pieces.push_back(call_on("world", "barrier", 0, "end of step"));
  }
  layout.step = {step};
}

void draw_fsdp(Layout& layout, Random& random) {
  layout.world_size = random.one_of<Rank>({4, 8, 16});
  Section step;
  std::vector<int> sizes;
  for (Rank i = between(random, 2, 4); i > 0; --i) {
    sizes.push_back(size_of_tensor(random));
  }
  for (std::size_t layer = 0; layer < sizes.size(); ++layer) {
    step.pieces.push_back(
        call_on("world", "all_gather_into_tensor", sizes[layer], fmt::format("layers.{}.forward", layer)));
  }
  for (std::size_t layer = sizes.size(); layer-- > 0;) {
    const std::string label = fmt::format("layers.{}.backward", layer);
    step.pieces.push_back(call_on("world", "all_gather_into_tensor", sizes[layer], label));
    step.pieces.push_back(call_on("world", "reduce_scatter_tensor", sizes[layer] * layout.world_size, label));
  }
  step.pieces.push_back(call_on("world", "all_reduce", 1, "clip_grad_norm"));
  layout.step = {step};
}

void draw_tp_dp(Layout& layout, Random& random) {
  set_mesh(layout, {"dp", "tp"}, {between(random, 2, 8), random.one_of<Rank>({2, 4, 8})});
  const Rank layers = between(random, 1, 3);
  Section step;
  for (Rank layer = 0; layer < layers; ++layer) {
    step.pieces.push_back(call_on("tp", "all_reduce", 32, fmt::format("layers.{}.attention", layer)));
    step.pieces.push_back(call_on("tp", "all_reduce", 32, fmt::format("layers.{}.mlp", layer)));
  }
  for (Rank layer = layers; layer-- > 0;) {
    step.pieces.push_back(call_on("tp", "all_reduce", 32, fmt::format("layers.{}.mlp.backward", layer)));
  }
  for (Rank bucket = between(random, 1, 2); bucket > 0; --bucket) {
    step.pieces.push_back(call_on("dp", "all_reduce", 1000, fmt::format("bucket {}", bucket)));
  }
  if (random.once_in(2)) {
    step.pieces.push_back(call_on("world", "all_reduce", 1, "loss"));
  }
  layout.step = {step};
}

// Returns the pieces of one microbatch's forward or backward pass.
std::vector<Piece> passage(const Layout& layout, bool forward, bool has_labels, bool has_tp) {
  constexpr int numel = 128;
  const Rank stages = layout.shape.front();
  const Rank stride = layout.world_size / stages;
  const std::string label = !has_labels ? "" : (forward ? "forward" : "backward");
  const std::string up = fmt::format("rank + {}", stride);
  const std::string down = fmt::format("rank - {}", stride);
  const auto stage_of = [stride](Rank rank) { return rank / stride; };
  const auto not_first = [stage_of](Rank rank) { return stage_of(rank) > 0; };
  const auto not_last = [stage_of, stages](Rank rank) { return stage_of(rank) < stages - 1; };
  const std::string last = fmt::format("pp < {}", stages - 1);
  std::vector<Piece> pieces;
  if (forward) {
    pieces.push_back(message("recv", down, numel, label, "pp > 0", not_first, "mb"));
  } else {
    pieces.push_back(message("recv", up, numel, label, last, not_last, "mb"));
  }
  if (has_tp) {
    Piece piece = call_on("tp", "all_reduce", 64, label + ".mlp");
    piece.loop = "mb";
    pieces.push_back(piece);
  }
  if (forward) {
    pieces.push_back(message("send", up, numel, label, last, not_last, "mb"));
  } else {
    pieces.push_back(message("send", down, numel, label, "pp > 0", not_first, "mb"));
  }
  return pieces;
}

void add_pipeline(Layout& layout, Random& random, bool has_tp) {
  const Rank microbatches = between(random, 2, 4);
  layout.step.push_back({std::to_string(microbatches), "mb", passage(layout, true, true, has_tp)});
  layout.step.push_back({std::to_string(microbatches), "mb", passage(layout, false, true, has_tp)});
}

void draw_pp(Layout& layout, Random& random) {
  set_mesh(layout, {"pp"}, {between(random, 4, 8)});
  add_pipeline(layout, random, false);
  if (random.once_in(2)) {
    layout.step.push_back({"1", {}, {call_on("world", "all_reduce", 1, "loss")}});
  }
}

// A message each way between two neighbors. Both start together, because otherwise each would wait for the other to
// receive first.
Piece exchange(const std::string& peer, const std::string& condition, std::function<bool(Rank)> runs_on,
               const std::string& loop) {
  Json both = Json::array(
      {{{"isend", {{"dst", peer}, {"numel", 128}}}}, {{"irecv", {{"src", peer}, {"numel", 128}}}}});
  return {{Json{{"batch_isend_irecv", both}, {"as", "both"}}, Json{{"wait", "both"}}},
          {},
          condition,
          std::move(runs_on),
          loop};
}

// Warm-up, then one forward and one backward in turn, then cool-down.
void draw_1f1b(Layout& layout, Random& random) {
  const Rank stages = between(random, 2, 4);
  set_mesh(layout, {"pp", "dp"}, {stages, between(random, 2, 3)});
  const Rank stride = layout.shape[1];
  const Rank microbatches = stages + between(random, 0, 3);
  const std::string warmup = fmt::format("{} - pp", stages - 1);
  const std::string last_turn = fmt::format("{} + pp", microbatches - stages);
  const std::string up = fmt::format("rank + {}", stride);
  const std::string down = fmt::format("rank - {}", stride);
  const auto not_first = [stride](Rank rank) { return rank / stride > 0; };
  const auto not_last = [stride, stages](Rank rank) { return rank / stride < stages - 1; };
  const std::string has_next = fmt::format("pp < {}", stages - 1);
  const Piece receives = message("recv", down, 128, "", "pp > 0", not_first, {});
  const Piece meets_next = exchange(up, has_next, not_last, {});
  const Piece sends = message("send", down, 128, "", "pp > 0", not_first, {});
  const auto in_loop = [](Piece piece) {
    piece.loop = "mb";
    return piece;
  };
  layout.step.push_back({warmup, "mb", passage(layout, true, false, false)});
  layout.step.push_back({"1", {}, {receives}});
  layout.step.push_back({last_turn, "mb", {in_loop(meets_next), exchange(down, "pp > 0", not_first, "mb")}});
  layout.step.push_back({"1", {}, {meets_next, sends}});
  layout.step.push_back({warmup, "mb", passage(layout, false, false, false)});
  layout.step.push_back({"1", {}, {call_on("dp", "all_reduce", 1000, "gradients")}});
}

void draw_pp_dp_tp(Layout& layout, Random& random) {
  set_mesh(layout, {"pp", "dp", "tp"},
           {between(random, 2, 4), between(random, 2, 4), random.one_of<Rank>({2, 4})});
  add_pipeline(layout, random, true);
  layout.step.push_back({"1", {}, {call_on("dp", "all_reduce", 1000, "gradients")}});
  if (random.once_in(2)) {
    layout.step.push_back({"1", {}, {call_on("world", "all_reduce", 1, "grad norm")}});
  }
}

// Two chunks of layers on each stage: the output of the last stage continues at the first.
void draw_interleaved(Layout& layout, Random& random) {
  const Rank stages = between(random, 3, 5);
  set_mesh(layout, {"pp", "dp"}, {stages, between(random, 2, 3)});
  const Rank stride = layout.shape[1];
  const Rank microbatches = between(random, 1, stages - 1);
  const std::string next = fmt::format("(rank + {}) % {}", stride, layout.world_size);
  const std::string previous = fmt::format("(rank - {}) % {}", stride, layout.world_size);
  const auto first = [stride](Rank rank) { return rank / stride == 0; };
  const auto last = [stride, stages](Rank rank) { return rank / stride == stages - 1; };
  const std::string not_last = fmt::format("pp < {}", stages - 1);
  const auto section = [&](const std::string& label, bool forward, bool enters, bool leaves) {
    const auto in = [=](Rank rank) { return !enters || (forward ? !first(rank) : !last(rank)); };
    const auto out = [=](Rank rank) { return !leaves || (forward ? !last(rank) : !first(rank)); };
    return Section{std::to_string(microbatches),
                   "mb",
                   {message("recv", forward ? previous : next, 128, label,
                            enters ? (forward ? "pp > 0" : not_last) : "", in, "mb"),
                    message("send", forward ? next : previous, 128, label,
                            leaves ? (forward ? not_last : "pp > 0") : "", out, "mb")}};
  };
  layout.step = {section("chunk 0 forward", true, true, false), section("chunk 1 forward", true, false, true),
                 section("chunk 1 backward", false, true, false),
                 section("chunk 0 backward", false, false, true)};
  layout.step.push_back({"1", {}, {call_on("dp", "all_reduce", 1000, "gradients")}});
}

void draw_moe(Layout& layout, Random& random) {
  set_mesh(layout, {"dp", "ep"}, {between(random, 2, 4), random.one_of<Rank>({2, 4})});
  const int part = static_cast<int>(layout.shape[1]) * 8;
  Section step;
  for (Rank layer = 0; layer < between(random, 1, 2); ++layer) {
    step.pieces.push_back(call_on("ep", "all_reduce", 1, fmt::format("layers.{}.capacity", layer)));
    step.pieces.push_back(call_on("ep", "all_to_all_single", part, fmt::format("layers.{}.dispatch", layer)));
    step.pieces.push_back(call_on("ep", "all_to_all_single", part, fmt::format("layers.{}.combine", layer)));
  }
  step.pieces.push_back(call_on("dp", "all_reduce", 1000, "experts"));
  step.pieces.push_back(call_on("world", "all_reduce", 2000, "shared"));
  layout.step = {step};
}

void draw_zero(Layout& layout, Random& random) {
  layout.world_size = random.one_of<Rank>({4, 6, 8});
  layout.objects = {
      Json{{"model", {{"kind", "ddp"}, {"parameters", {1000, 10}}}},
           {"optimizer", {{"kind", "zero"}, {"of", "model"}, {"optimizer", "adam"}, {"lr", 0.01}}}}};
  const Json batch = {
      {"repeat", between(random, 1, 3)},
      {"do",
       {{{"forward", "model"}, {"do", Json::array()}}, {{"backward", "model"}}, {{"step", "optimizer"}}}}};
  const Json epoch = {{"join", {"model", "optimizer"}}, {"do", Json::array({batch})}};
  Section step;
  step.pieces.push_back({{epoch}, "none"});
  step.pieces.push_back(call_on("world", "all_reduce", 4, "validation loss"));
  step.pieces.push_back(call_on("world", "all_reduce", 1, "early stopping"));
  step.pieces.push_back(call_on("world", "barrier", 0, "end of epoch"));
  layout.step = {step};
}

void draw_server(Layout& layout, Random& random) {
  layout.world_size = between(random, 4, 8);
  const Rank workers = layout.world_size - 1;
  const auto serves = [](Rank rank) { return rank == 0; };
  const auto works = [](Rank rank) { return rank > 0; };
  layout.step = {
      {std::to_string(workers), "w", {message("recv", "w + 1", 64, "gradients", "rank == 0", serves, "w")}},
      {"1", {}, {message("send", "0", 64, "gradients", "rank > 0", works, {})}},
      {std::to_string(workers), "w", {message("send", "w + 1", 32, "parameters", "rank == 0", serves, "w")}},
      {"1", {}, {message("recv", "0", 32, "parameters", "rank > 0", works, {})}}};
}

struct Row {
  const char* name;
  void (*draw)(Layout&, Random&);
};
constexpr Row rows[] = {{"ddp", draw_ddp},
                        {"fsdp", draw_fsdp},
                        {"tp x dp", draw_tp_dp},
                        {"pipeline", draw_pp},
                        {"pp 1F1B x dp", draw_1f1b},
                        {"pp interleaved x dp", draw_interleaved},
                        {"pp x dp x tp", draw_pp_dp_tp},
                        {"moe", draw_moe},
                        {"zero under join", draw_zero},
                        {"parameter server", draw_server}};

}  // namespace

Rank Layout::coordinate(Rank rank, const std::string& dim) const {
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == dim) {
      return rank % shape[i];
    }
    rank /= shape[i];
  }
  return 0;
}

std::vector<Rank> Layout::members(const std::string& group, Rank rank) const {
  std::vector<Rank> ranks;
  for (Rank other = 0; other < world_size; ++other) {
    const bool together = std::ranges::all_of(dims, [&](const std::string& dim) {
      return dim == group || coordinate(other, dim) == coordinate(rank, dim);
    });
    if (group == "world" || together) {
      ranks.push_back(other);
    }
  }
  return ranks;
}

const std::vector<std::string>& layout_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Row& row : rows) {
      all.emplace_back(row.name);
    }
    return all;
  }();
  return names;
}

Layout draw_layout(const std::string& name, Random& random) {
  const Row* row = std::ranges::find_if(rows, [&](const Row& each) { return each.name == name; });
  Layout layout;
  layout.name = name;
  layout.steps = between(random, 3, 6);
  row->draw(layout, random);
  return layout;
}

}  // namespace rollcall::blame
