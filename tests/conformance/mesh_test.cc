// Compares DeviceMesh with real PyTorch 2.14 and 2.6: which groups it makes, in which order, and which ranks slices and
// flattened dimensions have.

#include <regex>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/c10d/device_mesh.h"
#include "sim/c10d/forwarding_backend.h"
#include "sim/dist.h"
#include "tests/catch.h"
#include "tests/conformance/call_lines.h"

namespace rollcall::golden::mesh_test {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string list_of(const std::vector<Rank>& ranks) {
  std::string text;
  for (const Rank rank : ranks) {
    text += (text.empty() ? "" : ", ") + std::to_string(rank);
  }
  return "[" + text + "]";
}

// Does what the Python program of the same name in tests/data/torch_2_14/record.py does.
void run_mesh(CallLines& lines, const nlohmann::json& params) {
  lines.mark("init_device_mesh");
  const MeshShape shape{params.at("shape"), params.at("names")};
  const DeviceMesh mesh = init_device_mesh(shape);
  const std::vector<Rank> coordinate = mesh.get_coordinate();
  lines.mark("coordinate " + (coordinate.empty() ? "None" : list_of(coordinate)));
  for (const std::string& name : shape.dim_names) {
    if (!coordinate.empty()) {
      lines.mark(name + " " + list_of(get_process_group_ranks(mesh.get_group(name))));
      all_reduce(Tensor::ones({1}), {.group = mesh.get_group(name)});
    }
  }
  for (const std::string& dims : params.value("slices", std::vector<std::string>())) {
    lines.mark("slice " + dims);
    mesh.slice(words(dims));
    lines.mark("mesh");
  }
  for (const std::string& dims : params.value("flatten", std::vector<std::string>())) {
    lines.mark("flatten " + dims);
    const DeviceMesh flattened = mesh.slice(words(dims)).flatten();
    const ProcessGroup group = flattened.get_group();
    lines.mark("ranks " + list_of(get_process_group_ranks(group)) + " local " + std::to_string(group.rank()));
    all_reduce(Tensor::ones({1}),
               {.group = mesh[std::regex_replace(dims, std::regex(" "), "_")].get_group()});
  }
  if (const nlohmann::json more = params.value("unflatten", nlohmann::json()); !more.is_null()) {
    const std::string name = more[0];
    lines.mark("unflatten " + name);
    const DeviceMesh unflattened = mesh.unflatten(name, {more[1], more[2]});
    for (const std::string dim : more[2]) {
      lines.mark(dim + " " + list_of(get_process_group_ranks(unflattened.get_group(dim))));
    }
  }
}

// The lines of slices contain their ranks, of which simulated meshes have no list.
Lines comparable(Lines lines) {
  std::erase_if(lines, [](const std::string& line) { return line.find(R"("mesh ")") == 0; });
  for (std::string& line : lines) {
    line = std::regex_replace(line, std::regex(R"x("mark":"mesh [^"]*")x"), R"("mark":"mesh")");
    line = std::regex_replace(line, std::regex(R"x("desc":"[^"]*",)x"), "");
  }
  return lines;
}

void check_meshes(TorchRelease torch) {
  for (const std::string& name : recorded_call_cases("mesh", torch)) {
    const RecordedCalls calls = read_recorded_calls("mesh", name, torch);
    DYNAMIC_SECTION(name) {
      CallLines lines(calls.world_size);
      std::string raised;
      const auto program = [&](Rank rank) {
        try {
          run_mesh(lines, *calls.params);
        } catch (const Error& error) {
          raised = std::string(error.type()) + ": " + error.what();
          if (rank + 1 == calls.world_size) {
            throw;
          }
        }
      };
      lines.run(program, torch);
      for (std::size_t rank = 0; rank < calls.ranks.size(); ++rank) {
        INFO("rank " << rank);
        CHECK(to_text(comparable(lines.ranks()[rank])) == to_text(comparable(calls.ranks[rank])));
      }
      const nlohmann::json& error = calls.notes->front().at("error");
      std::string expected = error.is_string() ? error.get<std::string>() : "";
      expected = std::regex_replace(expected, std::regex(R"x(^KeyError: "(.*)"$)x"), "KeyError: $1");
      CHECK(raised == expected);
    }
  }
}

}  // namespace

TEST_CASE("a DeviceMesh makes the groups of real PyTorch 2.14", "[fiber][mesh]") {
  check_meshes(TorchRelease::v2_14);
}

TEST_CASE("on 2.6 a DeviceMesh makes its groups in the order of real PyTorch 2.6", "[fiber][mesh]") {
  check_meshes(TorchRelease::v2_6);
}

}  // namespace rollcall::golden::mesh_test
