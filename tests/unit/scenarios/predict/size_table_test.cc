#include "scenarios/predict/size_table.h"

#include <nlohmann/json.hpp>

#include "sim/cost/presets.h"
#include "tests/catch.h"

namespace rollcall::predict::size_table_test {

namespace {

cost::Cluster cluster(std::string_view name) { return cost::find_cluster(name).cluster.value(); }

SizeTable table(std::string_view name, OpKind kind, std::string_view sizes) {
  return predict_sizes(cluster(name), {.kind = kind}, parse_sizes(sizes).range.value()).value();
}

std::string problem(std::string_view sizes) { return parse_sizes(sizes).problem; }

}  // namespace

TEST_CASE("sizes double from the first to the last", "[predict]") {
  std::vector<std::int64_t> sizes;
  for (const SizeRow& row : table("h100-8", OpKind::all_reduce, "1KiB:9KiB").rows) {
    sizes.push_back(row.bytes);
  }
  CHECK(sizes == std::vector<std::int64_t>{1024, 2048, 4096, 8192});
  CHECK(table("h100-8", OpKind::all_reduce, "3MB").rows.size() == 1);
  CHECK(table("h100-8", OpKind::all_reduce, "8:64").rows.size() == 4);  // in bytes, as in nccl-tests
  CHECK(table("h100-8", OpKind::all_reduce, "1B:9223372036854775807").rows.size() == 63);
}

TEST_CASE("sizes that cannot be read say what would be right", "[predict]") {
  CHECK_THAT(problem("8GiB:1KiB"), Contains("write 1KiB:8GiB"));
  CHECK_THAT(problem("1XB:8GiB"), Contains("not a unit of size"));
  CHECK_THAT(problem("0:8"), Contains("at least 1B"));
  CHECK_FALSE(problem("").empty());
  CHECK_FALSE(problem("1KiB:").empty());
  CHECK_FALSE(problem("-8:64").empty());
}

TEST_CASE("a row has nccl-tests' bandwidths, NCCL's choice and both times", "[predict]") {
  const SizeRow row = table("h100-8", OpKind::all_reduce, "64MiB").rows.at(0);
  CHECK(row.time == 271.724);
  CHECK(row.algbw == Approx(67108864 / row.fitted / 1000));
  CHECK(row.busbw == Approx(row.algbw * 1.75));
  CHECK(row.algorithm == "NVLS");
  CHECK(row.protocol == "Simple");
  CHECK(row.channels == 16);
  CHECK(row.fitted > row.time);
}

TEST_CASE("the JSON has the fields that others read", "[predict]") {
  const auto json = nlohmann::json::parse(json_of(table("a100-2x8", OpKind::all_gather, "1KiB:1MiB")));
  CHECK(json["op"] == "all_gather");
  CHECK(json["cluster"] == "a100-2x8");
  CHECK(json["ranks"] == 16);
  CHECK(json["model"] == "nccl-2.28.9");
  CHECK(json["rows"].size() == 11);
  for (const char* field : {"bytes", "time_us", "algbw", "busbw", "algorithm", "protocol", "channels",
                            "fitted_us", "low_us", "high_us"}) {
    CHECK(json["rows"][0].contains(field));
  }
  CHECK(nlohmann::json::parse(json_of(table("a100-8", OpKind::all_to_all, "1KiB")))["model"] == "rollcall");
}

TEST_CASE("measured times stand beside predicted ones, with the bus bandwidth that they make", "[predict]") {
  SizeTable both = table("h100-8", OpKind::all_reduce, "32MiB:64MiB");
  CHECK_THAT(text_of(both), !Contains("measured"));
  CHECK_FALSE(nlohmann::json::parse(json_of(both))["rows"][0].contains("measured_us"));
  add_measured(both, {200, 400});
  CHECK_THAT(text_of(both), Contains("measured     busbw") && Contains("400.00    293.60"));
  const auto row = nlohmann::json::parse(json_of(both))["rows"][1];
  CHECK(row["measured_us"] == 400);
  CHECK(row["measured_busbw"] == 293.6);
}

TEST_CASE("the text says what is ours and what is estimated", "[predict]") {
  CHECK_THAT(text_of(table("h100-8", OpKind::all_reduce, "1KiB")),
             Contains("NCCL 2.28.9") && !Contains("estimated"));
  CHECK_THAT(text_of(table("h100-8", OpKind::all_to_all, "1KiB")), Contains("rollcall's own model"));
  CHECK_THAT(text_of(table("l40s-4", OpKind::all_reduce, "1KiB")), Contains("estimated"));
}

TEST_CASE("an explanation marks the choice and gives reasons", "[predict]") {
  const std::string text = explain_text(cluster("h100-8"), {.kind = OpKind::all_reduce, .bytes = 2 << 20});
  CHECK_THAT(text, Contains("> NVLS") && Contains("all_reduce of 2MiB"));
  CHECK_THAT(text, Contains("needs several nodes"));
  CHECK_THAT(explain_text(cluster("h100-8"), {.kind = OpKind::send, .bytes = 8}),
             Contains("NCCL has no model"));
}

TEST_CASE("an explanation of registered memory names the kernel, and what has no model", "[predict]") {
  const auto text = [](const char* name, OpKind kind) {
    cost::Cluster each = cluster(name);
    each.launch.symmetric_memory = true;
    return explain_text(each, {.kind = kind, .bytes = 1024});
  };
  CHECK_THAT(text("b200-8", OpKind::all_reduce), Contains("its kernel AGxLLMC_R instead"));
  CHECK_THAT(text("b200-8", OpKind::all_reduce), !Contains("not modeled"));
  CHECK_THAT(text("b200-8", OpKind::all_gather), Contains("not modeled: copies by copy engines"));
  CHECK_THAT(text("b200-2x8", OpKind::all_reduce), Contains("GIN"));
  CHECK_THAT(explain_text(cluster("b200-2x8"), {.kind = OpKind::all_reduce, .bytes = 1024}),
             !Contains("GIN"));
}

TEST_CASE("the plot is a closed picture with a point for each size", "[predict]") {
  const std::string svg = svg_of(table("h100-8", OpKind::all_reduce, "1KiB:1GiB"));
  CHECK_THAT(svg, StartsWith("<svg ") && EndsWith("</svg>\n"));
  const std::size_t begin = svg.find("<polyline points=\"") + 18;
  const std::string points = svg.substr(begin, svg.find('"', begin) - begin);
  CHECK(std::count(points.begin(), points.end(), ',') == 21);
  CHECK_THAT(svg, Contains("NVLS Simple"));
  CHECK_THAT(svg_of(table("h100-8", OpKind::all_reduce, "1KiB")), Contains("<polyline"));
}

}  // namespace rollcall::predict::size_table_test
